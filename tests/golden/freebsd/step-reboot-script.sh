if sysctl -n net.inet.siftr.enabled >/dev/null 2>&1; then sysctl net.inet.siftr.enabled=0 >/dev/null; fi
( sleep 1; exec shutdown -r now ) </dev/null >/dev/null 2>&1 &
