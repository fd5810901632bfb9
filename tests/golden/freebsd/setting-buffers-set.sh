set --
set -- "$@" kern.ipc.maxsockbuf 16776960
set -- "$@" net.inet.tcp.sendbuf_max 14912853
set -- "$@" net.inet.tcp.recvspace 2097152
set -- "$@" net.inet.tcp.recvbuf_max 14912853
turn "$@"
