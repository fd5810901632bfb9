back net.inet.tcp.recvbuf_max 2097152
back net.inet.tcp.sendbuf_max 2097152
back net.inet.tcp.recvspace 65536
back kern.ipc.maxsockbuf 2097152
