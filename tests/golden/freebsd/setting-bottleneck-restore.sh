ipfw -q delete 41
ipfw -q pipe 20001 delete
ipfw -q delete 42
ipfw -q pipe 20002 delete
ipfw -q delete 43 44
ipfw -q pipe 20999 delete
ipfw -q delete 46
ipfw -q pipe 21001 delete
ipfw -q delete 47
ipfw -q pipe 21002 delete
ipfw -q delete 48 49
ipfw -q queue 21999 delete
ipfw -q pipe 21999 delete
back net.inet.ip.fw.enable 1
back net.inet.ip.fw.one_pass 1
back net.inet.ip.dummynet.expire 1
back net.inet.ip.dummynet.pipe_slot_limit 100
back net.inet.ip.dummynet.pipe_byte_limit 1048576
