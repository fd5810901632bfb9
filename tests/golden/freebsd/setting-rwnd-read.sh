knob net.inet.tcp.recvbuf_auto
knob net.inet.tcp.recvspace
knob kern.ipc.maxsockbuf
s_space=$(sysctl -n net.inet.tcp.recvspace) s_room=$(($(sysctl -n kern.ipc.maxsockbuf) / 9 * 8))
s_segment=$(segment 172.16.10.2)
[ "$s_space" -le "$s_segment" ] || s_space=$(((s_space + s_segment - 1) / s_segment * s_segment))
if [ "$s_space" -le 200000 ] && [ $((s_space + 2 * s_segment)) -gt 200000 ] && [ "$s_space" -le "$s_room" ]; then
  echo window.172.16.10.2=fits
else
  echo window.172.16.10.2=other
fi
