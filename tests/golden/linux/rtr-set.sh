ethtool -K eth1 tso off gso off gro off lro off tx-udp-segmentation off rx-gro-list off >/dev/null 2>&1 ||
  for feature in tso gso gro lro tx-udp-segmentation rx-gro-list; do ethtool -K eth1 "$feature" off >/dev/null 2>&1; done
ethtool -K eth2 tso off gso off gro off lro off tx-udp-segmentation off rx-gro-list off >/dev/null 2>&1 ||
  for feature in tso gso gro lro tx-udp-segmentation rx-gro-list; do ethtool -K eth2 "$feature" off >/dev/null 2>&1; done
echo 600 >/sys/class/net/eth1/mtu || fail "mtu "600" was refused by "eth1
echo 600 >/sys/class/net/eth2/mtu || fail "mtu "600" was refused by "eth2
# The module comes with two devices of its own unless it is told not to.
[ -d /sys/module/ifb ] || modprobe ifb numifbs=0 2>/dev/null
{
  printf 'link add name %s type ifb\nlink set dev %s up\n' sv-down sv-down
  printf 'link add name %s type ifb\nlink set dev %s up\n' sv-up sv-up
} | ip -batch - || fail "no intermediate device (ifb) on this kernel"
{
  printf 'qdisc replace dev %s root handle 1: tbf rate %sbit burst %s limit 1000000\n' eth2 12000000 6000
  printf 'qdisc replace dev %s parent 1:1 handle 10: %s\n' eth2 'pfifo limit 137'
  printf 'qdisc replace dev %s root handle 2: %s\n' sv-down 'netem limit 1928 delay 10000us loss random 0.1%'
  printf 'qdisc add dev %s handle ffff: ingress\n' eth1
  printf 'filter add dev %s parent ffff: prio 60000 protocol all u32 match u32 0 0 action mirred egress redirect dev %s\n' eth1 sv-down
  printf 'qdisc replace dev %s root handle 2: %s\n' sv-up 'netem limit 1928 delay 10000us'
  printf 'qdisc add dev %s handle ffff: ingress\n' eth2
  printf 'filter add dev %s parent ffff: prio 60000 protocol all u32 match u32 0 0 action mirred egress redirect dev %s\n' eth2 sv-up
} | tc -batch - || fail "the bottleneck was refused by tc"
ethtool -k eth1 | while read -r feature value _; do
  case $feature in
    tcp-segmentation-offload: | generic-segmentation-offload: | generic-receive-offload: | large-receive-offload: | tx-udp-segmentation: | rx-gro-list:)
      echo offload.eth1".${feature%:}=$value" ;;
  esac
done
ethtool -k eth2 | while read -r feature value _; do
  case $feature in
    tcp-segmentation-offload: | generic-segmentation-offload: | generic-receive-offload: | large-receive-offload: | tx-udp-segmentation: | rx-gro-list:)
      echo offload.eth2".${feature%:}=$value" ;;
  esac
done
read -r value </sys/class/net/eth1/mtu && echo mtu.eth1"=$value"
read -r value </sys/class/net/eth2/mtu && echo mtu.eth2"=$value"
tc -d qdisc show | while read -r _ kind handle _ device rest; do
  case $device in eth2 | eth1 | sv-*) ;; *) continue ;; esac
  rest=${rest#root } rest=${rest#refcnt * } rest=${rest#parent * }
  echo "qdisc.$device.$handle=$kind $rest"
done
for device in /sys/class/net/sv-*; do
  [ ! -e "$device" ] || echo "device.${device##*/}=present"
done
exit 0
