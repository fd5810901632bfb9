kern.ipc.maxsockbuf net.inet.tcp.recvspace net.inet.tcp.recvbuf_auto net.inet.tcp.sendspace net.inet.tcp.sendbuf_max net.inet.tcp.recvbuf_max
