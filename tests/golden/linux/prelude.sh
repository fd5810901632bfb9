set -u
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export SAMOVAR_CAMPAIGN=full-20260101-000000
dir=/tmp/samovar/full-20260101-000000/newreno-9999KB-600-r1-abc123
base=${dir%/*/*}
# Others can write to /tmp: a folder that they have created there could lead elsewhere.
ours() {
  [ -O "$base" ] && [ ! -h "$base" ] && return
  printf '%s\n' "$base belongs to another user; remove it, or log in as its owner" >&2
  exit 70
}
[ ! -e "$base" ] && [ ! -h "$base" ] || ours
[ -d "$dir" ] || mkdir -p "$dir" || exit 70
ours
cd "$dir" || exit 70

fail() { printf '%s\n' "$*" >&2; exit 1; }

# A user who may signal process 1 is root, which is tested without a program. For another user, sudo(8) runs what it
# allows as root: root COMMAND...; put_in FILE TEXT, which writes a kernel setting; batch PROGRAM [-force], which runs
# each line of a batch for ip or tc as a command of its own, because a batch could contain anything.
l_root=
if kill -0 1 2>/dev/null; then
  user=root marks='/proc/[0-9]*/environ'
  root() { "$@"; }
  put_in() { echo "$2" >"$1"; }
  can_put() { [ -w "$1" ]; }
  batch() { exec "$1" ${2:+"$2"} -batch -; }
  launch_root() { launch "$@"; }
  signal() { read -r s_pid <"$2.pid" && kill -"$1" "$s_pid" 2>/dev/null; } # SIGNAL NAME
  signal_program() { # SIGNAL NAME: signal the program below timeout(1); pkill(1) searches all processes, which is slow
    read -r s_pid <"$2.pid" || return 1
    if [ -r "/proc/$s_pid/task/$s_pid/children" ]; then
      s_child='' # the list has no line break at its end, for which read returns 1
      read -r s_child _ <"/proc/$s_pid/task/$s_pid/children"
      [ -n "$s_child" ] && kill -"$1" "$s_child" 2>/dev/null
    else
      pkill -"$1" -P "$s_pid"
    fi
  }
  signal_process() { kill -"$1" "$2" 2>/dev/null; } # SIGNAL PID
else
  user=${LOGNAME:-$(id -un)} marks='/proc/[0-9]*/environ /proc/[0-9]*/cmdline'
  root() { sudo -n "$@"; }
  put_in() { echo "$2" | sudo -n tee "$1" >/dev/null; }
  can_put() { [ -e "$1" ]; }
  batch() {
    set -f
    b_code=0
    while read -r b_line; do
      sudo -n "$1" $b_line </dev/null || { b_code=1; [ -n "${2-}" ] || return 1; }
    done
    return "$b_code"
  }
  # The user who starts a lasting command can neither signal it nor see its environment: the prompt argument of sudo,
  # which is ignored, holds the mark by which it is found, and timeout(1) runs as root too.
  launch_root() { : >"$1.root"; l_root=yes; launch "$@"; l_root=; }
  bounded_root() {
    if [ "$1" = nice ]; then
      u_nice=$1 u_by=$3; shift 3
      u_program=$1; shift
      set -- "$(command -v "$u_nice")" -n "$u_by" "$(command -v "$u_program")" "$@"
    else
      u_program=$1; shift
      set -- "$(command -v "$u_program")" "$@"
    fi
    exec sudo -n -p "SAMOVAR_CAMPAIGN=$SAMOVAR_CAMPAIGN" timeout -k "$end_s" "$l_limit" "$@"
  }
  bound_of() { # PID of sudo: print the PID of the timeout(1) below it, which may not have started yet
    read -r o_name <"/proc/$1/comm" 2>/dev/null || return 1
    [ "$o_name" != timeout ] || { echo "$1"; return; }
    pgrep -P "$1" -x timeout || pgrep -P "$(pgrep -o -P "$1")" -x timeout
  }
  signal() {
    read -r s_pid <"$2.pid" || return 1
    if [ -e "$2.root" ]; then signal_below "$1" "$s_pid"; else kill -"$1" "$s_pid" 2>/dev/null; fi
  }
  signal_program() {
    read -r s_pid <"$2.pid" || return 1
    if [ -e "$2.root" ]; then signal_below "$1" "$s_pid"; else pkill -"$1" -P "$s_pid"; fi
  }
  signal_below() { # SIGNAL PID: signal the program of the timeout(1) below this sudo
    w_left=40
    until w_bound=$(bound_of "$2") && w_name=$(pgrep -l -P "$w_bound"); do
      w_left=$((w_left - 1))
      [ "$w_left" -gt 0 ] && [ -e "/proc/$2" ] || return 1
      sleep 0.05
    done
    sudo -n pkill -"$1" -P "$w_bound" -x "${w_name#* }"
  }
  signal_process() { kill -"$1" "$2" 2>/dev/null || signal_below "$1" "$2"; }
fi

# A program has this long to end after SIGTERM, then it is killed. On a slow host, a logger may need several seconds to
# start the programs that end it, and SIFTR waits up to 5 s for the footer of its log.
end_s=10
# launch NAME LIMIT_S OUTPUT COMMAND...: run in the background for at most LIMIT_S seconds. OUTPUT ending in .gz is
# compressed while it is written; NAME.err has the standard error, NAME.pid the process, NAME.exit the exit code once
# everything is written. A script that waits at the named pipe `events` is woken then.
launch() {
  l_name=$1 l_limit=$2 l_output=$3; shift 3
  case $l_output in
    *.gz) ( run_bounded "$@" </dev/null 2>"$l_name.err" | nice -n -5 gzip -1 >"$l_output"; read -r l_code <"$l_name.code"; echo "$l_code" >"$l_name.exit"; wake ) >/dev/null 2>&1 3>&- & ;;
    *) ( run_bounded "$@" </dev/null >"$l_output" 2>"$l_name.err"; read -r l_code <"$l_name.code"; echo "$l_code" >"$l_name.exit"; wake ) >/dev/null 2>&1 3>&- & ;;
  esac
}
run_bounded() {
  if [ -z "$l_root" ]; then timeout -k "$end_s" "$l_limit" "$@" & else bounded_root "$@" & fi
  echo "$!" >"$l_name.pid"
  await_bounded "$!"
  echo "$?" >"$l_name.code"
}
await_bounded() { wait "$1"; } # PID

wake() { [ ! -p events ] || echo wake 1<>events; }
# listen: open the pipe for reading and writing, which never blocks; waiting at it starts no program.
listen() { [ -p events ] || mkfifo events || exit 70; exec 3<>events; }

# await SECONDS COMMAND...: repeat the command until it succeeds, 20 times a second at first, then less often, down to
# 5 times a second: where starting programs is slow, polling delays what it waits for.
await() {
  a_left=$(($1 * 20)) a_pause=0; shift
  until "$@"; do
    [ "$a_left" -gt 0 ] || return 1
    a_pause=$((a_pause + 1))
    case $a_pause in
      [12]) sleep 0.05; a_left=$((a_left - 1)) ;;
      [34]) sleep 0.1; a_left=$((a_left - 2)) ;;
      *) sleep 0.2; a_left=$((a_left - 4)) ;;
    esac
  done
}
# await_ready NAME: wait until a program such as a sampler has created NAME.ready and woken us; returns 1 if the
# program has ended instead.
await_ready() {
  listen
  until [ -e "$1.ready" ]; do
    ! ended "$1" || return 1
    IFS= read -r a_word <&3
  done
}
# each_line COMMAND TEXT: call the command with the words of each line. The shell's `read` reads a pipe or file byte by
# byte, $(...) reads many at once.
each_line() {
  e_command=$1 e_ifs=$IFS IFS='
'
  set -f
  set -- $2
  IFS=$e_ifs
  for e_line; do "$e_command" $e_line; done
  set +f
}
exists() { [ -e "$1" ]; }
ended() { [ -s "$1.exit" ]; }
has_line() { # FILE TEXT: one line of the file holds the text
  [ -e "$1" ] || return 1
  while IFS= read -r h_line || [ -n "$h_line" ]; do case $h_line in *"$2"*) return 0 ;; esac; done <"$1"
  return 1
}
# halt NAME: end the program that `launch` started under this name, if it still runs.
halt() {
  [ -e "$1.pid" ] && ! ended "$1" || return 0
  signal TERM "$1"
}
# await_end NAME: wait until a program that was ended has written everything; kill it if timeout(1) has not.
await_end() {
  [ -e "$1.pid" ] || return 0
  await $((end_s + 2)) ended "$1" && return 0
  read -r h_pid <"$1.pid"
  kill -KILL -- "-$h_pid" 2>/dev/null # timeout(1) has its own process group where that is possible
  signal_program KILL "$1" 2>/dev/null # elsewhere the program would survive the end of timeout(1)
  signal KILL "$1"
  await 2 ended "$1" || fail "$1 could not be ended"
}
# began NAME...: print when each was started, as `NAME.pid SECONDS`, and when all traffic was stopped, as
# `order-stop SECONDS`.
began() {
  for b_name in "$@"; do
    shift
    [ ! -e "$b_name.pid" ] || set -- "$@" "$b_name.pid"
  done
  [ ! -e order-stop ] || set -- "$@" order-stop
  [ "$#" = 0 ] || instants "$@"
}
# tell NAME: print its exit code and its standard error.
tell() {
  t_code=none
  ! ended "$1" || read -r t_code <"$1.exit"
  printf 'exit %s %s\n' "$1" "$t_code"
  [ ! -e "$1.finished" ] || printf 'finished %s\n' "$1"
  [ ! -e "$1.err" ] || while IFS= read -r t_line || [ -n "$t_line" ]; do printf 'err %s %s\n' "$1" "$t_line"; done <"$1.err"
}
# kernel_values FILE...: read all these files of the kernel with one program. kernel_value FILE then sets `value`, or
# returns 1 if there is no such file. The shell's `read` is not suitable: it reads byte by byte, and some files return
# only one byte.
k_text=
kernel_values() {
  k_text="
$(grep -s . "$@" /dev/null)
"
}
kernel_value() {
  value=
  case $k_text in
    *"
$1:"*) value=${k_text#*"
$1:"}; value=${value%%"
"*} ;;
    *) [ -r "$1" ] && value=$(cat "$1") ;;
  esac
}
linked() { read -r l_up <"/sys/class/net/$1/carrier" && [ "$l_up" = 1 ]; } # INTERFACE
listening() { bound "$1" 0A /proc/net/tcp /proc/net/tcp6; } # PORT
listening_udp() { bound "$1" 07 /proc/net/udp /proc/net/udp6; } # PORT
b_asked=
bound() { # PORT STATE TABLE...
  [ "$b_asked" = "$1.$2" ] || { b_ending=$(printf ':%04X.%s' "$1" "$2"); b_asked=$1.$2; }
  shift 2
  for b_table in "$@"; do
    [ -e "$b_table" ] || continue
    while read -r _ b_local _ b_state _; do
      case $b_local.$b_state in *"$b_ending") return 0 ;; esac
    done <"$b_table"
  done
  return 1
}
now_ns() { date +%s%N; }
# instants FILE...: print when each was last written, as `FILE SECONDS`.
instants() { stat -c '%n %.9Y' "$@"; }
# clock_at_boot: set b_floor and b_ceiling to bounds, in ns, of this clock's time at boot; a step moves both. The time
# since boot, in hundredths of a second, does not depend on the clock.
clock_at_boot() {
  read -r b_early _ </proc/uptime && b_now=$(now_ns) && read -r b_late _ </proc/uptime || return 1
  b_floor=$((b_now - (${b_late%.*} * 100 + 1${b_late#*.} - 99) * 10000000))
  b_ceiling=$((b_now - (${b_early%.*} * 100 + 1${b_early#*.} - 100) * 10000000))
}
