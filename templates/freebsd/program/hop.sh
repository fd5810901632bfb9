# next_hop FROM TO: set `device` to the outgoing interface, `own` to its hardware address and `remote` to that of the next hop.
# The route does not depend on the source address. ping's -W is in milliseconds here, -t in seconds.
next_hop() {
  hop=$2 device='' own='' remote=''
  h_route=$(route -n get -inet "$2")
  while read -r h_word h_value _; do
    case $h_word in gateway:) hop=$h_value ;; interface:) device=$h_value ;; esac
  done <<EOF
$h_route
EOF
  [ -n "$device" ] || fail "no route leads to $2"
  ping -n -c 1 -t 2 "$hop" >/dev/null || fail "the next hop $hop does not answer"
  h_interface=$(ifconfig "$device")
  while read -r h_word h_value _; do
    [ "$h_word" != ether ] || own=$h_value
  done <<EOF
$h_interface
EOF
  h_known=$(arp -na -i "$device")
  while read -r _ h_word _ h_value _; do
    case $h_word.$h_value in "($hop)."*:*:*:*:*:*) remote=$h_value ;; esac
  done <<EOF
$h_known
EOF
  [ -n "$own" ] && [ -n "$remote" ] || fail "the next hop $hop has no hardware address"
}
