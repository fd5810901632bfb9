net.inet.tcp.recvbuf_auto net.inet.tcp.recvspace kern.ipc.maxsockbuf
