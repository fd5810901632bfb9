counted() {
  tc -s qdisc show | while read -r c_word c_one c_two c_three c_four c_rest; do
    case $c_word in
      qdisc) c_at=$c_four.$c_two ;;
      Sent) c_drops=${c_rest#*dropped }; c_counts="$c_one $c_three ${c_drops%%,*}" ;;
      backlog)
        case $c_at in
          eth2.10:) echo queue.down"=$c_counts ${c_two%p}" ;;
          sv-down.2:) echo stage.down"=$c_counts ${c_two%p}" ;;
          sv-up.2:) echo stage.up"=$c_counts ${c_two%p}" ;;
        esac ;;
    esac
  done
}
c_left=15 c_waiting=yes
while [ -n "$c_waiting" ] && [ "$c_left" -gt 0 ]; do
  [ "$c_left" = 15 ] || sleep 0.2
  c_left=$((c_left - 1)) c_waiting='' c_text=$(counted)
  set -- $c_text
  while [ $# -ge 4 ]; do [ "$4" = 0 ] || c_waiting=yes; shift 4; done
done
printf '%s\n' "$c_text"
