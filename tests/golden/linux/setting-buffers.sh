# ---- read
set --
kernel_value /proc/sys/net/ipv4/tcp_wmem && set -- $value
kernel_value /proc/sys/net/ipv4/tcp_rmem && set -- "$@" $value
[ $# != 6 ] || printf 'tcp_%s=%s\n' wmem.low "$1" wmem.default "$2" wmem.max "$3" rmem.low "$4" rmem.default "$5" rmem.max "$6"
value=$(cat /proc/sys/net/core/rmem_max 2>/dev/null)
echo socket_receive_max"=${value:-absent}"
# ---- set
file=/proc/sys/net/core/rmem_max
{ can_put "$file" && put_in "$file" 400000; } 2>/dev/null || fail "$file belongs to the whole machine and cannot be set from this network namespace"
put_in /proc/sys/net/ipv4/tcp_wmem 4096" "262144" "33554432 || fail "the kernel refused net.ipv4."tcp_wmem
put_in /proc/sys/net/ipv4/tcp_rmem 4096" "4096" "200000 || fail "the kernel refused net.ipv4."tcp_rmem
# ---- wanted
tcp_wmem.default=262144
tcp_wmem.max=33554432
tcp_rmem.max=200000
socket_receive_max=400000
# ---- restore
put_in /proc/sys/net/ipv4/tcp_wmem 4096" "4096" "4096
put_in /proc/sys/net/ipv4/tcp_rmem 4096" "4096" "4096
! can_put /proc/sys/net/core/rmem_max || put_in /proc/sys/net/core/rmem_max 212992
