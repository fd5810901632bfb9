back net.inet.tcp.cc.algorithm newreno
back net.inet.tcp.cc.cdg.beta_delay 70
