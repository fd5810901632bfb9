back net.inet.tcp.tso 1
set --
set -- "$@" lro
[ $# -eq 0 ] || { ifconfig em1 "$@" && ( settled em1 ); }
set --
[ $# -eq 0 ] || { ifconfig em2 "$@" && ( settled em2 ); }
