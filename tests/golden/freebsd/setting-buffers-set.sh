turn kern.ipc.maxsockbuf 16776960
turn net.inet.tcp.sendbuf_max 14912853
turn net.inet.tcp.recvspace 2097152
turn net.inet.tcp.recvbuf_max 14912853
