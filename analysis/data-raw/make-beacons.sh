#!/bin/sh
# Makes the captures beacons-*.pcap.gz, as root, in the folder in which it is started: two hosts on a bridge exchange data, and a third sends 24
# multicast pings. The clock of the receiver's capture is then set forward by 0.25 s.
set -eu
until_true() { # until_true COMMAND...: for at most 10 s
  for i in $(seq 100); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.1; done
  echo "not in 10 s: $*" >&2; exit 1
}
for n in br a b c; do ip netns add ck$n; ip -n ck$n link set lo up; ip netns exec ck$n sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1; done
trap 'for n in br a b c; do ip netns del ck$n; done' EXIT
ip -n ckbr link add br0 type bridge mcast_snooping 0; ip -n ckbr link set br0 up
i=1; for n in a b c; do ip -n ck$n link add e0 type veth peer name to$n netns ckbr; ip -n ckbr link set to$n master br0 up; ip -n ck$n addr add 172.16.12.$i/24 dev e0; ip netns exec ck$n ethtool -K e0 tso off gso off gro off >/dev/null; ip -n ck$n link set e0 up; i=$((i+1)); done
ip -n ckc route add 224.0.0.0/4 dev e0
ip netns exec cka sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts=1
until_true ip netns exec cka ping -c 1 -W 1 172.16.12.2
until_true ip netns exec ckc ping -c 1 -W 1 172.16.12.1
ip netns exec cka tcpdump -i e0 -s 96 -n --time-stamp-precision=nano --immediate-mode -U -w beacons-sender.pcap ip 2>sender.log & p1=$!
ip netns exec ckb tcpdump -i e0 -s 96 -n --time-stamp-precision=nano --immediate-mode -U -w exact.pcap ip 2>receiver.log & p2=$!
ip netns exec ckb iperf3 -s -1 >/dev/null &
until_true grep -q 'listening on' sender.log
until_true grep -q 'listening on' receiver.log
until_true sh -c 'ip netns exec ckb ss -Hltn "sport = 5201" | grep -q .'
ip netns exec ckc ping -c 24 -i 0.1 -t 1 224.0.0.1 >/dev/null & p3=$!
until_true sh -c 'tcpdump -r exact.pcap -n icmp | grep -c . | grep -qx "[5-9]\|1."' # the data begins among the pings
ip netns exec cka iperf3 -c 172.16.12.2 -t 1 -b 800K -l 1448 >iperf3.log
wait $p3 || [ $? = 1 ] # 1: nobody has answered
kill -INT $p1 $p2; wait $p1 $p2
editcap -t 0.25 exact.pcap beacons-receiver.pcap
gzip -9 -n -f beacons-sender.pcap beacons-receiver.pcap
