ipfw -a list | awk '
  function tell(name, sent, size, drops) { if (drops < 0) drops = 0; printf "%s=%.0f %.0f %.0f\n", name, size + 14 * sent, sent, drops }
  BEGIN { for (asked = ARGC - 1; ARGC > 1; ARGC--) words[ARGC - 1] = ARGV[ARGC - 1] }
  $1 + 0 >= 41 && $1 + 0 <= 49 && $4 ~ /^(pipe|queue|count)$/ { packets[$1 + 0] += $2; bytes[$1 + 0] += $3 }
  END {
    for (i = 1; i <= asked; i++) {
      rule = words[i]; sub(/.*:/, "", rule)
      name = substr(words[i], 1, length(words[i]) - length(rule) - 1)
      tell(name, packets[rule + 1], bytes[rule + 1], packets[rule + 0] - packets[rule + 1])
    }
  }' queue.down:43 queue.up:48
ipfw pipe show | awk '
  function tell(name, pipe) { printf "%s=%.0f %.0f %.0f\n", name, bytes[pipe] + 14 * total[pipe], total[pipe], drops[pipe] }
  BEGIN { for (asked = ARGC - 1; ARGC > 1; ARGC--) words[ARGC - 1] = ARGV[ARGC - 1] }
  /^[0-9]+: / { now = $1 + 0; next }
  now && NF >= 9 && $3 ~ /\// { total[now] += $(NF - 4) - $NF; bytes[now] += $(NF - 3); drops[now] += $NF }
  END {
    for (i = 1; i <= asked; i++) {
      pipe = words[i]; sub(/.*:/, "", pipe)
      tell(substr(words[i], 1, length(words[i]) - length(pipe) - 1), pipe + 0)
    }
  }' stage.down1:20001 stage.down:20002 stage.up1:21001 stage.up:21002
