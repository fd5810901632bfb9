drained() { # NAME
  signal_program USR1 "$1" || return 0
  sleep 0.05
  d_told=
  while IFS= read -r d_line; do case $d_line in *captured,*) d_told=$d_line ;; esac; done <"$1.err"
  set -- $d_told
  [ $# -ge 10 ] && [ $(($2 + ${10})) -ge "$5" ]
}
d_left=300
until drained dst-eth1; do
  d_left=$((d_left - 1))
  [ "$d_left" -gt 0 ] || { echo "err "dst-eth1" packets were left in the kernel's buffer"; break; }
done
halt dst-eth1
halt bulk-server
halt late-server
began 
await_end dst-eth1
await_end bulk-server
await_end late-server
tell dst-eth1
tell bulk-server
tell late-server
exit 0
