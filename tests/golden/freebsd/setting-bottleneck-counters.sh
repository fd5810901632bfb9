ipfw -a list | awk '
  function tell(name, sent, size, drops) { if (drops < 0) drops = 0; printf "%s=%.0f %.0f %.0f\n", name, size + 14 * sent, sent, drops }
  $1 + 0 >= 41 && $1 + 0 <= 49 && $4 ~ /^(pipe|queue|count)$/ { packets[$1 + 0] += $2; bytes[$1 + 0] += $3 }
  END {
    tell("queue.down", packets[44], bytes[44], packets[43] - packets[44])
    tell("queue.up", packets[49], bytes[49], packets[48] - packets[49])
  }'
ipfw pipe show | awk '
  function tell(name, pipe) { printf "%s=%.0f %.0f %.0f\n", name, bytes[pipe] + 14 * total[pipe], total[pipe], drops[pipe] }
  /^[0-9]+: / { now = $1 + 0; next }
  now && NF >= 9 && $3 ~ /\// { total[now] += $(NF - 4) - $NF; bytes[now] += $(NF - 3); drops[now] += $NF }
  END {
    tell("stage.down1", 20001)
    tell("stage.down", 20002)
    tell("stage.up1", 21001)
    tell("stage.up", 21002)
  }'
