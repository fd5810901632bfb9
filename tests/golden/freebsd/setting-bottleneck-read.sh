firewall
knob net.inet.ip.fw.enable
knob net.inet.ip.fw.one_pass
for oid in expire pipe_slot_limit pipe_byte_limit; do knob "net.inet.ip.dummynet.$oid"; done
{ ipfw list; echo ----; ipfw pipe show; echo ----; ipfw sched show; } | awk '
  function done() { if (size != "") print "queue." pipe "=" size " " aqm; size = "" }
  $0 == "----" { done(); part++; pipe = 0; next }
  part == 0 && $1 + 0 >= 41 && $1 + 0 <= 49 { number = $1 + 0; count++; rules[number]++; $1 = ""; sub(/^ /, ""); print "ipfw." number "." rules[number] "=" $0 }
  part == 1 && /^[0-9]+: / {
    done(); pipe = $1 + 0; if (pipe < 20001 || pipe > 21999) { pipe = 0; next }
    rate = 0; delay = $3
    if ($2 != "unlimited") { rate = $2 * ($3 ~ /^G/ ? 1e9 : $3 ~ /^M/ ? 1e6 : $3 ~ /^K/ ? 1e3 : 1); delay = $4 }
    printf "pipe.%d.rate=%.0f\npipe.%d.delay=%d\n", pipe, rate, pipe, delay
  }
  part == 1 && /^q[0-9]+ / && pipe {
    text = $0; sub(/^q[0-9]+ +/, "", text); loss = 0
    if (match(text, /plr [0-9.]+/)) { loss = substr(text, RSTART + 4, RLENGTH - 4); text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH) }
    print "pipe." pipe ".loss=" loss
    match(text, / +[0-9]+ flows/); size = substr(text, 1, RSTART - 1)
    match(text, / pri [0-9]+ */); aqm = substr(text, RSTART + RLENGTH)
  }
  part == 1 && /^[ \t]+G?RED w_q/ { sub(/^[ \t]+/, ""); aqm = aqm $0 }
  part == 2 && $1 == "sched" { number = $2; kind = $4 }
  part == 2 && $1 == kind && kind ~ /^FQ_/ && number >= 20001 && number <= 21999 { sub(/^ +/, ""); print "queue." number "=" $0 }
  END { print "ipfw.rules=" count + 0 }'
