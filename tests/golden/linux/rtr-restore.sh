halt sentinel
halt rtr-queue
{
  : # a shell accepts no empty list of commands
  printf 'qdisc del dev %s root handle 1:\n' eth2
  printf 'qdisc del dev %s ingress\n' eth1
  printf 'qdisc del dev %s ingress\n' eth2
} | batch tc -force 2>&1
set -- /sys/class/net/sv-*
[ ! -e "$1" ] || for device; do echo "link del ${device##*/}"; done | batch ip -force
root ip link set dev eth1 mtu 1500 && await 20 linked eth1
root ip link set dev eth2 mtu 1500 && await 20 linked eth2
set --
set -- "$@" tso on
[ $# -eq 0 ] || root ethtool -K eth1 "$@" >/dev/null
set --
set -- "$@" gro on
set -- "$@" rx-gro-list on
[ $# -eq 0 ] || root ethtool -K eth2 "$@" >/dev/null
feature() { # FEATURE: VALUE, a line of ethtool -k
  case ${1-} in
    tcp-segmentation-offload:) echo "offload.$interface.tso=$2" ;;
    generic-segmentation-offload:) echo "offload.$interface.gso=$2" ;;
    generic-receive-offload:) echo "offload.$interface.gro=$2" ;;
    large-receive-offload:) echo "offload.$interface.lro=$2" ;;
    rx-checksumming:) echo "offload.$interface.rx=$2" ;;
    tx-checksumming:) echo "offload.$interface.tx=$2" ;;
    tx-udp-segmentation: | rx-gro-list: | rx-udp-gro-forwarding: | rx-gro-hw:) echo "offload.$interface.${1%:}=$2" ;;
  esac
}
for interface in eth1 eth2; do each_line feature "$(ethtool -k "$interface")"; done
address6() { [ "${3-}" != inet6 ] || s_six="$s_six$4 "; }
route6() { case "$* " in *' proto kernel '* | *' proto ra '* | fe80:*) ;; *) s_six="$s_six$*, "; esac; }
read -r value </sys/class/net/eth1/mtu && echo mtu.eth1"=$value"
s_off=/proc/sys/net/ipv6/conf/eth1/disable_ipv6 value=1
[ ! -e "$s_off" ] || read -r value <"$s_off" # a kernel without IPv6 does not have this file
if [ "$value" = 0 ]; then
  s_six=''; each_line address6 "$(ip -6 -o addr show dev eth1 scope global permanent)"
  echo inet6.eth1"=$s_six"
  s_six=''; each_line route6 "$(ip -6 route show dev eth1)"
  echo routes6.eth1"=$s_six"
fi
read -r value </sys/class/net/eth2/mtu && echo mtu.eth2"=$value"
s_off=/proc/sys/net/ipv6/conf/eth2/disable_ipv6 value=1
[ ! -e "$s_off" ] || read -r value <"$s_off" # a kernel without IPv6 does not have this file
if [ "$value" = 0 ]; then
  s_six=''; each_line address6 "$(ip -6 -o addr show dev eth2 scope global permanent)"
  echo inet6.eth2"=$s_six"
  s_six=''; each_line route6 "$(ip -6 route show dev eth2)"
  echo routes6.eth2"=$s_six"
fi
discipline() { # qdisc KIND HANDLE dev DEVICE...
  case ${5-} in eth2 | eth1 | sv-*) ;; *) return ;; esac
  kind=$2 handle=$3 device=$5; shift 5
  rest=$*
  rest=${rest#root } rest=${rest#refcnt * } rest=${rest#parent * }
  echo "qdisc.$device.$handle=$kind $rest"
}
each_line discipline "${c_shown:-$(tc -d qdisc show)}"
c_shown=
for device in /sys/class/net/sv-*; do
  [ ! -e "$device" ] || echo "device.${device##*/}=present"
done
exit 0
