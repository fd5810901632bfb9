set -u
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export SAMOVAR_CAMPAIGN=full-20260101-000000
dir=/tmp/samovar/full-20260101-000000/newreno-9999KB-600-r1-abc123
[ -d "$dir" ] || mkdir -p "$dir" || exit 70
cd "$dir" || exit 70

fail() { printf '%s\n' "$*" >&2; exit 1; }

# launch NAME LIMIT_S OUTPUT COMMAND...: run in the background for LIMIT_S seconds at most. OUTPUT ending in .gz is
# compressed on the way; NAME.err takes the standard error, NAME.pid the process, NAME.exit its code when all is written.
# Who waits on the named pipe `events` is woken then.
launch() {
  l_name=$1 l_limit=$2 l_output=$3; shift 3
  case $l_output in
    *.gz) ( run_bounded "$@" </dev/null 2>"$l_name.err" | nice -n -5 gzip -1 >"$l_output"; read -r l_code <"$l_name.code"; echo "$l_code" >"$l_name.exit"; wake ) >/dev/null 2>&1 & ;;
    *) ( run_bounded "$@" </dev/null >"$l_output" 2>"$l_name.err"; read -r l_code <"$l_name.code"; echo "$l_code" >"$l_name.exit"; wake ) >/dev/null 2>&1 & ;;
  esac
}
run_bounded() {
  timeout -k 2 "$l_limit" "$@" &
  echo "$!" >"$l_name.pid"
  wait "$!"
  echo "$?" >"$l_name.code"
}

wake() { [ ! -p events ] || echo wake 1<>events; }

# await SECONDS COMMAND...: repeat the command until it succeeds, 20 times a second.
await() {
  a_left=$(($1 * 20)); shift
  until "$@"; do
    a_left=$((a_left - 1))
    [ "$a_left" -gt 0 ] || return 1
    sleep 0.05
  done
}
exists() { [ -e "$1" ]; }
ended() { [ -s "$1.exit" ]; }
has_line() { # FILE TEXT: one line of the file holds the text
  [ -e "$1" ] || return 1
  while IFS= read -r h_line || [ -n "$h_line" ]; do case $h_line in *"$2"*) return 0 ;; esac; done <"$1"
  return 1
}
# halt NAME: end what launch started under this name, if it still runs.
halt() {
  [ -e "$1.pid" ] && ! ended "$1" || return 0
  read -r h_pid <"$1.pid"
  kill -TERM "$h_pid" 2>/dev/null
}
# await_end NAME: wait until what was halted has written everything; at worst it is killed.
await_end() {
  [ -e "$1.pid" ] || return 0
  await 5 ended "$1" && return 0
  read -r h_pid <"$1.pid"
  kill -KILL -- "-$h_pid" 2>/dev/null # timeout(1) leads a group of its own where it can
  kill -KILL "$h_pid" 2>/dev/null
  await 2 ended "$1" || fail "$1 could not be ended"
}
# began NAME...: print when each was started, `NAME.pid SECONDS`.
began() {
  for b_name in "$@"; do
    shift
    [ ! -e "$b_name.pid" ] || set -- "$@" "$b_name.pid"
  done
  [ "$#" = 0 ] || instants "$@"
}
# tell NAME: print how it ended, and what it complained of.
tell() {
  t_code=none
  ! ended "$1" || read -r t_code <"$1.exit"
  printf 'exit %s %s\n' "$1" "$t_code"
  [ ! -e "$1.finished" ] || printf 'finished %s\n' "$1"
  [ ! -e "$1.err" ] || while IFS= read -r t_line || [ -n "$t_line" ]; do printf 'err %s %s\n' "$1" "$t_line"; done <"$1.err"
}
listening() { bound "$1" 0A /proc/net/tcp /proc/net/tcp6; } # PORT
listening_udp() { bound "$1" 07 /proc/net/udp /proc/net/udp6; } # PORT
bound() { # PORT STATE TABLE...
  b_ending=$(printf ':%04X.%s' "$1" "$2"); shift 2
  for b_table in "$@"; do
    [ -e "$b_table" ] || continue
    while read -r _ b_local _ b_state _; do
      case $b_local.$b_state in *"$b_ending") return 0 ;; esac
    done <"$b_table"
  done
  return 1
}
now_ns() { date +%s%N; }
# instants FILE...: print when each was last written, `FILE SECONDS`.
instants() { stat -c '%n %.9Y' "$@"; }
