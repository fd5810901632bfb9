own=$$ mark=SAMOVAR_CAMPAIGN=full-20260101-000000
for round in TERM KILL; do
  found=
  ps axeww -o pid= -o ppid= -o command= >"$dir/processes"
  while read -r pid parent rest; do
    case " $rest " in *" $mark "*) ;; *) continue ;; esac
    case $pid in "$own" | "$PPID") continue ;; esac
    [ "$parent" = "$own" ] && continue
    kill -s "$round" "$pid" 2>/dev/null && found="$found $pid"
  done <"$dir/processes"
  [ -n "$found" ] || break
  echo "$round$found"
  [ "$round" = TERM ] && sleep 0.2
done
case $(sysctl -n net.inet.siftr.logfile 2>/dev/null) in
  "$dir"/*) for oid in enabled=0 logfile=/var/log/siftr.log; do sysctl "net.inet.siftr.$oid" >/dev/null; done ;;
esac
cd / && rm -rf -- "$dir"
