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
