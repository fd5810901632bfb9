tc -s qdisc show | while read -r c_word c_one c_two c_three c_four c_rest; do
  case $c_word in
    qdisc) c_at=$c_four.$c_two ;;
    Sent)
      c_drops=${c_rest#*dropped }; c_counts="$c_one $c_three ${c_drops%%,*}"
      case $c_at in
        eth2.10:) echo queue.down"=$c_counts" ;;
      esac ;;
  esac
done
