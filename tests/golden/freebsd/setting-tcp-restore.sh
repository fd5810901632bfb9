back net.inet.tcp.rfc1323 1
back net.inet.tcp.hostcache.enable 1
back net.inet.tcp.hostcache.expire 3600
back net.inet.tcp.hostcache.prune 300
back net.inet.tcp.ecn.enable 2
back net.inet.tcp.sack.enable 1
back net.inet.tcp.delayed_ack absent
