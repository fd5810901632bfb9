# ==== timed client ====
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out python3 -IS -c <udp.py> call 172.16.11.2 5001 172.16.10.2 6 60 0.01 0
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
launch late-server 40 late-server.out python3 -IS -c <udp.py> serve 172.16.11.2 5001 130:40 0.05 0
await 5 listening_udp 5001 || { cat late-server.err >&2; fail "nothing takes packets on UDP port "5001; }
exit 0
# ==== sized client ====
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out python3 -IS -c <udp.py> call 172.16.11.2 5001 172.16.10.2 166.666666667 60 0.01 46
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
launch late-server 40 late-server.out python3 -IS -c <udp.py> serve 172.16.11.2 5001 130:40 0.05 46
await 5 listening_udp 5001 || { cat late-server.err >&2; fail "nothing takes packets on UDP port "5001; }
exit 0
