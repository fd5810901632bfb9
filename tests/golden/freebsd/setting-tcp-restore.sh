set --
set -- "$@" net.inet.tcp.rfc1323 1
set -- "$@" net.inet.tcp.hostcache.enable 1
set -- "$@" net.inet.tcp.hostcache.expire 3600
set -- "$@" net.inet.tcp.hostcache.prune 300
set -- "$@" net.inet.tcp.ecn.enable 2
set -- "$@" net.inet.tcp.sack.enable 1
set -- "$@" net.inet.tcp.delayed_ack absent
back "$@"
