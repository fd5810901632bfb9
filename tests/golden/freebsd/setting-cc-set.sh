module cdg cc_cdg
turn net.inet.tcp.cc.cdg.beta_delay 60
turn net.inet.tcp.cc.algorithm cdg
