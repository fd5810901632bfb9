back net.inet.tcp.recvspace 65536
back net.inet.tcp.recvbuf_auto 1
back kern.ipc.maxsockbuf 2097152
