net.inet.tcp.cc.algorithm net.inet.tcp.cc.cdg.beta_delay
