#!/bin/sh
# Makes a pair of real captures: sender -- router (bottleneck) -- receiver, each in a network namespace of this kernel.
# usage (as root): make-captures.sh FOLDER [seconds] [rate] [flows] [buffer packets] [outage]
# outage: the router drops all packets to the receiver for one second, from this number of seconds after the start
# leaves FOLDER/sender.pcap and FOLDER/receiver.pcap (nanoseconds, 96 bytes of each packet) and FOLDER/queue.json
set -eu
folder=$1; seconds=${2:-3}; rate=${3:-10mbit}; flows=${4:-1}; buffer=${5:-30}; outage=${6:-}
snd=samt$$s; rtr=samt$$r; rcv=samt$$d
pids=
cleanup() {
  for pid in $pids; do kill "$pid" 2>/dev/null || true; done
  for ns in $snd $rtr $rcv; do ip netns del "$ns" 2>/dev/null || true; done
}
trap cleanup EXIT
for ns in $snd $rtr $rcv; do
  ip netns add "$ns"
  # Neighbour discovery would share the queue and its drops.
  ip netns exec "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
  ip -n "$ns" link set lo up
done
ip -n $snd link add left type veth peer name left netns $rtr
ip -n $rcv link add right type veth peer name right netns $rtr
ip -n $snd addr add 172.16.10.2/24 dev left;  ip -n $rtr addr add 172.16.10.1/24 dev left
ip -n $rcv addr add 172.16.11.2/24 dev right; ip -n $rtr addr add 172.16.11.1/24 dev right
for end in "$snd left" "$rtr left" "$rtr right" "$rcv right"; do
  set -- $end
  ip netns exec "$1" ethtool -K "$2" tso off gso off gro off >/dev/null
  ip -n "$1" link set "$2" up
done
ip -n $snd route add default via 172.16.10.1
ip -n $rcv route add default via 172.16.11.1
ip netns exec $rtr sysctl -qw net.ipv4.ip_forward=1
ip netns exec $rtr tc qdisc add dev right root handle 1: tbf rate "$rate" burst 3100 limit 10000000
ip netns exec $rtr tc qdisc add dev right parent 1: handle 10: pfifo limit "$buffer"
ip netns exec $snd tcpdump -i left -s 96 -n --time-stamp-precision=nano --immediate-mode -B 8192 -U -w "$folder/sender.pcap" 2>"$folder/sender.log" & pids="$pids $!"
ip netns exec $rcv tcpdump -i right -s 96 -n --time-stamp-precision=nano --immediate-mode -B 8192 -U -w "$folder/receiver.pcap" 2>"$folder/receiver.log" & pids="$pids $!"
ip netns exec $rcv iperf3 -s -1 >/dev/null & pids="$pids $!"
until grep -q listening "$folder/sender.log" && grep -q listening "$folder/receiver.log" &&
      ip netns exec $rcv ss -Hltn | grep -q 5201; do sleep 0.05; done
ip netns exec $snd ping -c 3 -i 0.05 -q 172.16.11.2 >/dev/null
if [ "$outage" ]; then
  (sleep "$outage"; ip -n $rtr route add blackhole 172.16.11.2/32; sleep 1; ip -n $rtr route del blackhole 172.16.11.2/32) & pids="$pids $!"
fi
# With an outage, the socket buffer must be small: otherwise the data that are in it when iperf3 stops writing would take longer than the outage.
ip netns exec $snd iperf3 -c 172.16.11.2 -t "$seconds" -P "$flows" -C reno ${outage:+-w 64K} >"$folder/iperf3.log"
[ -z "$outage" ] || sleep 3
sleep 0.5
for pid in $pids; do kill -INT "$pid" 2>/dev/null || true; done
wait || true
ip netns exec $rtr tc -s -j qdisc show dev right >"$folder/queue.json"
grep -h "dropped by kernel" "$folder/sender.log" "$folder/receiver.log" >"$folder/drops.log"
