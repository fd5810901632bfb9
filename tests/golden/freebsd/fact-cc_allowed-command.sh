sysctl -n net.inet.tcp.cc.available
