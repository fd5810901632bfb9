knob net.inet.tcp.rfc1323
knob net.inet.tcp.ecn.enable
knob net.inet.tcp.sack.enable
knob net.inet.tcp.delayed_ack
for oid in enable expire prune; do knob "net.inet.tcp.hostcache.$oid"; done
if kernel_value net.inet.tcp.hostcache.enable && [ "$value" != 0 ]; then echo hostcache.enabled=yes; else echo hostcache.enabled=no; fi
