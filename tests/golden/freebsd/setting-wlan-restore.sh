! ifconfig em1 list txparam >/dev/null 2>&1 || ifconfig em1 ucastrate any
! ifconfig em2 list txparam >/dev/null 2>&1 || ifconfig em2 ucastrate any
