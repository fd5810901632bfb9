# By default, the module creates two devices.
[ -d /sys/module/ifb ] || root modprobe ifb numifbs=0 2>/dev/null
{
  printf 'link add name %s type ifb\nlink set dev %s up\n' sv-down sv-down
  printf 'link add name %s type ifb\nlink set dev %s up\n' sv-up sv-up
} | batch ip || fail "this kernel cannot create an intermediate device (ifb)"
{
  mtu=1500; read -r mtu </sys/class/net/eth2/mtu
  burst=5000; [ "$burst" -ge $((mtu + 100)) ] || burst=$((mtu + 100))
  printf 'qdisc replace dev %s root handle 1: tbf rate %sbit burst %s limit 1000000\n' eth2 10000000 "$burst"
  printf 'qdisc replace dev %s parent 1:1 handle 10: %s\n' eth2 'pfifo limit 100'
  printf 'qdisc replace dev %s root handle 2: %s\n' sv-down 'netem limit 2194 delay 20000us loss random 1%'
  printf 'qdisc add dev %s handle ffff: ingress\n' eth1
  printf 'filter add dev %s parent ffff: prio 60000 protocol all u32 match u32 0 0 action mirred egress redirect dev %s\n' eth1 sv-down
  printf 'qdisc replace dev %s root handle 2: %s\n' sv-up 'netem limit 2194 delay 20000us'
  printf 'qdisc add dev %s handle ffff: ingress\n' eth2
  printf 'filter add dev %s parent ffff: prio 60000 protocol all u32 match u32 0 0 action mirred egress redirect dev %s\n' eth2 sv-up
} | batch tc || fail "tc refused the settings of the bottleneck"
