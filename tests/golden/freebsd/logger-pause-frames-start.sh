launch src-pause-frames 21 src-pause-frames.csv sh -c '# packets NAME OPTION... FILTER: start tcpdump with these options; the function `rows` of the caller reads its output until
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
name=$1 interface=$2
own=$(ifconfig "$interface" | awk '"'"'$1 == "ether" { print $2; exit }'"'"')
rows() {
  exec awk -v own="$own" -v interface="$interface" '"'"'
    function number(at,    k, sum) { # a field of two bytes; -1 if it is missing
      if (length(frame) < at + 3) return -1
      for (k = at; k < at + 4; k++) sum = 16 * sum + index("0123456789abcdef", substr(frame, k, 1)) - 1
      return sum
    }
    function row(    k, source, opcode, classes, quanta) {
      opcode = number(29)
      if (opcode >= 0) {
        source = substr(frame, 13, 12); gsub(/../, "&:", source); sub(/:$/, "", source)
        if (opcode == 1 && number(33) >= 0) quanta = number(33)
        if (opcode == 257 && number(65) >= 0) {
          classes = sprintf("0x%02x", number(33)); quanta = number(37)
          for (k = 41; k <= 65; k += 4) quanta = quanta " " number(k)
        }
        print came "," interface "," (source == own ? "out" : "in") "," source "," sprintf("0x%04x", opcode) "," classes "," quanta
      }
      frame = ""
    }
    BEGIN { print "t_ns,interface,direction,src,opcode,classes,quanta" }
    /^[0-9]+\.[0-9]+ / { row(); split($1, time, "."); came = time[1] substr(time[2] "000000000", 1, 9) }
    /^[ \t]+0x[0-9a-f]+:/ { for (k = 2; k <= NF; k++) frame = frame $k }
    END { row() }'"'"'
}
packets "$name" -s 64 -xx -i "$interface" "ether proto 0x8808"
all_told
exit 0
' pause-frames src-pause-frames em1
