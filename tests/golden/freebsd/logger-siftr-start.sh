launch src-siftr 21 src-siftr.csv sh -c 'folder=$1 ready=$2 log=$1/$3 ppl=$4 failed=
say() { echo "$*" >&2; exit 1; }
now() { sysctl -n "net.inet.siftr.$1" 2>/dev/null; }
put() {
  sysctl "net.inet.siftr.$1=$2" >/dev/null && [ "$(now "$1")" = "$2" ] || say "siftr: $1=$2 was not taken: it is $(now "$1")"
}
finish() {
  trap "" TERM INT HUP
  kill "$!" 2>/dev/null # timeout(1) ends everything that it has started
  sysctl net.inet.siftr.enabled=0 ${was_port:+net.inet.siftr.port_filter="$was_port"} \
    net.inet.siftr.ppl="$was_ppl" net.inet.siftr.logfile="$was_log" >/dev/null || failed=yes
  left=100
  until [ ! -e "$log" ] || tail -n 1 "$log" | grep -q "^disable_time_secs="; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || { echo "siftr: the log has no footer" >&2; exit 1; }
    sleep 0.05
  done
  [ -z "$failed" ] || exit 1
  exit 0
}
kldstat -q -m siftr || kldload -n siftr || { dmesg | tail -n 2 >&2; say "siftr: its module cannot be loaded; it needs alq"; }
case $(now logfile) in
  "${folder%/*/*}"/*) sysctl net.inet.siftr.enabled=0 net.inet.siftr.logfile=/var/log/siftr.log >/dev/null ;; # left by an earlier trial
esac
[ "$(now enabled)" = 0 ] || say "siftr: it is on already, by another"
was_log=$(now logfile) was_ppl=$(now ppl) was_port=$(now port_filter)
[ -d "${was_log%/*}" ] || was_log=/var/log/siftr.log
put ppl "$ppl"
[ -z "$was_port" ] || put port_filter 0
put logfile "$log"
trap finish TERM INT HUP
put enabled 1
: >"$folder/$ready"
while :; do sleep 3600 & wait "$!"; done
' siftr "$dir" src-siftr.ready src-siftr.csv 1
