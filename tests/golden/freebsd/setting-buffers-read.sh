knob net.inet.tcp.sendbuf_max buffer.send_max
knob net.inet.tcp.recvbuf_max buffer.receive_max
knob kern.ipc.maxsockbuf buffer.socket_max
if kernel_value kern.ipc.maxsockbuf && [ "$value" -ge 16776960 ]; then echo buffer.socket_max.room=enough; else echo buffer.socket_max.room=less; fi
knob net.inet.tcp.recvspace
# Receive windows of the experiment are set after this, with autotuning off.
if { kernel_value net.inet.tcp.recvbuf_auto && [ "$value" = 0 ]; } || { kernel_value net.inet.tcp.recvspace && [ "$value" -ge 2097152 ]; }; then echo buffer.receive_default=enough; else echo buffer.receive_default=less; fi
