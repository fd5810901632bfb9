s_segment=$(segment 172.16.10.2) s_space=200000 s_most=65535
[ "$s_space" -lt "$s_segment" ] || s_space=$((s_space / s_segment * s_segment))
while [ $((s_most / 9 * 8)) -lt "$s_space" ]; do s_most=$((s_most * 2)); done
[ "$(sysctl -n kern.ipc.maxsockbuf)" -ge "$s_most" ] || turn kern.ipc.maxsockbuf "$s_most"
turn net.inet.tcp.recvbuf_auto 0
turn net.inet.tcp.recvspace "$s_space"
