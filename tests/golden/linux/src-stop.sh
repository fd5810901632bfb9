drained() { # NAME
  signal_program USR1 "$1" || return 0
  sleep 0.05
  d_told=
  while IFS= read -r d_line; do case $d_line in *captured,*) d_told=$d_line ;; esac; done <"$1.err"
  set -- $d_told
  [ $# -ge 10 ] && [ $(($2 + ${10})) -ge "$5" ]
}
d_left=300
until drained src-eth1; do
  d_left=$((d_left - 1))
  [ "$d_left" -gt 0 ] || { echo "err "src-eth1" packets were left in the kernel's buffer"; break; }
done
halt src-eth1
halt src-tcp-info
halt bulk-client
halt late-client
began bulk-client late-client
await_end src-eth1
await_end src-tcp-info
await_end bulk-client
await_end late-client
tell src-eth1
tell src-tcp-info
tell bulk-client
tell late-client
exit 0
