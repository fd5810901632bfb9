# ==== timed client ====
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
FROM=172.16.10.2 TO=172.16.11.2 PORT=5001 DURATION_S=6 SIZE_BYTES='' LIMIT_S=17.5
export FROM TO PORT DURATION_S SIZE_BYTES LIMIT_S
launch late-client 17.5 late-client.out sh -c 'echo the flow has no run >&2; exit 2'
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
FROM=172.16.10.2 TO=172.16.11.2 PORT=5001 DURATION_S=6 SIZE_BYTES='' LIMIT_S=40
export FROM TO PORT DURATION_S SIZE_BYTES LIMIT_S
launch late-server 40 late-server.out sh -c 'sleep $LIMIT_S'
exit 0
# ==== sized client ====
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
FROM=172.16.10.2 TO=172.16.11.2 PORT=5001 DURATION_S='' SIZE_BYTES=1000000 LIMIT_S=17.5
export FROM TO PORT DURATION_S SIZE_BYTES LIMIT_S
launch late-client 17.5 late-client.out sh -c 'echo the flow has no run >&2; exit 2'
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
FROM=172.16.10.2 TO=172.16.11.2 PORT=5001 DURATION_S='' SIZE_BYTES=1000000 LIMIT_S=40
export FROM TO PORT DURATION_S SIZE_BYTES LIMIT_S
launch late-server 40 late-server.out sh -c 'sleep $LIMIT_S'
exit 0
