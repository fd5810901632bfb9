# packets NAME OPTION... FILTER: start tcpdump with these options; the function `rows` of the caller reads its output until
# SIGTERM. Returns when the capture has begun. Without --immediate-mode, bpf(4) would hold packets for up to a second.
packets() {
  name=$1; shift
  trap 'read -r watching <"$name.watching" && kill "$watching"' TERM
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
