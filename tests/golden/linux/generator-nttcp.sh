# ==== timed client ====
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out sh -c 'timeout --foreground "$0" "$@"; [ $? = 124 ]' 6 nttcp -T -t -p 5001 -l 4096 -n 2000000000 172.16.11.2
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
launch late-server 40 late-server.out nttcp -i -p 5001
await 5 listening 5001 || { cat late-server.err >&2; fail "nttcp does not listen on port "5001; }
exit 0
# ==== sized client ====
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out nttcp -T -t -p 5001 -l 4096 -n 245 172.16.11.2
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
launch late-server 40 late-server.out nttcp -i -p 5001
await 5 listening 5001 || { cat late-server.err >&2; fail "nttcp does not listen on port "5001; }
exit 0
