counted() {
  case ${1-} in
    qdisc) c_at=$5.$3 ;;
    Sent) c_counts="$2 $4"; shift 6; c_counts="$c_counts ${1%,}" ;;
    backlog)
      [ "${4-}" = requeues ] || return 0 # a line in the table of cake's tins
      case $c_at in
        eth2.10:) counts queue.down "${3%p}" ;;
        sv-down.2:) counts stage.down "${3%p}" ;;
        sv-up.2:) counts stage.up "${3%p}" ;;
      esac ;;
  esac
}
counts() { # NAME WAITING
  [ "$2" = 0 ] || c_waiting=yes
  c_text="$c_text$1=$c_counts $2
"
}
c_left=15 c_waiting=yes
while [ -n "$c_waiting" ] && [ "$c_left" -gt 0 ]; do
  [ "$c_left" = 15 ] || sleep 0.2
  c_left=$((c_left - 1)) c_waiting='' c_text='' c_at=''
  c_shown=$(tc -s -d qdisc show)
  each_line counted "$c_shown"
done
printf '%s' "$c_text"
