! ifconfig em1 list txparam >/dev/null 2>&1 || ifconfig em1 ucastrate 5.5 || fail em1" cannot be set to "5.5Mbit
! ifconfig em2 list txparam >/dev/null 2>&1 || ifconfig em2 ucastrate 5.5 || fail em2" cannot be set to "5.5Mbit
