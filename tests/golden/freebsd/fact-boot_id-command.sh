if sysctl -N kern.boot_id >/dev/null; then sysctl -b kern.boot_id | od -A n -t x1 | tr -d ' \n'; else sysctl -n kern.boottime; fi
