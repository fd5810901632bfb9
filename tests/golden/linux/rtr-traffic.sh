# When a generator ends or the controller sends an order, a file in the trial's folder says so. A word in the named pipe
# `events` only wakes the watch, so no event is missed while no watch is running.

# at NS: wait until this time of the host's clock; SIGTERM ends the waiting process. The last 60 ms are a separate wait,
# since sleep(1) counts from when it has been loaded, which takes up to that long on a slow host.
at() {
  while at_rest=$(($1 - $(now_ns))) && [ "$at_rest" -gt 10000000 ]; do
    [ "$at_rest" -le 70000000 ] || at_rest=$((at_rest - 60000000))
    sleep "$((at_rest / 1000000000)).$(printf %09d $((at_rest % 1000000000)))" & at_pid=$!
    trap 'kill "$at_pid"; exit 0' TERM
    wait "$at_pid"
    trap - TERM
  done
}
# finish CLIENT: end it on request; a client that has not started will not start.
finish() {
  ended "$1" && return 0
  : >"$1.finished"
  if [ -e "$1.pid" ]; then halt "$1"; else : >"$1.out"; echo unstarted >"$1.exit"; fi
}
# call_off: end all clients, and the process that waits to start the next one.
call_off() {
  for c_name in $clients; do finish "$c_name"; done
  [ -s starter ] || return 0
  read -r c_pid <starter
  kill "$c_pid" 2>/dev/null
  : >starter
}
# heard CLIENT: report once how CLIENT ended. Return 1 if it failed: its exit code is not 0, or it ended too early.
heard() {
  [ -e "$1.heard" ] && return 0
  : >"$1.heard"
  [ -e "$1.finished" ] && return 0
  read -r h_code <"$1.exit"
  [ "$h_code" = 0 ] || { echo "failed $1 ended with exit code $h_code"; return 1; }
  due_of "$1"
  [ "$due_ns" = 0 ] || [ "$(now_ns)" -ge "$due_ns" ] || { echo "failed $1 ended too early, with exit code 0"; return 1; }
}
# lost LOGGER: report a logger that ended by itself.
lost() {
  read -r g_code <"$1.exit"
  g_began=$(instants "$1.pid"); g_began=${g_began##* }
  g_lasted=$((($(now_ns) - ${g_began%.*}${g_began#*.}) / 100000000)) g_said=
  [ ! -e "$1.err" ] || while IFS= read -r g_line || [ -n "$g_line" ]; do [ -z "$g_line" ] || g_said=": $g_line"; done <"$1.err"
  echo "lost $1 ended by itself after $((g_lasted / 10)).$((g_lasted % 10)) s with exit code $g_code$g_said"
}
# look WORD: handle all events since the last look; return 1 after reporting one to the controller. WORD is what woke
# the watch. If it begins with `trouble`, it comes from the sentinel, and its text is the report. Other processes that
# find trouble write a line to the file `trouble` and wake the watch.
look() {
  case $1 in "trouble "*) echo "${1#trouble }"; call_off; return 1 ;; esac
  if [ -s trouble ]; then
    read -r k_word <trouble
    echo "failed $k_word"; call_off; rm trouble
    return 1
  fi
  for k_name in $loggers; do
    if ended "$k_name"; then lost "$k_name"; call_off; return 1; fi
  done
  [ ! -e order-stop ] || call_off
  k_open=0 k_told=0
  for k_name in $clients; do
    [ ! -e "$k_name.halt" ] || finish "$k_name"
    if ended "$k_name"; then
      heard "$k_name" || { call_off; return 1; }
    elif [ -e "$k_name.doubt" ]; then
      echo "failed $k_name still ran after its server had ended"; call_off; return 1
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
watch() {
  w_word=
  while look "$w_word"; do IFS= read -r w_word <&3; done
}
# ---- the step itself ----
listen
sentinel() {
  trap '[ -z "$s_pid" ] || kill "$s_pid"; exit 0' TERM
  s_pid='' s_floor='' s_ceiling='' s_rest=5
  while :; do
    sleep "$s_rest" & s_pid=$!
    wait "$s_pid" && [ -p events ] || exit 0 # its sleep was killed with all processes of the campaign, or the trial's folder is gone
    s_early=
    [ ! -r /proc/uptime ] || read -r s_early _ </proc/uptime
    set -- $(df -Pk .)
    [ "${11:-48829}" -ge 48829 ] || tell_trouble disk "$((${11} * 1024 / 1000000))MB are free in $dir"
    if clock_at_boot; then
      [ -n "$s_floor" ] || s_floor=$b_floor s_ceiling=$b_ceiling
      s_step=0
      [ "$b_floor" -le "$s_ceiling" ] || s_step=$((b_floor - s_ceiling))
      [ "$b_ceiling" -ge "$s_floor" ] || s_step=$((b_ceiling - s_floor))
      [ "${s_step#-}" -le 50000000 ] || tell_trouble clock "stepped by $((s_step / 1000000)) ms"
    fi
    [ -n "$s_early" ] || continue
    read -r s_late _ </proc/uptime
    s_spent=$((${s_late%.*} * 100 + 1${s_late#*.} - ${s_early%.*} * 100 - 1${s_early#*.}))
    s_rest=$((s_spent / 2))
    [ "$s_rest" -ge 1 ] || s_rest=1
    [ "$s_rest" -le 30 ] || s_rest=30
  done
}
tell_trouble() { echo "trouble $*" 1<>events; }
if [ ! -e sentinel.pid ]; then
  ( sentinel ) </dev/null >/dev/null 2>&1 3>&- &
  echo "$!" >sentinel.pid
fi
clients=''
servers=''
named=''
loggers=rtr-queue
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
