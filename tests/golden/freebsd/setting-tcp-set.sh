set -- net.inet.tcp.rfc1323 1
set -- "$@" net.inet.tcp.ecn.enable 2
set -- "$@" net.inet.tcp.sack.enable 1
set -- "$@" net.inet.tcp.delayed_ack 0
set -- "$@" net.inet.tcp.hostcache.enable 0
set -- "$@" net.inet.tcp.hostcache.expire 1 net.inet.tcp.hostcache.prune 5
turn "$@"
sysctl net.inet.tcp.hostcache.purgenow=1 >/dev/null 2>&1 || turn net.inet.tcp.hostcache.purge 1
