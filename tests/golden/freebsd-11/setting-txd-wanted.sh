planned.txd.em1=256
txd.em1=256
planned.txd.em2=256
txd.em2=256
