knob net.bpf.maxbufsize
if [ "$(sysctl -n net.bpf.maxbufsize)" -ge 16777216 ]; then echo bpf.room=enough; else echo bpf.room=less; fi
