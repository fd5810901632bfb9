# ==== timed client ====
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out sh -c 'unanswered=$0; ping "$@"; code=$?; [ "$code" = 0 ] || [ "$code" = "$unanswered" ]' 1 \
  -n -c 7 -i 1 -s 56 -I 172.16.10.2 172.16.11.2
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
# ==== sized client ====
listen
( at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out sh -c 'unanswered=$0; ping "$@"; code=$?; [ "$code" = 0 ] || [ "$code" = "$unanswered" ]' 1 \
  -n -c 17857 -i 1 -s 56 -Q 184 -I 172.16.10.2 172.16.11.2
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
