{
  printf 'qdisc del dev %s root\n' eth2
  printf 'qdisc del dev %s ingress\n' eth1
  printf 'qdisc del dev %s root\n' eth1
  printf 'qdisc del dev %s ingress\n' eth2
} | batch tc -force 2>&1
for device in /sys/class/net/sv-*; do
  [ ! -e "$device" ] || root ip link del "${device##*/}"
done
