ifconfig em1 media autoselect
( settled em1 )
ifconfig em2 media 100baseTX mediaopt full-duplex
( settled em2 )
