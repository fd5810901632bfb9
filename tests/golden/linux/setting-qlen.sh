# ---- read
read -r value </sys/class/net/eth1/tx_queue_len && echo qlen.eth1"=$value"
read -r value </sys/class/net/eth2/tx_queue_len && echo qlen.eth2"=$value"
# ---- set
root ip link set dev eth1 txqueuelen 33 || fail "a queue of "33" packets was refused by "eth1
root ip link set dev eth2 txqueuelen 33 || fail "a queue of "33" packets was refused by "eth2
# ---- wanted
qlen.eth1=33
qlen.eth2=33
# ---- restore
root ip link set dev eth1 txqueuelen 1000
root ip link set dev eth2 txqueuelen 1000
