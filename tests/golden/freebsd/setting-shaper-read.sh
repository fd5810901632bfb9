firewall
knob net.inet.ip.fw.enable
ipfw list | awk '
  $1 + 0 >= 51 && $1 + 0 <= 59 { number = $1 + 0; count++; $1 = ""; sub(/^ /, ""); print "shaper." number "=" $0 }
  END { print "shaper.rules=" count + 0 }'
ipfw pipe show | awk '
  /^[0-9]+: / {
    pipe = $1 + 0; if (pipe < 22001 || pipe > 22009) { pipe = 0; next }
    rate = $2 == "unlimited" ? 0 : $2 * ($3 ~ /^G/ ? 1e9 : $3 ~ /^M/ ? 1e6 : $3 ~ /^K/ ? 1e3 : 1)
    printf "shaper.%d.rate=%.0f\n", pipe, rate
  }
  /^q[0-9]+ / && pipe { print "shaper." pipe ".queue=" $2 " " $3; pipe = 0 }'
