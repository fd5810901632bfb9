net.bpf.maxbufsize
