for name in $(ifconfig -l); do
  case ${name%%[0-9]*} in em | igb | lem) echo "$name" ;; *) ! sysctl -n "hw.${name%%[0-9]*}.txd" >/dev/null || echo "$name" ;; esac
done
