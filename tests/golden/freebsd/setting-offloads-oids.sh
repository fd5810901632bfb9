net.inet.tcp.tso net.inet.ip.forwarding net.inet6.ip6.forwarding
