# ==== timed client ====
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out nuttcp -t -u -fparse -i 1 -P 7001 -p 5001 -l 1400 -R 1000 -T 6 172.16.11.2
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
launch late-server 40 late-server.out nuttcp -S --nofork -P 7001
await 5 listening 7001 || { cat late-server.err >&2; fail "nuttcp does not listen on port "7001; }
exit 0
# ==== sized client ====
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out nuttcp -t -u -fparse -i 1 -P 7001 -p 5001 -l 1400 -R 1000 -c 46 -n 715 172.16.11.2
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
launch late-server 40 late-server.out nuttcp -S --nofork -P 7001
await 5 listening 7001 || { cat late-server.err >&2; fail "nuttcp does not listen on port "7001; }
exit 0
