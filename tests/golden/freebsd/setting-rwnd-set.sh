s_most=65535
while [ $((s_most / 9 * 8)) -lt 200000 ]; do s_most=$((s_most * 2)); done
{ kernel_value kern.ipc.maxsockbuf && [ "$value" -ge "$s_most" ]; } || turn kern.ipc.maxsockbuf "$s_most"
s_wanted=$(space_for 200000 "$(segment 172.16.10.2)" "$(window_unit)") || fail "a window of "200000" bytes is less than one unit of the window scale"
turn net.inet.tcp.recvbuf_auto 0 net.inet.tcp.recvspace "$s_wanted"
