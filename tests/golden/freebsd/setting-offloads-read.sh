knob net.inet.tcp.tso offload.tso
if capable em1 LRO; then echo offload.em1.lro=1; else echo offload.em1.lro=0; fi
if merging em1; then echo offload.em1.merging=1; else echo offload.em1.merging=0; fi
if capable em2 LRO; then echo offload.em2.lro=1; else echo offload.em2.lro=0; fi
if merging em2; then echo offload.em2.merging=1; else echo offload.em2.merging=0; fi
