launch src-queue 21 src-queue.csv sh -c '# sampled COMMAND...: call the function `sample` of the caller after every `interval` seconds, until SIGTERM. COMMAND
# reads the output of `sample`, and must flush each row, because timeout(1) kills a sampler that takes too long to end.
sampled() {
  trap '"'"': >"$name.stop"'"'"' TERM
  {
    trap : TERM
    sample
    : >"$name.ready"
    until [ -e "$name.stop" ]; do sleep "$interval"; sample; done
  } | ( trap "" TERM; exec "$@" ) &
  wait "$!"; wait "$!"
  exit 0
}
interval=$1 name=$2 interface=$3
pipes=$(ipfw list | awk -v leaves="$interface" '"'"'
  ($1 + 0 == 43 || $1 + 0 == 48) && $(NF - 1) == "xmit" && $NF == leaves { printf "%s ", $3 }'"'"')
[ -n "$pipes" ] || { echo "the path has no queue at $interface" >&2; exit 1; }
sample() { echo >"$name.clock"; stat -f "t %Fm" "$name.clock"; ipfw -a list; ipfw pipe show; }
sampled awk -v interface="$interface" -v pipes=" $pipes" '"'"'
  BEGIN { print "t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes,sent_packets,drops,overlimits" }
  $1 == "t" { split($2, time, "."); now = time[1] substr(time[2] "000000000", 1, 9); pipe = 0; next }
  /^[0-9]+ / && $4 == "count" && ($1 + 0 == 44 || $1 + 0 == 49) && $NF == interface { sent = $2; sent_bytes = $3; next }
  /^[0-9]+: / { pipe = $1 + 0; if (index(pipes, " " pipe " ") == 0) pipe = 0; next }
  pipe && NF >= 9 && $3 ~ /\// {
    printf "%s,%s,dummynet,%d:,root,%d,%d,%.0f,%.0f,%d,0\n", now, interface, pipe, $(NF - 1), $(NF - 2), sent_bytes, sent, $NF
    fflush()
  }'"'"'
' queue 0.1 src-queue em1
