own=$$
for round in TERM KILL; do
  found=
  for file in $(grep -lszxF SAMOVAR_CAMPAIGN=full-20260101-000000 $marks); do
    pid=${file#/proc/}; pid=${pid%/*}
    read -r _ _ _ parent _ </proc/"$pid"/stat 2>/dev/null || continue
    case $pid in "$own" | "$PPID") continue ;; esac
    [ "$parent" = "$own" ] && continue
    signal_process "$round" "$pid" && found="$found $pid"
  done
  [ -n "$found" ] || break
  echo "$round$found"
  [ "$round" = TERM ] && sleep 0.2
done
cd / && rm -rf -- "$dir"
exit 0
