set -- ${SSH_CONNECTION:-}
launch src-beacons 21 src-beacons.csv sh -c '# packets NAME OPTION... FILTER: start tcpdump with these options; the function `rows` of the caller reads its output until
# SIGTERM. Returns when the capture has begun. Without --immediate-mode, bpf(4) would hold packets for up to a second.
packets() {
  name=$1; shift
  trap '"'"'read -r watching <"$name.watching" && kill "$watching"'"'"' TERM
  {
    trap : TERM
    tcpdump -n -tt -l --immediate-mode --time-stamp-precision=nano "$@" & watching=$!
    echo "$watching" >"$name.watching"
    while kill -0 "$watching" 2>/dev/null; do wait "$watching"; done
    wait "$watching"
  } | ( trap "" TERM; rows ) & reading=$!
  left=250
  until [ -s "$name.watching" ] && grep -q "listening on" "$name.err"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] && kill -0 "$reading" 2>/dev/null || exit 1
    sleep 0.02
  done
  : >"$name.ready"
}
# all_told: wait until `rows` has read everything that tcpdump printed.
all_told() {
  while kill -0 "$reading" 2>/dev/null; do wait "$reading"; done
  wait "$reading"
}
name=$1 group=$2 interval=$3 send=$4 interface=$5 reached=${6#::ffff:}
[ -n "$interface" ] || interface=$(ifconfig | awk -v address="$reached" '"'"'
  /^[^ \t]/ { name = $1; sub(/:$/, "", name) }
  $1 == "inet" && $2 == address { print name; exit }'"'"')
[ -n "$interface" ] && own=$(ifconfig "$interface" | awk '"'"'$1 == "inet" { print $2; exit }'"'"') && [ -n "$own" ] || {
  echo "no interface of the control network was found; set the key control of the logger to an interface with an address" >&2; exit 1
}
rows() {
  exec awk -v own="$own" -v name="$name" '"'"'
    BEGIN { print "t_ns,direction,src,id,sequence,sent_ns" }
    $2 == "IP" && /ICMP echo request/ {
      split($1, time, "."); sub(/,$/, "", $10); sub(/,$/, "", $12)
      print time[1] substr(time[2] "000000000", 1, 9) "," ($3 == own ? "out" : "in") "," $3 "," $10 "," $12 ","
      if ($3 != own && !heard++) { printf "" >(name ".heard"); close(name ".heard") }
    }'"'"'
}
packets "$name" -i "$interface" "icmp[icmptype] = icmp-echo and dst host $group"
if [ "$send" = auto ]; then sleep "$interval"; sleep "$interval"; sleep "$interval"; fi
sending=
if [ "$send" = always ] || { [ "$send" = auto ] && [ ! -e "$name.heard" ]; }; then
  ping -q -n -L -T 1 -i "$interval" -I "$own" "$group" >/dev/null & sending=$!
fi
all_told
[ -z "$sending" ] || kill "$sending"
exit 0
' beacons src-beacons 224.0.1.199 0.1 auto '' "${3:-}"
