ifconfig em1 media autoselect
restarted em1
