launch src-nic 21 src-nic.csv sh -c '# sampled COMMAND...: call the function `sample` of the caller after every `interval` seconds, until SIGTERM. COMMAND
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
card=dev.${interface%%[0-9]*}.${interface##*[!0-9]}.mac_stats
ifconfig "$interface" >/dev/null || exit 1
sample() { echo >"$name.clock"; stat -f "t %Fm" "$name.clock"; sysctl "$card" 2>/dev/null; netstat -n -b -d -I "$interface"; }
sampled awk -v interface="$interface" '"'"'
  function column(heading) { return heading in at ? $(NF - width + at[heading]) : "" }
  $1 == "t" { split($2, time, "."); now = time[1] substr(time[2] "000000000", 1, 9); count = 0; next }
  $1 ~ /\.mac_stats\.x(on|off)_/ { key = $1; sub(/.*\./, "", key); sub(/:$/, "", key); names[++count] = key; values[count] = $2; next }
  $1 == "Name" { width = NF; for (k = 1; k <= NF; k++) at[$k] = k; next }
  $3 ~ /^<Link/ {
    if (!headed++) {
      printf "t_ns,interface,rx_bytes,rx_packets,rx_errors,rx_dropped,multicast,tx_bytes,tx_packets,tx_errors,tx_dropped"
      for (k = 1; k <= count; k++) printf ",card.%s", names[k]
      print ""
    }
    printf "%s,%s,%s,%s,%s,%s,,%s,%s,%s,%s", now, interface, column("Ibytes"), column("Ipkts"), column("Ierrs"), column("Idrop"),
      column("Obytes"), column("Opkts"), column("Oerrs"), column("Drop")
    for (k = 1; k <= count; k++) printf ",%s", values[k]
    print ""; fflush()
  }'"'"'
' nic 0.1 src-nic em1
