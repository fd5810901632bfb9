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
