# The shell of samovar/hosts/remote_shell.py, sent once per connection; POSIX sh only (dash, FreeBSD's sh).
#
# $d is the folder of this shell. Its files:
#   script, out.N, err.N  the current script and its outputs
#   running               the mark in the environment of the script's processes while it runs, else empty
#   on-loss               the script to run when the controller is gone
#   ending                exists while that script runs
#   watch                 the PID of the process that waits for heartbeats
#   lease                 the path of the lease of this host
#   room                  emptied before a script and written after it, to notice a disk too full for its output
# Starting programs is slow in a virtual lab, so read and printf are used where they suffice: a run starts sh once, and
# head for each output that is not empty.
umask 077
d=$(mktemp -d "/tmp/samovar-$samovar_host.XXXXXXXXXX") || exit 1
: >"$d/running"
printf '%s\n' "$$" >"$d/pid"
samovar_name=$1 samovar_count=0 samovar_child=
samovar_job() { # MARK LIMIT_BYTES
  trap : HUP INT TERM # a script may signal its process group, which is that of this shell
  samovar_out=$d/out.$samovar_count samovar_err=$d/err.$samovar_count
  : >"$d/room"
  SAMOVAR_RUN=$samovar_name-$samovar_count- /bin/sh "$d/script" </dev/null >"$samovar_out" 2>"$samovar_err"
  samovar_code=$? samovar_full=
  if ! printf . >>"$d/room"; then # before any file here is emptied, which would make room
    samovar_full="no room in /tmp for the output of the script"
    if [ "$samovar_code" = 0 ]; then samovar_code=74; fi
  fi
  : >"$d/running"
  if [ -e "$d/ending" ]; then return; fi # killed because the controller is gone: print nothing
  printf '\n%s %s\n' "$1" "$samovar_code"
  if [ -s "$samovar_out" ]; then head -c "$2" "$samovar_out"; fi
  printf '%s' "$1"
  if [ -s "$samovar_err" ]; then head -c "$2" "$samovar_err"; fi
  printf '%s%s' "$samovar_full" "$1"
}
samovar_await() { if [ -n "$samovar_child" ]; then wait "$samovar_child"; fi; }
# Each script has its own output files, because processes that it leaves behind may continue to write to them.
samovar_run() { # MARK LIMIT_BYTES
  samovar_await
  if [ "$samovar_count" -gt 0 ]; then : >"$d/out.$samovar_count" 2>"$d/err.$samovar_count"; fi
  samovar_count=$((samovar_count + 1))
  if [ "$((samovar_count % 100))" = 0 ]; then rm -f "$d"/out.* "$d"/err.*; fi
  # Write the mark before the child starts, because a child that is killed early could not write it.
  if ! printf '%s\n' "$samovar_name-$samovar_count-" >"$d/running"; then samovar_unwritten "$1"; return; fi
  samovar_job "$@" & samovar_child=$!
}
samovar_unwritten() { printf '\n%s 74\n%sno room for the script in /tmp\n%s' "$1" "$1" "$1"; }
samovar_first() { grep "$@" | while read -r samovar_word _; do echo "$samovar_word"; done; }
# Kill the script of folder $1 and all processes that it has started, whatever their parents, groups and sessions are:
# ps shows the mark in their environment. Repeat this, because they may start others meanwhile. If the script of this
# shell has no process, it is about to start or has just ended; samovar_job then starts it or empties `running`.
samovar_kill() {
  samovar_rounds=100
  while [ -s "$1/running" ] && [ "$samovar_rounds" -gt 0 ]; do
    samovar_rounds=$((samovar_rounds - 1))
    read -r samovar_mark <"$1/running"
    # The file may just have been emptied, and without a mark every script of samovar on this host would match.
    if [ -z "$samovar_mark" ]; then return; fi
    samovar_pids=$(ps axeww | samovar_first -e "[S]AMOVAR_RUN=$samovar_mark")
    if [ -n "$samovar_pids" ]; then kill -s KILL $samovar_pids
    elif [ "$1" = "$d" ]; then sleep 0.05
    else return; fi
  done
}
# Clean up folder $1 after the controller is gone. If its on-loss script fails, the folder and its log stay.
samovar_lose() {
  : >"$1/ending"
  samovar_kill "$1"
  samovar_await
  if [ ! -s "$1/on-loss" ]; then
    rm -rf "$1"
  elif /bin/sh "$1/on-loss" </dev/null >"$1/on-loss.log" 2>&1; then
    samovar_leave "$1" restored
    rm -rf "$1"
  else
    samovar_leave "$1" changed
    rm -f "$1/ending"
  fi
}
# Note in the lease, if there is one, how the host is left: restored or changed ($2).
samovar_leave() {
  if [ -s "$1/lease" ]; then read -r samovar_held <"$1/lease"; fi
  if [ -n "$samovar_held" ] && [ -f "$samovar_held" ]; then printf 'left %s\n' "$2" >>"$samovar_held"; fi
}
# Heartbeat of the controller: notify the listening process, and update the time of the lease.
samovar_alive() {
  kill -s USR1 "$samovar_watch"
  if [ -s "$d/lease" ]; then read -r samovar_held <"$d/lease"; else return; fi
  if [ -f "$samovar_held" ]; then echo >>"$samovar_held"; fi
}
# Wait for heartbeats, and clean up if none has come for two to three times $1 seconds. (If the controller is frozen or
# the link is cut, the input of the shell does not end.) Two intervals must pass, because the first sleep may have begun
# before the host itself was frozen. This process then takes the place of the shell, which is killed.
samovar_listen() {
  trap '' HUP INT; trap 'samovar_heard=1' USR1; trap 'kill -s KILL "$!"; exit' TERM
  exec </dev/null >/dev/null 2>&1
  samovar_missed=0
  while [ "$samovar_missed" -lt 2 ]; do
    samovar_heard=
    SAMOVAR_WATCH=$samovar_name- sleep "$1" &
    while kill -s 0 "$!"; do wait "$!"; done
    if [ -n "$samovar_heard" ]; then samovar_missed=0; else samovar_missed=$((samovar_missed + 1)); fi
  done
  trap '' USR1 TERM
  read -r samovar_own <"$d/watch" && printf '%s\n' "$samovar_own" >"$d/pid"
  : >"$d/ending"
  kill -s KILL "$$"
  samovar_lose "$d"
  exit
}
samovar_gone() {
  trap '' HUP INT TERM PIPE; trap - EXIT; exec >/dev/null 2>&1
  kill -s TERM "$samovar_watch"
  samovar_lose "$d"
}
samovar_bye() { trap - EXIT; kill -s TERM "$samovar_watch"; samovar_kill "$d"; samovar_await; rm -rf "$d"; exit 0; }
# Clean up after the shell of folder $1, which may not have noticed that its connection was lost. The shell and its
# children have the name $2 in their arguments or environment. Nothing is run from the folder of another user: the
# folder's name may come from a lease, which anybody can write.
samovar_succeed() {
  if [ ! -d "$1" ] || [ -h "$1" ] || [ ! -O "$1" ] || [ -e "$1/ending" ]; then return; fi
  samovar_pids=$(ps axeww | samovar_first -e "sh -s [s]${2#s}" -e "[S]AMOVAR_WATCH=$2-")
  if [ -n "$samovar_pids" ]; then kill -s KILL $samovar_pids; fi
  samovar_lose "$1"
}
# Wait up to 10 s for shells on this host that are cleaning up after their controller.
samovar_others_end() {
  samovar_left=100
  for samovar_file in "/tmp/samovar-$samovar_host".*/ending; do
    [ -e "$samovar_file" ] || continue
    read -r samovar_old <"${samovar_file%ending}pid"
    while [ -e "$samovar_file" ] && kill -0 "$samovar_old" && [ "$samovar_left" -gt 0 ]; do
      samovar_left=$((samovar_left - 1)); sleep 0.1
    done
  done
}
trap samovar_gone EXIT
trap : HUP INT TERM
exec 2>/dev/null
samovar_listen "$samovar_silence" & samovar_watch=$!
printf '%s\n' "$samovar_watch" >"$d/watch"
