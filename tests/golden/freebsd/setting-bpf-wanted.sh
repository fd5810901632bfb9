bpf.room=enough
