sysctl -N net.inet.tcp.cc
