back net.inet.tcp.tso 1
set --
set -- "$@" lro
[ $# -eq 0 ] || { ifconfig em1 "$@" && restarted em1; }
set --
[ $# -eq 0 ] || { ifconfig em2 "$@" && restarted em2; }
