# ---- read
tc -d qdisc show dev eth1 | {
  s_queue=none
  while read -r _ kind handle place rest; do
    case $rest in 'refcnt '*) rest=${rest#refcnt } rest=${rest#"${rest%%[!0-9]*}"} ;; esac
    case $place in
      root) echo shaper.eth1"=$kind $handle$rest" ;;
      parent) [ "$handle" != 12: ] || s_queue="$kind ${rest#* }" ;;
    esac
  done
  echo shaper.eth1".queue=$s_queue"
}
tc -d qdisc show dev eth2 | {
  s_queue=none
  while read -r _ kind handle place rest; do
    case $rest in 'refcnt '*) rest=${rest#refcnt } rest=${rest#"${rest%%[!0-9]*}"} ;; esac
    case $place in
      root) echo shaper.eth2"=$kind $handle$rest" ;;
      parent) [ "$handle" != 12: ] || s_queue="$kind ${rest#* }" ;;
    esac
  done
  echo shaper.eth2".queue=$s_queue"
}
# ---- set
root tc qdisc add dev eth1 root handle 11: tbf rate 40000000bit burst 20000 limit 1000000 &&
  root tc qdisc add dev eth1 parent 11:1 handle 12: pfifo limit 100 || fail eth1" was not limited to "40000000" bit/s"
root tc qdisc add dev eth2 root handle 11: tbf rate 40000000bit burst 20000 limit 1000000 &&
  root tc qdisc add dev eth2 parent 11:1 handle 12: pfifo limit 100 || fail eth2" was not limited to "40000000" bit/s"
# ---- wanted
shaper.eth1*=tbf 11: rate 40Mbit burst
shaper.eth1.queue*=pfifo limit 100p
shaper.eth2*=tbf 11: rate 40Mbit burst
shaper.eth2.queue*=pfifo limit 100p
# ---- restore
root tc qdisc del dev eth1 root handle 11:
root tc qdisc del dev eth2 root handle 11:
