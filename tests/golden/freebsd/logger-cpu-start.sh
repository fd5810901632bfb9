launch src-cpu 21 src-cpu.csv sh -c '# sampled COMMAND...: call the function `sample` of the caller after every `interval` seconds, until SIGTERM. COMMAND
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
interval=$1 name=$2
hz=$(sysctl -n kern.clockrate); hz=${hz##*stathz = }; hz=${hz%%[!0-9]*}
sample() { echo >"$name.clock"; stat -f "t %Fm" "$name.clock"; sysctl -n kern.cp_times; }
sampled awk -v hz="$hz" '"'"'
  function share(part, whole) { return whole > 0 ? sprintf("%.4f", part / whole) : "" }
  BEGIN { print "t_ns,cpu,busy_share,softirq_share,steal_share,user_s,nice_s,system_s,idle_s,iowait_s,irq_s,softirq_s,steal_s" }
  $1 == "t" { split($2, time, "."); now = time[1] substr(time[2] "000000000", 1, 9); next }
  {
    for (cpu = 0; 5 * cpu + 5 <= NF; cpu++) {
      whole = 0
      for (k = 1; k <= 5; k++) { gone[k] = $(5 * cpu + k) - before[cpu, k]; before[cpu, k] = $(5 * cpu + k); whole += gone[k] }
      if (!seen[cpu]++) whole = 0
      printf "%s,%d,%s,%s,,%.2f,%.2f,%.2f,%.2f,,%.2f,,\n", now, cpu, share(whole - gone[5], whole), share(gone[4], whole),
        before[cpu, 1] / hz, before[cpu, 2] / hz, before[cpu, 3] / hz, before[cpu, 5] / hz, before[cpu, 4] / hz
    }
    fflush()
  }'"'"'
' cpu 0.1 src-cpu
