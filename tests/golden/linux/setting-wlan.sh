# ---- read
r_seen=
for r_file in /sys/kernel/debug/ieee80211/*/netdev:wlan0/rc_rateidx_mask_2ghz; do
  [ -r "$r_file" ] && read -r r_mask <"$r_file" || continue
  case " $r_seen " in *" $r_mask "*) ;; *) r_seen="$r_seen${r_seen:+ }$r_mask" ;; esac
done
for r_file in /sys/kernel/debug/ieee80211/*/netdev:eth1/rc_rateidx_mask_2ghz; do
  [ -r "$r_file" ] && read -r r_mask <"$r_file" || continue
  case " $r_seen " in *" $r_mask "*) ;; *) r_seen="$r_seen${r_seen:+ }$r_mask" ;; esac
done
echo "wlan.rates=${r_seen:-none}"
# ---- set
[ ! -e /sys/class/net/wlan0/phy80211 ] || iw dev wlan0 set bitrates legacy-2.4 54 || fail wlan0" cannot be set to "54Mbit
[ ! -e /sys/class/net/eth1/phy80211 ] || iw dev eth1 set bitrates legacy-2.4 54 || fail eth1" cannot be set to "54Mbit
# ---- wanted
wlan.rates=0x800
# ---- restore
[ ! -e /sys/class/net/wlan0/phy80211 ] || iw dev wlan0 set bitrates
[ ! -e /sys/class/net/eth1/phy80211 ] || iw dev eth1 set bitrates
