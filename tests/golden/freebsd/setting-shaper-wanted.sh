net.inet.ip.fw.enable=1
shaper.51*=pipe 22001 ip from any to any out xmit em1
shaper.22001.rate=40000000
shaper.22001.queue*=50 sl
shaper.52*=pipe 22002 ip from any to any out xmit em2
shaper.22002.rate=40000000
shaper.22002.queue*=50 sl
shaper.rules=2
