launch src-clock 21 src-clock.csv sh -c '# sampled COMMAND...: call the function `sample` of the caller after every `interval` seconds, until SIGTERM; COMMAND reads
# what it prints, and must flush each row: timeout(1) kills a sampler that takes too long to end.
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
interval=$1 name=$2 begun=
now() { echo >"$name.clock"; stat -f "t %Fm" "$name.clock"; }
daemons() {
  now
  if told=$(chronyc -c -n tracking 2>/dev/null); then echo "chrony $told"; fi
  ntpq -pn 2>/dev/null | while IFS= read -r line; do echo "ntpq $line"; done
}
sample() {
  now; echo "boottime $(sysctl -n kern.boottime)"
  [ "$begun" ] && [ ! -e "$name.stop" ] || daemons
  begun=yes
}
sampled awk '"'"'
  function row(source, quantity, value) { if (value != "") { print now "," source "," quantity "," value; fflush() } }
  BEGIN {
    print "t_ns,source,quantity,value"
    split("reference_id,source,stratum,reference_time_s,system_offset_s,last_offset_s,rms_offset_s,frequency_ppm,residual_ppm,skew_ppm,root_delay_s,root_dispersion_s,update_interval_s,leap", names, ",")
  }
  $1 == "t" { split($2, time, "."); now = time[1] substr(time[2] "000000000", 1, 9); next }
  $1 == "boottime" && match($0, /sec = [0-9]+, usec = [0-9]+/) {
    split(substr($0, RSTART, RLENGTH), part, /[ ,=]+/)
    row("kernel", "boottime_s", sprintf("%d.%06d", part[2], part[4]))
  }
  $1 == "chrony" { count = split($2, value, ","); for (k = 1; k <= count && k <= 14; k++) row("chrony", names[k], value[k]) }
  $1 == "ntpq" && $2 ~ /^[*o]/ && NF >= 11 {
    row("ntp", "source", substr($2, 2)); row("ntp", "stratum", $4)
    row("ntp", "delay_s", sprintf("%.6f", $9 / 1000)); row("ntp", "offset_s", sprintf("%.6f", $10 / 1000)); row("ntp", "jitter_s", sprintf("%.6f", $11 / 1000))
  }'"'"'
' clock 0.1 src-clock
