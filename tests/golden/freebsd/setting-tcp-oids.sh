net.inet.tcp.rfc1323 net.inet.tcp.ecn.enable net.inet.tcp.sack.enable net.inet.tcp.delayed_ack net.inet.tcp.hostcache.enable net.inet.tcp.hostcache.expire net.inet.tcp.hostcache.prune
