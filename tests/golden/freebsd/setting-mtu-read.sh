echo mtu.em1"=$(mtu em1)"
echo mtu.em2"=$(mtu em2)"
