set --
set -- "$@" net.inet.tcp.recvbuf_max 2097152
set -- "$@" net.inet.tcp.sendbuf_max 2097152
back "$@" net.inet.tcp.recvspace 65536 kern.ipc.maxsockbuf 2097152
