drained() { # NAME
  read -r d_pid <"$1.pid"
  pkill -INFO -P "$d_pid" || return 0
  sleep 0.05
  d_told=
  while IFS= read -r d_line; do case $d_line in *captured,*) d_told=$d_line ;; esac; done <"$1.err"
  set -- $d_told
  [ $# -ge 10 ] && [ $(($2 + ${10})) -ge "$5" ]
}
await 15 drained src-tcpdump || echo "err "src-tcpdump" packets were left in the kernel's buffer"
