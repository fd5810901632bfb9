net.inet.tcp.rfc1323=1
net.inet.tcp.ecn.enable=2
net.inet.tcp.sack.enable=1
net.inet.tcp.delayed_ack=0
hostcache.enabled=no
net.inet.tcp.hostcache.expire=1
net.inet.tcp.hostcache.prune=5
