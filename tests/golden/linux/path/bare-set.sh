{
  printf 'qdisc replace dev %s root handle 1: tbf rate %sbit burst %s limit 1000000\n' eth2 10000000 5000
  printf 'qdisc replace dev %s parent 1:1 handle 10: %s\n' eth2 'pfifo limit 100'
} | batch tc || fail "tc refused the settings of the bottleneck"
