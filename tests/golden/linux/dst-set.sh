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
( cd /proc/sys/net/ipv4 && grep . tcp_wmem tcp_rmem ) | while IFS=: read -r name value; do
  set -- $value
  echo "$name.low=$1"; echo "$name.default=$2"; echo "$name.max=$3"
done
( cd /proc/sys/net/ipv4 && grep -s . tcp_ecn tcp_sack tcp_timestamps tcp_window_scaling tcp_no_metrics_save /dev/null ) |
  while IFS=: read -r name value; do echo "$name=$value"; done
( cd /proc/sys/net/ipv4 && grep . tcp_moderate_rcvbuf tcp_adv_win_scale tcp_rmem ) |
  while IFS=: read -r name value; do echo "$name=$value"; done
echo route.172.16.10.2"=$(ip -4 route show 172.16.10.2/32)"
exit 0
