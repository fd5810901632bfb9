net.inet.tcp.recvbuf_auto=0
window.172.16.10.2=fits
