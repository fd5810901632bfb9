{ kernel_value net.bpf.maxbufsize && [ "$value" -ge 16777216 ]; } || turn net.bpf.maxbufsize 16777216
