{
  : # a shell accepts no empty list of commands
  printf 'qdisc del dev %s root handle 1:\n' eth2
} | batch tc -force 2>&1
set -- /sys/class/net/sv-*
[ ! -e "$1" ] || for device; do echo "link del ${device##*/}"; done | batch ip -force
