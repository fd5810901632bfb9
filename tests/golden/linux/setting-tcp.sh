# ---- read
for name in tcp_ecn tcp_sack tcp_timestamps tcp_window_scaling tcp_no_metrics_save tcp_moderate_rcvbuf tcp_notsent_lowat; do
  kernel_value "/proc/sys/net/ipv4/$name" && echo "$name=$value"
done
# ---- set
put() {
  [ -e "/proc/sys/net/ipv4/$1" ] || fail "this kernel has no net.ipv4.$1"
  put_in /proc/sys/net/ipv4/"$1" "$2" || fail "the kernel refused net.ipv4.$1=$2"
}
put tcp_ecn 2
put tcp_sack 0
put tcp_timestamps 1
put tcp_window_scaling 1
put tcp_no_metrics_save 1
put tcp_moderate_rcvbuf 0
put tcp_notsent_lowat 131072
root ip tcp_metrics flush >/dev/null || fail "the cache of TCP metrics could not be emptied"
# ---- wanted
tcp_ecn=2
tcp_sack=0
tcp_timestamps=1
tcp_window_scaling=1
tcp_no_metrics_save=1
tcp_moderate_rcvbuf=0
tcp_notsent_lowat=131072
# ---- restore
put_in /proc/sys/net/ipv4/tcp_ecn 2
put_in /proc/sys/net/ipv4/tcp_sack 1
put_in /proc/sys/net/ipv4/tcp_timestamps 1
put_in /proc/sys/net/ipv4/tcp_window_scaling 1
put_in /proc/sys/net/ipv4/tcp_no_metrics_save 1
put_in /proc/sys/net/ipv4/tcp_moderate_rcvbuf 1
put_in /proc/sys/net/ipv4/tcp_notsent_lowat 4294967295
