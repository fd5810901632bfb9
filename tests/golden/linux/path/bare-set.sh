{
  mtu=1500; read -r mtu </sys/class/net/eth2/mtu
  burst=5000; [ "$burst" -ge $((mtu + 100)) ] || burst=$((mtu + 100))
  printf 'qdisc replace dev %s root handle 1: tbf rate %sbit burst %s limit 1000000\n' eth2 10000000 "$burst"
  printf 'qdisc replace dev %s parent 1:1 handle 10: %s\n' eth2 'pfifo limit 100'
} | batch tc || fail "tc refused the settings of the bottleneck"
