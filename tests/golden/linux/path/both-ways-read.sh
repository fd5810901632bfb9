tc -d qdisc show | while read -r _ kind handle _ device rest; do
  case $device in eth2 | eth1 | sv-*) ;; *) continue ;; esac
  rest=${rest#root } rest=${rest#refcnt * } rest=${rest#parent * }
  echo "qdisc.$device.$handle=$kind $rest"
done
for device in /sys/class/net/sv-*; do
  [ ! -e "$device" ] || echo "device.${device##*/}=present"
done
