txd.em1=256
txd.em2=256
