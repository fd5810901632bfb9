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
root ip link set dev eth1 mtu 1500 && await 20 linked eth1
set --
set -- "$@" tso on
[ $# -eq 0 ] || root ethtool -K eth1 "$@" >/dev/null
kernel_values /proc/sys/net/ipv4/tcp_wmem /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_ecn /proc/sys/net/ipv4/tcp_sack /proc/sys/net/ipv4/tcp_timestamps /proc/sys/net/ipv4/tcp_window_scaling /proc/sys/net/ipv4/tcp_no_metrics_save /proc/sys/net/ipv4/tcp_moderate_rcvbuf /proc/sys/net/ipv4/tcp_adv_win_scale
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
for interface in eth1; do each_line feature "$(ethtool -k "$interface")"; done
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
set --
kernel_value /proc/sys/net/ipv4/tcp_wmem && set -- $value
kernel_value /proc/sys/net/ipv4/tcp_rmem && set -- "$@" $value
[ $# != 6 ] || printf 'tcp_%s=%s\n' wmem.low "$1" wmem.default "$2" wmem.max "$3" rmem.low "$4" rmem.default "$5" rmem.max "$6"
for name in tcp_ecn tcp_sack tcp_timestamps tcp_window_scaling tcp_no_metrics_save; do
  kernel_value "/proc/sys/net/ipv4/$name" && echo "$name=$value"
done
set --
for name in tcp_moderate_rcvbuf tcp_adv_win_scale tcp_rmem; do kernel_value "/proc/sys/net/ipv4/$name" && set -- "$@" $value; done
[ $# != 5 ] || printf 'tcp_moderate_rcvbuf=%s\ntcp_adv_win_scale=%s\ntcp_rmem=%s %s %s\n' "$@"
echo route.172.16.10.2"=$(ip -4 route show 172.16.10.2/32)"
exit 0
