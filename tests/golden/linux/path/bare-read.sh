discipline() { # qdisc KIND HANDLE dev DEVICE...
  case ${5-} in eth2 | eth1 | sv-*) ;; *) return ;; esac
  kind=$2 handle=$3 device=$5; shift 5
  rest=$*
  rest=${rest#root } rest=${rest#refcnt * } rest=${rest#parent * }
  echo "qdisc.$device.$handle=$kind $rest"
}
each_line discipline "${c_shown:-$(tc -d qdisc show)}"
c_shown=
for device in /sys/class/net/sv-*; do
  [ ! -e "$device" ] || echo "device.${device##*/}=present"
done
