back net.bpf.maxbufsize 524288
