mtu.em1=600
mtu.em2=600
