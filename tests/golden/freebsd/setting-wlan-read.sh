{
  ifconfig em1 list txparam 2>/dev/null
  ifconfig em2 list txparam 2>/dev/null
} | awk '
  { for (i = 1; i < NF; i++) if ($i == "ucast" && !seen[$(i + 1)]++) rates = rates (rates == "" ? "" : " ") $(i + 1) }
  END { print "wlan.rates=" (rates == "" ? "none" : rates) }'
