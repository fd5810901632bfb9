set --
set -- "$@" tso off
set -- "$@" gso off
set -- "$@" gro off
set -- "$@" lro off
if [ $# -gt 0 ] && ! root ethtool -K eth1 "$@" >/dev/null 2>&1; then
  # A feature that cannot be changed must not prevent others from being changed; the result is read back.
  while [ $# -gt 0 ]; do root ethtool -K eth1 "$1" "$2" >/dev/null; shift 2; done
fi
root ip link set dev eth1 mtu 600 || fail "mtu "600" was refused by "eth1
await 20 linked eth1 || fail eth1" has no link 20 s after its MTU was set"
put_in /proc/sys/net/ipv4/tcp_wmem 4096" "262144" "33554432 || fail "the kernel refused net.ipv4."tcp_wmem
put() {
  [ -e "/proc/sys/net/ipv4/$1" ] || fail "this kernel has no net.ipv4.$1"
  put_in /proc/sys/net/ipv4/"$1" "$2" || fail "the kernel refused net.ipv4.$1=$2"
}
put tcp_ecn 0
put tcp_sack 1
put tcp_timestamps 1
put tcp_window_scaling 1
put tcp_no_metrics_save 1
root ip tcp_metrics flush >/dev/null || fail "the cache of TCP metrics could not be emptied"
cc=reno
read -r offered </proc/sys/net/ipv4/tcp_available_congestion_control
read -r allowed </proc/sys/net/ipv4/tcp_allowed_congestion_control || allowed=none
helper=modprobe; [ ! -e /proc/sys/kernel/modprobe ] || read -r helper </proc/sys/kernel/modprobe
case " $offered " in *" $cc "*) ;; *) root "$helper" "tcp_$cc" || fail "this kernel does not offer the congestion control $cc; it offers: $offered" ;; esac
put_in /proc/sys/net/ipv4/tcp_congestion_control "$cc" || fail "the congestion control $cc was refused; a network namespace may only choose what the machine allows: $allowed"
kernel_values /proc/sys/net/ipv4/tcp_wmem /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_ecn /proc/sys/net/ipv4/tcp_sack /proc/sys/net/ipv4/tcp_timestamps /proc/sys/net/ipv4/tcp_window_scaling /proc/sys/net/ipv4/tcp_no_metrics_save
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
read -r value </proc/sys/net/ipv4/tcp_congestion_control && echo "cc=$value"
exit 0
