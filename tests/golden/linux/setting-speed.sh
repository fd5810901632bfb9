# ---- read
value=unknown; read -r value 2>/dev/null </sys/class/net/eth1/speed; echo speed.eth1"=$value"
value=unknown; read -r value 2>/dev/null </sys/class/net/eth1/duplex; echo duplex.eth1"=$value"
value=$(ethtool eth1 2>/dev/null | sed -n 's/^[[:space:]]*Auto-negotiation: //p'); echo autoneg.eth1"=${value:-unknown}"
value=unknown; read -r value 2>/dev/null </sys/class/net/eth2/speed; echo speed.eth2"=$value"
value=unknown; read -r value 2>/dev/null </sys/class/net/eth2/duplex; echo duplex.eth2"=$value"
value=$(ethtool eth2 2>/dev/null | sed -n 's/^[[:space:]]*Auto-negotiation: //p'); echo autoneg.eth2"=${value:-unknown}"
# ---- set
linked_at() { linked "$1" && read -r l_speed <"/sys/class/net/$1/speed" && [ "$l_speed" = "$2" ]; }
root ethtool -s eth1 speed 100 duplex full autoneg on || fail eth1" cannot be set to "100" Mbit/s "full
await 30 linked_at eth1 100 || fail eth1" has no link at "100" Mbit/s after 30 s"
root ethtool -s eth2 speed 100 duplex full autoneg on || fail eth2" cannot be set to "100" Mbit/s "full
await 30 linked_at eth2 100 || fail eth2" has no link at "100" Mbit/s after 30 s"
# ---- wanted
speed.eth1=100
duplex.eth1=full
speed.eth2=100
duplex.eth2=full
# ---- restore
linked_at() { linked "$1" && read -r l_speed <"/sys/class/net/$1/speed" && [ "$l_speed" = "$2" ]; }
root ethtool -s eth1 autoneg on
await 30 linked_at eth1 1000
root ethtool -s eth2 autoneg on
await 30 linked_at eth2 1000
