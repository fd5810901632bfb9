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
cc=reno
read -r offered </proc/sys/net/ipv4/tcp_available_congestion_control
case " $offered " in *" $cc "*) ;; *) modprobe "tcp_$cc" || fail "this kernel does not offer the congestion control $cc; it offers: $offered" ;; esac
echo "$cc" >/proc/sys/net/ipv4/tcp_congestion_control || fail "the congestion control $cc was refused"
ethtool -k eth1 | while read -r feature value _; do
  case $feature in
    tcp-segmentation-offload: | generic-segmentation-offload: | generic-receive-offload: | large-receive-offload: | tx-udp-segmentation: | rx-gro-list:)
      echo offload.eth1".${feature%:}=$value" ;;
  esac
done
read -r value </sys/class/net/eth1/mtu && echo mtu.eth1"=$value"
( cd /proc/sys/net/ipv4 && grep . tcp_ecn tcp_sack tcp_timestamps tcp_window_scaling tcp_no_metrics_save tcp_wmem ) |
  while IFS=: read -r name value; do echo "$name=$value"; done
read -r value </proc/sys/net/ipv4/tcp_congestion_control && echo "cc=$value"
exit 0
