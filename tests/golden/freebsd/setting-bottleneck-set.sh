kernel_value kern.hz && [ "$value" -ge 1000 ] || fail "dummynet uses a clock of kern.hz=$value ticks per second; set kern.hz to 1000 or more in /boot/loader.conf"
set -f
turn net.inet.ip.dummynet.expire 0 net.inet.ip.dummynet.pipe_slot_limit 100000 net.inet.ip.dummynet.pipe_byte_limit 67108864 net.inet.ip.fw.one_pass 0
ipfw -q pipe 20001 config delay 49ms plr 0 || fail "dummynet refused the stage "down1
about='from 172.16.10.2/32 to 172.16.11.2/32 out'
about="$about dst-port "5001
ipfw -q add 41 prob 0.001 skipto 43 ip $about xmit em2 not tagged 20999 || fail "ipfw refused the stage "down1
ipfw -q add 41 pipe 20001 tag 20999 ip $about xmit em2 not tagged 20999 || fail "ipfw refused the stage "down1
ipfw -q pipe 20002 config delay 6ms plr 0.01 || fail "dummynet refused the stage "down
ipfw -q add 42 prob 0.001 skipto 43 ip from any to any out xmit em2 not tagged 20999 || fail "ipfw refused the stage "down
ipfw -q add 42 pipe 20002 ip from any to any out xmit em2 not tagged 20999 || fail "ipfw refused the stage "down
queue='queue 546'
ipfw -q pipe 20999 config bw 40000000bit/s delay 1ms $queue || fail "dummynet refused $queue"
ipfw -q add 43 pipe 20999 ip from any to any out xmit em2 || fail "ipfw refused the queue"
ipfw -q add 44 count ip from any to any out xmit em2 || fail "ipfw refused to count what leaves the queue"
ipfw -q pipe 21001 config delay 49ms plr 0 || fail "dummynet refused the stage "up1
about='from 172.16.11.2/32 to 172.16.10.2/32 out'
about="$about src-port "5001
ipfw -q add 46 pipe 21001 tag 21999 ip $about xmit em1 not tagged 21999 || fail "ipfw refused the stage "up1
ipfw -q pipe 21002 config delay 7ms plr 0 || fail "dummynet refused the stage "up
ipfw -q add 47 pipe 21002 ip from any to any out xmit em1 not tagged 21999 || fail "ipfw refused the stage "up
queue='sched fq_codel target 5ms interval 100ms quantum 1514 limit 1000 flows 1024 ecn'
ipfw -q pipe 21999 config bw 10000000bit/s delay 1ms && ipfw -q sched 21999 config pipe 21999 type ${queue#sched } && ipfw -q queue 21999 config sched 21999 || fail "dummynet refused $queue"
ipfw -q add 48 queue 21999 ip from any to any out xmit em1 || fail "ipfw refused the queue"
ipfw -q add 49 count ip from any to any out xmit em1 || fail "ipfw refused to count what leaves the queue"
set +f
firewall_on
