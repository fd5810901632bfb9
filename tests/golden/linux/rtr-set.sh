set --
set -- "$@" tso off
set -- "$@" gso off
set -- "$@" gro off
set -- "$@" lro off
if [ $# -gt 0 ] && ! root ethtool -K eth1 "$@" >/dev/null 2>&1; then
  # A feature that cannot be changed must not prevent others from being changed; the result is read back.
  while [ $# -gt 0 ]; do root ethtool -K eth1 "$1" "$2" >/dev/null; shift 2; done
fi
set --
set -- "$@" tso off
set -- "$@" gso off
set -- "$@" gro off
set -- "$@" lro off
set -- "$@" rx-gro-list off
if [ $# -gt 0 ] && ! root ethtool -K eth2 "$@" >/dev/null 2>&1; then
  # A feature that cannot be changed must not prevent others from being changed; the result is read back.
  while [ $# -gt 0 ]; do root ethtool -K eth2 "$1" "$2" >/dev/null; shift 2; done
fi
root ip link set dev eth1 mtu 600 || fail "mtu "600" was refused by "eth1
await 20 linked eth1 || fail eth1" has no link 20 s after its MTU was set"
root ip link set dev eth2 mtu 600 || fail "mtu "600" was refused by "eth2
await 20 linked eth2 || fail eth2" has no link 20 s after its MTU was set"
# By default, the module creates two devices.
[ -d /sys/module/ifb ] || root modprobe ifb numifbs=0 2>/dev/null
{
  printf 'link add name %s type ifb\nlink set dev %s up\n' sv-down sv-down
  printf 'link add name %s type ifb\nlink set dev %s up\n' sv-up sv-up
} | batch ip || fail "this kernel cannot create an intermediate device (ifb)"
{
  mtu=1500; read -r mtu </sys/class/net/eth2/mtu
  burst=6000; [ "$burst" -ge $((mtu + 100)) ] || burst=$((mtu + 100))
  printf 'qdisc replace dev %s root handle 1: tbf rate %sbit burst %s limit 1000000\n' eth2 12000000 "$burst"
  printf 'qdisc replace dev %s parent 1:1 handle 10: %s\n' eth2 'pfifo limit 137'
  printf 'qdisc replace dev %s root handle 2: %s\n' sv-down 'netem limit 1928 delay 10000us loss random 0.1%'
  printf 'qdisc add dev %s handle ffff: ingress\n' eth1
  printf 'filter add dev %s parent ffff: prio 60000 protocol all u32 match u32 0 0 action mirred egress redirect dev %s\n' eth1 sv-down
  printf 'qdisc replace dev %s root handle 2: %s\n' sv-up 'netem limit 1928 delay 10000us'
  printf 'qdisc add dev %s handle ffff: ingress\n' eth2
  printf 'filter add dev %s parent ffff: prio 60000 protocol all u32 match u32 0 0 action mirred egress redirect dev %s\n' eth2 sv-up
} | batch tc || fail "tc refused the settings of the bottleneck"
feature() { # FEATURE: VALUE, a line of ethtool -k
  case ${1-} in
    tcp-segmentation-offload:) echo "offload.$interface.tso=$2" ;;
    generic-segmentation-offload:) echo "offload.$interface.gso=$2" ;;
    generic-receive-offload:) echo "offload.$interface.gro=$2" ;;
    large-receive-offload:) echo "offload.$interface.lro=$2" ;;
    rx-checksumming:) echo "offload.$interface.rx=$2" ;;
    tx-checksumming:) echo "offload.$interface.tx=$2" ;;
    tx-udp-segmentation: | rx-gro-list: | rx-udp-gro-forwarding: | rx-gro-hw:) echo "offload.$interface.${1%:}=$2" ;;
  esac
}
for interface in eth1 eth2; do each_line feature "$(ethtool -k "$interface")"; done
address6() { [ "${3-}" != inet6 ] || s_six="$s_six$4 "; }
route6() { case "$* " in *' proto kernel '* | *' proto ra '* | fe80:*) ;; *) s_six="$s_six$*, "; esac; }
read -r value </sys/class/net/eth1/mtu && echo mtu.eth1"=$value"
s_off=/proc/sys/net/ipv6/conf/eth1/disable_ipv6 value=1
[ ! -e "$s_off" ] || read -r value <"$s_off" # a kernel without IPv6 does not have this file
if [ "$value" = 0 ]; then
  s_six=''; each_line address6 "$(ip -6 -o addr show dev eth1 scope global permanent)"
  echo inet6.eth1"=$s_six"
  s_six=''; each_line route6 "$(ip -6 route show dev eth1)"
  echo routes6.eth1"=$s_six"
fi
read -r value </sys/class/net/eth2/mtu && echo mtu.eth2"=$value"
s_off=/proc/sys/net/ipv6/conf/eth2/disable_ipv6 value=1
[ ! -e "$s_off" ] || read -r value <"$s_off" # a kernel without IPv6 does not have this file
if [ "$value" = 0 ]; then
  s_six=''; each_line address6 "$(ip -6 -o addr show dev eth2 scope global permanent)"
  echo inet6.eth2"=$s_six"
  s_six=''; each_line route6 "$(ip -6 route show dev eth2)"
  echo routes6.eth2"=$s_six"
fi
discipline() { # qdisc KIND HANDLE dev DEVICE...
  case ${5-} in eth2 | eth1 | sv-*) ;; *) return ;; esac
  kind=$2 handle=$3 device=$5; shift 5
  rest=$*
  rest=${rest#root } rest=${rest#refcnt * } rest=${rest#parent * }
  echo "qdisc.$device.$handle=$kind $rest"
}
each_line discipline "${c_shown:-$(tc -d qdisc show)}"
c_shown=
for device in /sys/class/net/sv-*; do
  [ ! -e "$device" ] || echo "device.${device##*/}=present"
done
exit 0
