set --
set -- "$@" tso off
set -- "$@" gso off
set -- "$@" gro off
set -- "$@" lro off
if [ $# -gt 0 ] && ! root ethtool -K eth1 "$@" >/dev/null 2>&1; then
  # One feature that cannot be changed must not keep the others from it; reading back tells what became of each.
  while [ $# -gt 0 ]; do root ethtool -K eth1 "$1" "$2" >/dev/null; shift 2; done
fi
linked() { read -r l_up <"/sys/class/net/$1/carrier" && [ "$l_up" = 1 ]; }
root ip link set dev eth1 mtu 600 || fail "mtu "600" was refused by "eth1
await 20 linked eth1 || fail eth1" has no link 20 s after its MTU was set"
put_in /proc/sys/net/ipv4/tcp_wmem 4096" "262144" "33554432 || fail tcp_wmem" was refused"
put() {
  [ -e "/proc/sys/net/ipv4/$1" ] || fail "this kernel has no net.ipv4.$1"
  put_in /proc/sys/net/ipv4/"$1" "$2" || fail "$1=$2 was refused"
}
put tcp_ecn 0
put tcp_sack 1
put tcp_timestamps 1
put tcp_window_scaling 1
put tcp_no_metrics_save 1
root ip tcp_metrics flush >/dev/null || fail "the cache of TCP metrics could not be emptied"
put() { put_in /proc/sys/net/ipv4/"$1" "$2" || fail "$1=$2 was refused"; }
put tcp_moderate_rcvbuf 0
put tcp_adv_win_scale -2
put tcp_rmem '4096 67108864 67108864'
set -- $(ip -4 route get 172.16.10.2)
via='' device=''
while [ $# -gt 1 ]; do
  case $1 in via) via="via $2" ;; dev) device=$2 ;; esac
  shift
done
[ -n "$device" ] || fail "no route to "172.16.10.2
root ip -4 route replace 172.16.10.2/32 $via dev "$device" window 9998848 || fail "no window could be set on the route to "172.16.10.2
ethtool -k eth1 | while read -r feature value _; do
  case $feature in
    tcp-segmentation-offload:) feature=tso ;;
    generic-segmentation-offload:) feature=gso ;;
    generic-receive-offload:) feature=gro ;;
    large-receive-offload:) feature=lro ;;
    rx-checksumming:) feature=rx ;;
    tx-checksumming:) feature=tx ;;
    tx-udp-segmentation: | rx-gro-list: | rx-udp-gro-forwarding: | rx-gro-hw:) feature=${feature%:} ;;
    *) continue ;;
  esac
  echo offload.eth1".$feature=$value"
done
read -r value </sys/class/net/eth1/mtu && echo mtu.eth1"=$value"
set -- $(cat /proc/sys/net/ipv4/tcp_wmem /proc/sys/net/ipv4/tcp_rmem)
[ $# != 6 ] || printf 'tcp_%s=%s\n' wmem.low "$1" wmem.default "$2" wmem.max "$3" rmem.low "$4" rmem.default "$5" rmem.max "$6"
for value in $(grep -s . /proc/sys/net/ipv4/tcp_ecn /proc/sys/net/ipv4/tcp_sack /proc/sys/net/ipv4/tcp_timestamps /proc/sys/net/ipv4/tcp_window_scaling /proc/sys/net/ipv4/tcp_no_metrics_save /dev/null); do
  name=${value%%:*}
  echo "${name##*/}=${value#*:}"
done
set -- $(cd /proc/sys/net/ipv4 && cat tcp_moderate_rcvbuf tcp_adv_win_scale tcp_rmem)
[ $# != 5 ] || printf 'tcp_moderate_rcvbuf=%s\ntcp_adv_win_scale=%s\ntcp_rmem=%s %s %s\n' "$@"
echo route.172.16.10.2"=$(ip -4 route show 172.16.10.2/32)"
exit 0
