ipfw -q delete 51
ipfw -q pipe 22001 delete
ipfw -q delete 52
ipfw -q pipe 22002 delete
back net.inet.ip.fw.enable 1
