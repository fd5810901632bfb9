cat /var/run/dmesg.boot
dmesg
