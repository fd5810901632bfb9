# ---- read
read -r value </sys/class/net/eth1/mtu && echo mtu.eth1"=$value"
read -r value </sys/class/net/eth2/mtu && echo mtu.eth2"=$value"
# ---- set
linked() { read -r l_up <"/sys/class/net/$1/carrier" && [ "$l_up" = 1 ]; }
root ip link set dev eth1 mtu 600 || fail "mtu "600" was refused by "eth1
await 20 linked eth1 || fail eth1" has no link 20 s after its MTU was set"
root ip link set dev eth2 mtu 600 || fail "mtu "600" was refused by "eth2
await 20 linked eth2 || fail eth2" has no link 20 s after its MTU was set"
# ---- wanted
mtu.eth1=600
mtu.eth2=600
# ---- restore
linked() { read -r l_up <"/sys/class/net/$1/carrier" && [ "$l_up" = 1 ]; }
root ip link set dev eth1 mtu 1500 && await 20 linked eth1
root ip link set dev eth2 mtu 1500 && await 20 linked eth2
