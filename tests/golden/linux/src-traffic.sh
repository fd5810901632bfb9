# A generator's end, and an order of the controller's, are files in the trial's folder; a word in the named pipe `events`
# only wakes the watch up. So nothing is missed between two scripts, and waiting costs no program. The pipe is opened for
# reading and writing, which never blocks.
listen() { [ -p events ] || mkfifo events || exit 70; exec 3<>events; }

# at NS: wait until this host's clock says so. On SIGTERM the one that waits ends.
at() {
  at_rest=$(($1 - $(now_ns)))
  [ "$at_rest" -gt 0 ] || return 0
  sleep "$((at_rest / 1000000000)).$(printf %09d $((at_rest % 1000000000)))" & at_pid=$!
  trap 'kill "$at_pid"; exit 0' TERM
  wait "$at_pid"
  trap - TERM
}
# finish CLIENT: end it, as was asked for; one that has not begun never will.
finish() {
  ended "$1" && return 0
  : >"$1.finished"
  if [ -e "$1.pid" ]; then halt "$1"; else : >"$1.out"; echo unstarted >"$1.exit"; fi
}
# call_off: end all clients and what waits to start one.
call_off() {
  for c_name in $clients; do finish "$c_name"; done
  [ -e starters ] || return 0
  while read -r c_pid; do kill "$c_pid" 2>/dev/null; done <starters
  rm starters
}
# heard CLIENT: take note of its end once; 1 when it has failed: a code other than 0, or an end before its time.
heard() {
  [ -e "$1.heard" ] && return 0
  : >"$1.heard"
  [ -e "$1.finished" ] && return 0
  read -r h_code <"$1.exit"
  [ "$h_code" = 0 ] || { echo "failed $1 with exit code $h_code"; return 1; }
  due_of "$1"
  [ "$due_ns" = 0 ] || [ "$(now_ns)" -ge "$due_ns" ] || { echo "failed $1 by itself before its time"; return 1; }
}
# look: act upon what has happened; 1 when there is something to tell the controller. Whatever else watches over a trial
# writes a line to the file `trouble`, and wakes.
look() {
  if [ -e trouble ]; then
    read -r k_word <trouble
    echo "failed $k_word"; call_off; rm trouble
    return 1
  fi
  [ ! -e order-stop ] || call_off
  k_open=0 k_told=0
  for k_name in $clients; do
    [ ! -e "$k_name.halt" ] || finish "$k_name"
    if ended "$k_name"; then
      heard "$k_name" || { call_off; return 1; }
    elif [ -e "$k_name.doubt" ]; then
      echo "failed $k_name with its server gone"; call_off; return 1
    else
      k_open=$((k_open + 1))
    fi
  done
  rules
  for k_name in $servers; do
    if ended "$k_name" && [ ! -e "$k_name.heard" ]; then
      : >"$k_name.heard"
      read -r k_code <"$k_name.exit"
      [ "$k_code" = 0 ] || { echo "gone $k_name"; k_told=1; }
    fi
  done
  for k_name in $named; do
    if ended "$k_name" && [ ! -e "$k_name.told" ]; then : >"$k_name.told"; echo "ended $k_name"; k_told=1; fi
  done
  if [ "$k_open" = 0 ]; then
    [ ! -e order-stop ] || k_told=1
    if [ -n "$clients" ] && [ ! -e all.told ]; then : >all.told; call_off; echo "idle"; k_told=1; fi
  fi
  [ "$k_told" = 0 ]
}
watch() { while look; do read -r w_word <&3; done; }
# ---- the step itself ----
listen
( at 1800000000000000000
if [ ! -e bulk-client.finished ]; then
launch bulk-client 21 bulk-client.out iperf3 -c 172.16.11.2 -B 172.16.10.2 -p 5001 -J -i 1 -t 6
fi
) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >>starters
( at 1800000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 18.5 late-client.out sh -c '
  begun=$(date +%s)
  nuttcp "$@" && exit
  [ $(($(date +%s) - begun)) -lt 3 ] || exit 1
  sleep 0.5
  exec nuttcp "$@"
' nuttcp -t -fparse -i 1 -P 7002 -p 5002 -l 65536 -T 6 172.16.11.2
fi
) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >>starters
clients='bulk-client late-client'
servers=''
named=''
due_of() {
  case $1 in
  bulk-client) due_ns=1800000005700000000 ;;
  late-client) due_ns=1800000008200000000 ;;
  *) due_ns=0 ;;
  esac
}
rules() {
  :
}
watch
exit 0
