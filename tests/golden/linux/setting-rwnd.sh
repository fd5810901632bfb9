# ---- read
set --
for name in tcp_moderate_rcvbuf tcp_adv_win_scale tcp_rmem; do kernel_value "/proc/sys/net/ipv4/$name" && set -- "$@" $value; done
[ $# != 5 ] || printf 'tcp_moderate_rcvbuf=%s\ntcp_adv_win_scale=%s\ntcp_rmem=%s %s %s\n' "$@"
echo route.172.16.10.2"=$(ip -4 route show 172.16.10.2/32)"
# ---- set
put() { put_in /proc/sys/net/ipv4/"$1" "$2" || fail "the kernel refused net.ipv4.$1=$2"; }
put tcp_moderate_rcvbuf 0
put tcp_adv_win_scale -2
put tcp_rmem '4096 67108864 67108864'
set -- $(ip -4 route get 172.16.10.2)
via='' device=''
while [ $# -gt 1 ]; do
  case $1 in via) via="via $2" ;; dev) device=$2 ;; esac
  shift
done
[ -n "$device" ] || fail "no route to "172.16.10.2
root ip -4 route replace 172.16.10.2/32 $via dev "$device" window 200000 || fail "no window could be set on the route to "172.16.10.2
# ---- fit
put_in /proc/sys/net/ipv4/tcp_rmem '4096 315948 315948' || fail "the kernel refused the receive buffer (net.ipv4.tcp_rmem)"
cat /proc/sys/net/ipv4/tcp_rmem
# ---- wanted
tcp_moderate_rcvbuf=0
tcp_adv_win_scale=-2
route.172.16.10.2*=window 200000
# ---- restore
put_in /proc/sys/net/ipv4/tcp_moderate_rcvbuf 1
put_in /proc/sys/net/ipv4/tcp_adv_win_scale 1
put_in /proc/sys/net/ipv4/tcp_rmem '4096 131072 6291456'
root ip -4 route replace 172.16.10.2/32 via 172.16.11.1 dev eth1
