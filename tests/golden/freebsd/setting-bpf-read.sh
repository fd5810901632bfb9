knob net.bpf.maxbufsize
if kernel_value net.bpf.maxbufsize && [ "$value" -ge 16777216 ]; then echo bpf.room=enough; else echo bpf.room=less; fi
