back net.inet.tcp.recvspace 65536 net.inet.tcp.recvbuf_auto 1 kern.ipc.maxsockbuf 2097152
