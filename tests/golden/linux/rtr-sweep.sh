own=$$
for round in TERM KILL; do
  found=
  for file in $(grep -lszxF SAMOVAR_CAMPAIGN=full-20260101-000000 /proc/[0-9]*/environ); do
    pid=${file#/proc/}; pid=${pid%/environ}
    read -r _ _ _ parent _ </proc/"$pid"/stat 2>/dev/null || continue
    case $pid in "$own" | "$PPID") continue ;; esac
    [ "$parent" = "$own" ] && continue
    kill -"$round" "$pid" 2>/dev/null && found="$found $pid"
  done
  [ -n "$found" ] || break
  echo "$round$found"
  [ "$round" = TERM ] && sleep 0.2
done
cd / && rm -rf -- "$dir"
exit 0
