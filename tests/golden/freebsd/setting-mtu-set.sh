ifconfig em1 mtu 600 || fail "mtu "600" was refused by "em1
restarted em1
