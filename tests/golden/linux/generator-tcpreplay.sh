# ==== timed client ====
capture=''
if [ -z "$capture" ]; then
  capture=late-client.call.pcap
  python3 -IS -c <call.py> "$capture" || fail "no capture could be made"
fi
hop=172.16.11.2 device=
set -- $(ip -o route get 172.16.11.2 from 172.16.10.2)
while [ $# -gt 1 ]; do
  case $1 in via) hop=$2 ;; dev) device=$2 ;; esac
  shift
done
[ -n "$device" ] || fail "no route leads to "172.16.11.2
ping -n -c 1 -W 2 "$hop" >/dev/null || fail "the next hop $hop does not answer"
remote=
set -- $(ip neigh show "$hop" dev "$device")
while [ $# -gt 1 ]; do
  [ "$1" != lladdr ] || remote=$2
  shift
done
read -r own <"/sys/class/net/$device/address"
tcprewrite --infile="$capture" --outfile=late-client.replay.pcap --srcipmap=0.0.0.0/0:172.16.10.2/32 --dstipmap=0.0.0.0/0:172.16.11.2/32 \
  --portmap=0-65535:5001 --enet-smac="$own" --enet-dmac="$remote" --fixcsum || fail "tcprewrite refused $capture"
echo "$device" >late-client.device
exit 0
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
read -r device <late-client.device
launch late-client 17.5 late-client.out sh -c 'timeout --foreground "$0" "$@"; [ $? = 124 ]' 6 tcpreplay -i "$device" --loop=0 --multiplier=1.0 late-client.replay.pcap
fi
) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >>starters
clients=late-client
servers=''
named=''
due_of() {
  case $1 in
  late-client) due_ns=1000000008200000000 ;;
  *) due_ns=0 ;;
  esac
}
rules() {
  :
}
watch
exit 0
# ==== timed server ====
launch late-server 40 late-server.out python3 -IS -c 'import socket, sys
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind((sys.argv[1], int(sys.argv[2])))
while True: sink.recv(65536)' 172.16.11.2 5001
await 5 listening_udp 5001 || { cat late-server.err >&2; fail "nothing takes packets on UDP port "5001; }
exit 0
# ==== sized client ====
capture=''
if [ -z "$capture" ]; then
  capture=late-client.call.pcap
  python3 -IS -c <call.py> "$capture" || fail "no capture could be made"
fi
hop=172.16.11.2 device=
set -- $(ip -o route get 172.16.11.2 from 172.16.10.2)
while [ $# -gt 1 ]; do
  case $1 in via) hop=$2 ;; dev) device=$2 ;; esac
  shift
done
[ -n "$device" ] || fail "no route leads to "172.16.11.2
ping -n -c 1 -W 2 "$hop" >/dev/null || fail "the next hop $hop does not answer"
remote=
set -- $(ip neigh show "$hop" dev "$device")
while [ $# -gt 1 ]; do
  [ "$1" != lladdr ] || remote=$2
  shift
done
read -r own <"/sys/class/net/$device/address"
tcprewrite --infile="$capture" --outfile=late-client.replay.pcap --srcipmap=0.0.0.0/0:172.16.10.2/32 --dstipmap=0.0.0.0/0:172.16.11.2/32 \
  --portmap=0-65535:5001 --enet-smac="$own" --enet-dmac="$remote" --fixcsum || fail "tcprewrite refused $capture"
echo "$device" >late-client.device
exit 0
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
read -r device <late-client.device
launch late-client 17.5 late-client.out tcpreplay -i "$device" --loop=1 --multiplier=1.0 late-client.replay.pcap
fi
) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >>starters
clients=late-client
servers=''
named=''
due_of() {
  case $1 in
  *) due_ns=0 ;;
  esac
}
rules() {
  :
}
watch
exit 0
# ==== sized server ====
launch late-server 40 late-server.out python3 -IS -c 'import socket, sys
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind((sys.argv[1], int(sys.argv[2])))
while True: sink.recv(65536)' 172.16.11.2 5001
await 5 listening_udp 5001 || { cat late-server.err >&2; fail "nothing takes packets on UDP port "5001; }
exit 0
