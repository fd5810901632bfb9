set --
set -- "$@" 41
set -- "$@" 42
set -- "$@" 43 44
set -- "$@" 46
set -- "$@" 47
set -- "$@" 48 49
ipfw -q delete "$@"
set --
set -- "$@" 20001
set -- "$@" 20002
set -- "$@" 20999
set -- "$@" 21001
set -- "$@" 21002
ipfw -q queue delete 21999
set -- "$@" 21999
ipfw -q pipe delete "$@"
back net.inet.ip.fw.enable 1 net.inet.ip.fw.one_pass 1 net.inet.ip.dummynet.expire 1 net.inet.ip.dummynet.pipe_slot_limit 100 net.inet.ip.dummynet.pipe_byte_limit 1048576
