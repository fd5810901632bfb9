# ---- start
launch_root src-tcpdump 26 src-eth1.pcap.gz nice -n -5 tcpdump -n -Z "$user" -i eth1 -s 96 -B 49152 --time-stamp-precision=nano -w -
# ---- ready
await 5 has_line src-tcpdump.err 'listening on' || { cat src-tcpdump.err >&2; fail "tcpdump does not listen on "eth1; }
# ---- drain
drained() { # NAME
  signal_program USR1 "$1" || return 0
  sleep 0.05
  d_told=
  while IFS= read -r d_line; do case $d_line in *captured,*) d_told=$d_line ;; esac; done <"$1.err"
  set -- $d_told
  [ $# -ge 10 ] && [ $(($2 + ${10})) -ge "$5" ]
}
d_left=300
until drained src-tcpdump; do
  d_left=$((d_left - 1))
  [ "$d_left" -gt 0 ] || { echo "err "src-tcpdump" packets were left in the kernel's buffer"; break; }
done
