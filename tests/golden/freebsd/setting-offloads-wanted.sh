offload.tso=0
offload.em1.merging=0
offload.em2.merging=0
