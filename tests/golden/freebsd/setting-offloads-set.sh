turn net.inet.tcp.tso 0
set --
set -- "$@" -lro
[ $# -eq 0 ] || { ifconfig em1 "$@" || fail em1" refused $*"; restarted em1; }
set --
[ $# -eq 0 ] || { ifconfig em2 "$@" || fail em2" refused $*"; restarted em2; }
