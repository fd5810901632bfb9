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
read -r value </proc/sys/net/ipv4/tcp_congestion_control && echo "cc=$value"
exit 0
