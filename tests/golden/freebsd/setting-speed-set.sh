ifconfig em1 media 100baseTX mediaopt full-duplex || fail em1" cannot be set to "100baseTX" "full"; ifconfig -m shows what it can be set to"
restarted em1
