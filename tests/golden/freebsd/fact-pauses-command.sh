for name in $(ifconfig -l); do
  if sysctl -n "dev.${name%%[0-9]*}.${name##*[!0-9]}.fc" >/dev/null; then echo "$name"; fi
done
