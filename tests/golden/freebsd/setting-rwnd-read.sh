knob net.inet.tcp.recvbuf_auto
knob net.inet.tcp.recvspace
knob kern.ipc.maxsockbuf
kernel_value kern.ipc.maxsockbuf
s_room=$((value / 9 * 8)) s_unit=$(window_unit)
kernel_value net.inet.tcp.recvspace
s_now=$value
s_segment=$(segment 172.16.10.2)
s_offered=$(offered "$s_now" "$s_segment" "$s_unit")
if [ "$s_offered" -le 200000 ] && [ $((s_offered + 2 * s_segment + s_unit)) -gt 200000 ] && [ "$s_offered" -le "$s_room" ]; then
  echo window.172.16.10.2=fits
else
  echo window.172.16.10.2=other
fi
