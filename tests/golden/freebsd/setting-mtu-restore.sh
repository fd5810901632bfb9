ifconfig em1 mtu 1500 && restarted em1
