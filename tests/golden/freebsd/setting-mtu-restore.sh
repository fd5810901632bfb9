ifconfig em1 mtu 1500 && ( settled em1 )
