# next_hop FROM TO: set `device` to the outgoing interface, `own` to its hardware address and `remote` to that of the next hop.
next_hop() {
  hop=$2 device= remote=
  set -- $(ip -o route get "$2" from "$1")
  while [ $# -gt 1 ]; do
    case $1 in via) hop=$2 ;; dev) device=$2 ;; esac
    shift
  done
  [ -n "$device" ] || fail "no route leads to $hop"
  ping -n -c 1 -W 2 "$hop" >/dev/null || fail "the next hop $hop does not answer"
  set -- $(ip neigh show "$hop" dev "$device")
  while [ $# -gt 1 ]; do
    [ "$1" != lladdr ] || remote=$2
    shift
  done
  read -r own <"/sys/class/net/$device/address"
  [ -n "$remote" ] || fail "the next hop $hop has no hardware address"
}
