ipfw -q pipe 22001 config bw 40000000bit/s queue 50 && ipfw -q add 51 pipe 22001 ip from any to any out xmit em1 || fail em1" was not limited to "40000000" bit/s"
ipfw -q pipe 22002 config bw 40000000bit/s queue 50 && ipfw -q add 52 pipe 22002 ip from any to any out xmit em2 || fail em2" was not limited to "40000000" bit/s"
firewall_on
