knob net.inet.tcp.sendbuf_max buffer.send_max
knob net.inet.tcp.recvbuf_max buffer.receive_max
knob kern.ipc.maxsockbuf buffer.socket_max
if [ "$(sysctl -n kern.ipc.maxsockbuf)" -ge 16776960 ]; then echo buffer.socket_max.room=enough; else echo buffer.socket_max.room=less; fi
knob net.inet.tcp.recvspace
# Receive windows of the experiment are set after this, with autotuning off.
if [ "$(sysctl -n net.inet.tcp.recvbuf_auto)" = 0 ] || [ "$(sysctl -n net.inet.tcp.recvspace)" -ge 2097152 ]; then echo buffer.receive_default=enough; else echo buffer.receive_default=less; fi
