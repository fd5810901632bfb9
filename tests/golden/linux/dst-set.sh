ethtool -K eth1 tso off gso off gro off lro off tx-udp-segmentation off rx-gro-list off >/dev/null 2>&1 ||
  for feature in tso gso gro lro tx-udp-segmentation rx-gro-list; do ethtool -K eth1 "$feature" off >/dev/null 2>&1; done
echo 600 >/sys/class/net/eth1/mtu || fail "mtu "600" was refused by "eth1
put() { echo "$2" >/proc/sys/net/ipv4/"$1" || fail "$1=$2 was refused"; }
put tcp_ecn 0
put tcp_sack 1
put tcp_timestamps 1
put tcp_window_scaling 1
put tcp_no_metrics_save 1
put tcp_wmem '4096 262144 33554432'
ip tcp_metrics flush >/dev/null || fail "the cache of TCP metrics could not be emptied"
put() { echo "$2" >/proc/sys/net/ipv4/"$1" || fail "$1=$2 was refused"; }
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
ip -4 route replace 172.16.10.2/32 $via dev "$device" window 9998848 || fail "no window could be set on the route to "172.16.10.2
ethtool -k eth1 | while read -r feature value _; do
  case $feature in
    tcp-segmentation-offload: | generic-segmentation-offload: | generic-receive-offload: | large-receive-offload: | tx-udp-segmentation: | rx-gro-list:)
      echo offload.eth1".${feature%:}=$value" ;;
  esac
done
read -r value </sys/class/net/eth1/mtu && echo mtu.eth1"=$value"
( cd /proc/sys/net/ipv4 && grep . tcp_ecn tcp_sack tcp_timestamps tcp_window_scaling tcp_no_metrics_save tcp_wmem ) |
  while IFS=: read -r name value; do echo "$name=$value"; done
( cd /proc/sys/net/ipv4 && grep . tcp_moderate_rcvbuf tcp_adv_win_scale tcp_rmem ) |
  while IFS=: read -r name value; do echo "$name=$value"; done
echo route.172.16.10.2"=$(ip -4 route show 172.16.10.2/32)"
exit 0
