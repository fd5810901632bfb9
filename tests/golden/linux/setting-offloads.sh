# ---- read
feature() { # FEATURE: VALUE, a line of ethtool -k
  case ${1-} in
    tcp-segmentation-offload:) echo "offload.$interface.tso=$2" ;;
    generic-segmentation-offload:) echo "offload.$interface.gso=$2" ;;
    generic-receive-offload:) echo "offload.$interface.gro=$2" ;;
    large-receive-offload:) echo "offload.$interface.lro=$2" ;;
    rx-checksumming:) echo "offload.$interface.rx=$2" ;;
    tx-checksumming:) echo "offload.$interface.tx=$2" ;;
    tx-udp-segmentation: | rx-gro-list: | rx-udp-gro-forwarding: | rx-gro-hw:) echo "offload.$interface.${1%:}=$2" ;;
  esac
}
for interface in eth1 eth2; do each_line feature "$(ethtool -k "$interface")"; done
# ---- set
set --
set -- "$@" tso on
set -- "$@" gro off
set -- "$@" tx off
set -- "$@" rx-gro-list off
if [ $# -gt 0 ] && ! root ethtool -K eth1 "$@" >/dev/null 2>&1; then
  # A feature that cannot be changed must not prevent others from being changed; the result is read back.
  while [ $# -gt 0 ]; do root ethtool -K eth1 "$1" "$2" >/dev/null; shift 2; done
fi
set --
set -- "$@" tso on
set -- "$@" gro off
set -- "$@" tx off
set -- "$@" rx-gro-list off
if [ $# -gt 0 ] && ! root ethtool -K eth2 "$@" >/dev/null 2>&1; then
  # A feature that cannot be changed must not prevent others from being changed; the result is read back.
  while [ $# -gt 0 ]; do root ethtool -K eth2 "$1" "$2" >/dev/null; shift 2; done
fi
# ---- wanted
offload.eth1.tso=on
offload.eth1.gso=off
offload.eth1.gro=off
offload.eth1.lro=off
offload.eth1.tx=off
offload.eth2.tso=on
offload.eth2.gso=off
offload.eth2.gro=off
offload.eth2.lro=off
offload.eth2.tx=off
# ---- restore
set --
set -- "$@" tso off
set -- "$@" gro on
set -- "$@" tx on
set -- "$@" rx-gro-list on
[ $# -eq 0 ] || root ethtool -K eth1 "$@" >/dev/null
set --
set -- "$@" tso off
set -- "$@" gro on
set -- "$@" tx on
set -- "$@" rx-gro-list on
[ $# -eq 0 ] || root ethtool -K eth2 "$@" >/dev/null
