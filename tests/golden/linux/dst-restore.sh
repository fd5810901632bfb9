halt sentinel
halt bulk-server
halt late-server
put_in /proc/sys/net/ipv4/tcp_moderate_rcvbuf 1
put_in /proc/sys/net/ipv4/tcp_adv_win_scale 1
put_in /proc/sys/net/ipv4/tcp_rmem '4096 131072 6291456'
root ip -4 route del 172.16.10.2/32
put_in /proc/sys/net/ipv4/tcp_ecn 2
put_in /proc/sys/net/ipv4/tcp_sack 1
put_in /proc/sys/net/ipv4/tcp_timestamps 1
put_in /proc/sys/net/ipv4/tcp_window_scaling 1
put_in /proc/sys/net/ipv4/tcp_no_metrics_save 0
put_in /proc/sys/net/ipv4/tcp_wmem 4096" "16384" "4194304
put_in /proc/sys/net/ipv4/tcp_rmem 4096" "131072" "6291456
root ip link set dev eth1 mtu 1500
set --
set -- "$@" tso on
[ $# -eq 0 ] || root ethtool -K eth1 "$@" >/dev/null
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
