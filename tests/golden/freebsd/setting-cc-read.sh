module cdg cc_cdg
knob net.inet.tcp.cc.cdg.beta_delay cc.beta_delay
knob net.inet.tcp.cc.algorithm cc
