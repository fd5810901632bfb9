# ---- read
shaped() { # qdisc KIND HANDLE dev DEVICE root|parent...
  case ${6-} in root | parent) ;; *) return ;; esac
  s_kind=$2 s_handle=$3 s_device=$5 s_place=$6; shift 6
  [ "$s_device" = "$interface" ] || return 0
  case "$s_place ${1-}" in 'root refcnt') shift 2 ;; 'parent '*) shift ;; esac
  case $s_place in
    root) echo "shaper.$interface=$s_kind $s_handle${*:+ }$*" ;;
    parent) [ "$s_handle" != 12: ] || s_queue="$s_kind $*" ;;
  esac
}
s_shown=$(tc -d qdisc show)
for interface in eth1 eth2; do
  s_queue=none
  each_line shaped "$s_shown"
  echo "shaper.$interface.queue=$s_queue"
done
# ---- set
s_mtu=1500; read -r s_mtu </sys/class/net/eth1/mtu
s_burst=20000
[ "$s_burst" -ge $((2 * (s_mtu + 14))) ] || s_burst=$((2 * (s_mtu + 14)))
{
  printf 'qdisc add dev %s root handle 11: tbf rate %sbit burst %s limit 1000000\n' eth1 40000000 "$s_burst"
  printf 'qdisc add dev %s parent 11:1 handle 12: pfifo limit %s\n' eth1 100
} | batch tc || fail eth1" was not limited to "40000000" bit/s"
s_mtu=1500; read -r s_mtu </sys/class/net/eth2/mtu
s_burst=20000
[ "$s_burst" -ge $((2 * (s_mtu + 14))) ] || s_burst=$((2 * (s_mtu + 14)))
{
  printf 'qdisc add dev %s root handle 11: tbf rate %sbit burst %s limit 1000000\n' eth2 40000000 "$s_burst"
  printf 'qdisc add dev %s parent 11:1 handle 12: pfifo limit %s\n' eth2 100
} | batch tc || fail eth2" was not limited to "40000000" bit/s"
# ---- wanted
shaper.eth1*=tbf 11: rate 40Mbit burst
shaper.eth1.queue*=pfifo limit 100p
shaper.eth2*=tbf 11: rate 40Mbit burst
shaper.eth2.queue*=pfifo limit 100p
# ---- restore
root tc qdisc del dev eth1 root handle 11:
root tc qdisc del dev eth2 root handle 11:
