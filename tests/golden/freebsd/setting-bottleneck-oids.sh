kern.hz net.inet.ip.fw.enable net.inet.ip.fw.one_pass net.inet.ip.dummynet.expire net.inet.ip.dummynet.pipe_slot_limit net.inet.ip.dummynet.pipe_byte_limit
