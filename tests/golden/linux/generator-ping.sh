# ==== timed client ====
listen
(
at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out sh -c 'unanswered=$0 most=$1; shift; timeout --foreground -s INT "$most" ping "$@"; code=$?; [ "$code" = 0 ] || [ "$code" = "$unanswered" ] || [ "$code" = 124 ]' 1 9 \
  -n -c 7 -i 1 -s 56 -I 172.16.10.2 172.16.11.2
fi
) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >starter
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
clients=late-client
servers=''
named=''
loggers=''
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
(
at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out sh -c 'unanswered=$0 most=$1; shift; timeout --foreground -s INT "$most" ping "$@"; code=$?; [ "$code" = 0 ] || [ "$code" = "$unanswered" ] || [ "$code" = 124 ]' 1 17859 \
  -n -c 17857 -i 1 -s 56 -Q 184 -I 172.16.10.2 172.16.11.2
fi
) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >starter
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
clients=late-client
servers=''
named=''
loggers=''
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
