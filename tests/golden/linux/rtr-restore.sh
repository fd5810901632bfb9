halt sentinel
halt rtr-queue
{
  printf 'qdisc del dev %s root\n' eth2
  printf 'qdisc del dev %s ingress\n' eth1
  printf 'qdisc del dev %s ingress\n' eth2
} | batch tc -force 2>&1
for device in /sys/class/net/sv-*; do
  [ ! -e "$device" ] || root ip link del "${device##*/}"
done
root ip link set dev eth1 mtu 1500
root ip link set dev eth2 mtu 1500
set --
set -- "$@" tso on
[ $# -eq 0 ] || root ethtool -K eth1 "$@" >/dev/null
set --
set -- "$@" gro on
set -- "$@" rx-gro-list on
[ $# -eq 0 ] || root ethtool -K eth2 "$@" >/dev/null
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
ethtool -k eth2 | while read -r feature value _; do
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
  echo offload.eth2".$feature=$value"
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
