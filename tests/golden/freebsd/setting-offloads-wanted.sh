offload.tso=0
offload.em1.lro=0
offload.em2.lro=0
