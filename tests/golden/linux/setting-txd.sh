# ---- read
if [ -e /sys/class/net/eth1/tun_flags ]; then
  read -r ring </sys/class/net/eth1/tx_queue_len
else
  ring=$(ethtool -g eth1 2>/dev/null | sed -n 's/^TX:[[:space:]]*//p' | tail -n 1)
fi
echo txd.eth1"=${ring:-none}"
if [ -e /sys/class/net/eth2/tun_flags ]; then
  read -r ring </sys/class/net/eth2/tx_queue_len
else
  ring=$(ethtool -g eth2 2>/dev/null | sed -n 's/^TX:[[:space:]]*//p' | tail -n 1)
fi
echo txd.eth2"=${ring:-none}"
# ---- set
if [ -e /sys/class/net/eth1/tun_flags ]; then
  root ip link set dev eth1 txqueuelen 256
else
  root ethtool -G eth1 tx 256 && await 20 linked eth1
fi || fail eth1" did not take "256" transmit descriptors, or its link did not come back in 20 s"
if [ -e /sys/class/net/eth2/tun_flags ]; then
  root ip link set dev eth2 txqueuelen 256
else
  root ethtool -G eth2 tx 256 && await 20 linked eth2
fi || fail eth2" did not take "256" transmit descriptors, or its link did not come back in 20 s"
# ---- wanted
txd.eth1=256
txd.eth2=256
# ---- restore
if [ -e /sys/class/net/eth1/tun_flags ]; then
  root ip link set dev eth1 txqueuelen 512
else
  root ethtool -G eth1 tx 512 && await 20 linked eth1
fi
if [ -e /sys/class/net/eth2/tun_flags ]; then
  root ip link set dev eth2 txqueuelen 512
else
  root ethtool -G eth2 tx 512 && await 20 linked eth2
fi
