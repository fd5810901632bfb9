tc -d qdisc show | while read -r _ kind handle _ device rest; do
  case $device in eth2 | eth1 | sv-*) ;; *) continue ;; esac
  rest=${rest#root } rest=${rest#refcnt * } rest=${rest#parent * }
  echo "qdisc.$device.$handle=$kind $rest"
done
for device in /sys/class/net/sv-*; do
  [ ! -e "$device" ] || echo "device.${device##*/}=present"
done
tc filter show dev eth1 parent ffff: 2>/dev/null | {
  filters=
  while read -r line; do
    case $line in *' to device sv-'*) line=${line##* to device } filters="$filters${line%%)*} " ;; esac
  done
  echo "filters."eth1"=$filters"
}
tc filter show dev eth2 parent ffff: 2>/dev/null | {
  filters=
  while read -r line; do
    case $line in *' to device sv-'*) line=${line##* to device } filters="$filters${line%%)*} " ;; esac
  done
  echo "filters."eth2"=$filters"
}
