# ---- read
ethtool -a eth1 2>/dev/null | while read -r what value _; do
  case $what in Autonegotiate:) what=autoneg ;; RX:) what=rx ;; TX:) what=tx ;; *) continue ;; esac
  echo pause.eth1".$what=$value"
done
ethtool -a eth2 2>/dev/null | while read -r what value _; do
  case $what in Autonegotiate:) what=autoneg ;; RX:) what=rx ;; TX:) what=tx ;; *) continue ;; esac
  echo pause.eth2".$what=$value"
done
# ---- set
set --
set -- "$@" rx off
set -- "$@" autoneg off
[ $# -eq 0 ] || { root ethtool -A eth1 "$@" && await 20 linked eth1; } || fail eth1" refused this flow control ($*), or its link did not come back within 20 s"
set --
set -- "$@" rx off
set -- "$@" autoneg off
[ $# -eq 0 ] || { root ethtool -A eth2 "$@" && await 20 linked eth2; } || fail eth2" refused this flow control ($*), or its link did not come back within 20 s"
# ---- wanted
pause.eth1.rx=off
pause.eth1.tx=on
pause.eth1.autoneg=off
pause.eth2.rx=off
pause.eth2.tx=on
pause.eth2.autoneg=off
# ---- restore
set --
set -- "$@" rx on
set -- "$@" autoneg on
[ $# -eq 0 ] || { root ethtool -A eth1 "$@" && await 20 linked eth1; }
set --
set -- "$@" rx on
set -- "$@" autoneg on
[ $# -eq 0 ] || { root ethtool -A eth2 "$@" && await 20 linked eth2; }
