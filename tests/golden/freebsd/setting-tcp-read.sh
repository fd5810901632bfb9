knob net.inet.tcp.rfc1323
knob net.inet.tcp.ecn.enable
knob net.inet.tcp.sack.enable
knob net.inet.tcp.delayed_ack
for oid in enable expire prune; do knob "net.inet.tcp.hostcache.$oid"; done
if [ "$(sysctl -n net.inet.tcp.hostcache.enable 2>/dev/null || echo 0)" = 0 ]; then echo hostcache.enabled=no; else echo hostcache.enabled=yes; fi
