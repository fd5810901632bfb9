halt rtr-queue
{
  printf 'qdisc del dev %s root\n' eth2
  printf 'qdisc del dev %s ingress\n' eth1
  printf 'qdisc del dev %s ingress\n' eth2
} | tc -force -batch - 2>&1
for device in /sys/class/net/sv-*; do
  [ ! -e "$device" ] || ip link del "${device##*/}"
done
echo 1500 >/sys/class/net/eth1/mtu
echo 1500 >/sys/class/net/eth2/mtu
set --
set -- "$@" tcp-segmentation-offload on
[ $# -eq 0 ] || ethtool -K eth1 "$@" >/dev/null
set --
set -- "$@" generic-receive-offload on
[ $# -eq 0 ] || ethtool -K eth2 "$@" >/dev/null
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
