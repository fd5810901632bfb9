# ---- read
address6() { [ "${3-}" != inet6 ] || s_six="$s_six$4 "; }
route6() { case "$* " in *' proto kernel '* | *' proto ra '* | fe80:*) ;; *) s_six="$s_six$*, "; esac; }
read -r value </sys/class/net/eth1/mtu && echo mtu.eth1"=$value"
s_off=/proc/sys/net/ipv6/conf/eth1/disable_ipv6 value=1
[ ! -e "$s_off" ] || read -r value <"$s_off" # a kernel without IPv6 does not have this file
if [ "$value" = 0 ]; then
  s_six=''; each_line address6 "$(ip -6 -o addr show dev eth1 scope global permanent)"
  echo inet6.eth1"=$s_six"
  s_six=''; each_line route6 "$(ip -6 route show dev eth1)"
  echo routes6.eth1"=$s_six"
fi
read -r value </sys/class/net/eth2/mtu && echo mtu.eth2"=$value"
s_off=/proc/sys/net/ipv6/conf/eth2/disable_ipv6 value=1
[ ! -e "$s_off" ] || read -r value <"$s_off" # a kernel without IPv6 does not have this file
if [ "$value" = 0 ]; then
  s_six=''; each_line address6 "$(ip -6 -o addr show dev eth2 scope global permanent)"
  echo inet6.eth2"=$s_six"
  s_six=''; each_line route6 "$(ip -6 route show dev eth2)"
  echo routes6.eth2"=$s_six"
fi
# ---- set
root ip link set dev eth1 mtu 600 || fail "mtu "600" was refused by "eth1
await 20 linked eth1 || fail eth1" has no link 20 s after its MTU was set"
root ip link set dev eth2 mtu 600 || fail "mtu "600" was refused by "eth2
await 20 linked eth2 || fail eth2" has no link 20 s after its MTU was set"
# ---- wanted
mtu.eth1=600
mtu.eth2=600
# ---- restore
root ip link set dev eth1 mtu 1500 && await 20 linked eth1
root ip link set dev eth2 mtu 1500 && await 20 linked eth2
