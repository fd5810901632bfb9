# The shell of samovar.testbed.shell, sent once per connection; POSIX sh only (dash, FreeBSD's sh).
#
# $d is this shell's own folder. Files in it: script, out.N, err.N: of the present run; group: the process group of
# the script while it runs, else empty; on-loss: what to run when the controller is gone; ending: that is being done.
# read and printf are built in: what they do costs no exec, the dear thing in a virtual lab.
umask 077
d=$(mktemp -d "/tmp/samovar-$samovar_host.XXXXXXXXXX") || exit 1
: >"$d/group"
printf '%s\n' "$$" >"$d/pid"
if command -v setsid >/dev/null; then
  samovar_own_group() { setsid /bin/sh "$1" & printf '%s\n' "$!" >"$2"; wait "$!"; }
else
  samovar_own_group() { /bin/sh -c 'set -m; /bin/sh "$1" & printf "%s\n" "$!" >"$2"; wait "$!"' sh "$1" "$2"; }
fi
samovar_uptime() { samovar_up=-; if [ -r /proc/uptime ]; then read -r samovar_up _ </proc/uptime; fi; }
samovar_child() { # MARK LIMIT_BYTES
  samovar_out=$d/out.$samovar_number samovar_err=$d/err.$samovar_number
  samovar_uptime; samovar_from=$samovar_up
  samovar_own_group "$d/script" "$d/group" </dev/null >"$samovar_out" 2>"$samovar_err"
  samovar_code=$?
  : >"$d/group"
  samovar_uptime
  printf '\n%s %s %s %s\n' "$1" "$samovar_code" "$samovar_from" "$samovar_up"
  if [ -s "$samovar_out" ]; then head -c "$2" "$samovar_out"; fi
  printf '%s' "$1"
  if [ -s "$samovar_err" ]; then head -c "$2" "$samovar_err"; fi
  printf '%s' "$1"
  : >"$samovar_out" 2>"$samovar_err"
}
# Each script has files of its own for its outputs: what it leaves running may go on writing to them.
samovar_run() { # MARK LIMIT_BYTES
  if [ -n "$samovar_pid" ]; then wait "$samovar_pid"; fi
  samovar_number=$((samovar_number + 1))
  if [ "$samovar_number" -gt 100 ]; then rm -f "$d"/out.* "$d"/err.*; samovar_number=1; fi
  samovar_child "$@" & samovar_pid=$!
}
samovar_unwritten() { printf '\n%s 74 - -\n%sno room for the script in /tmp\n%s' "$1" "$1" "$1"; }
samovar_kill() {
  samovar_group=; read -r samovar_group <"$1/group"
  if [ -z "$samovar_group" ]; then return; fi
  kill -s KILL -- "-$samovar_group" || kill -s KILL "$samovar_group"
}
# What is due when the controller is gone; the folder stays if the clean-up failed, with what it wrote.
samovar_lose() {
  : >"$1/ending"
  samovar_kill "$1"
  if [ ! -s "$1/on-loss" ] || /bin/sh "$1/on-loss" </dev/null >"$1/on-loss.log" 2>&1; then
    rm -rf "$1"
  else
    rm -f "$1/ending"
  fi
}
samovar_gone() { trap '' HUP INT TERM PIPE; trap - EXIT; exec >/dev/null 2>&1; samovar_lose "$d"; }
samovar_bye() { trap - EXIT; samovar_kill "$d"; rm -rf "$d"; exit 0; }
# A number may have been given to another process since; its arguments tell.
samovar_is() { case $(ps -o args= -p "$1") in *"$2"*) ;; *) false ;; esac; }
# Do what is due after the shell of folder $1, called $2, whose connection was lost though it may not know.
samovar_succeed() {
  if [ ! -d "$1" ] || [ -e "$1/ending" ]; then return; fi
  read -r samovar_old <"$1/pid"
  if samovar_is "$samovar_old" "$2"; then kill -s KILL "$samovar_old"; fi
  samovar_group=; read -r samovar_group <"$1/group"
  if [ -n "$samovar_group" ] && ! samovar_is "$samovar_group" "$1/script"; then : >"$1/group"; fi
  samovar_lose "$1"
}
# Wait, 10 s at most, for shells of this host that are cleaning up after a controller.
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
samovar_pid= samovar_number=0
trap samovar_gone EXIT
trap : HUP INT TERM
exec 2>/dev/null
