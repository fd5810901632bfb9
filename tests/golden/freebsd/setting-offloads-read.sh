knob net.inet.tcp.tso offload.tso
s_shown=$(ifconfig em1)
if capable LRO "$s_shown"; then echo offload.em1.lro=1; else echo offload.em1.lro=0; fi
if merging em1 "$s_shown"; then echo offload.em1.merging=1; else echo offload.em1.merging=0; fi
s_shown=$(ifconfig em2)
if capable LRO "$s_shown"; then echo offload.em2.lro=1; else echo offload.em2.lro=0; fi
if merging em2 "$s_shown"; then echo offload.em2.merging=1; else echo offload.em2.merging=0; fi
