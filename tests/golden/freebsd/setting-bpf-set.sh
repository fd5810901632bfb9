[ "$(sysctl -n net.bpf.maxbufsize)" -ge 16777216 ] || turn net.bpf.maxbufsize 16777216
