launch bulk-client 21 bulk-client.out iperf3 -c 172.16.11.2 -B 172.16.10.2 -p 5001 -J -i 1 -t 6
( sleep 2.500000
launch late-client 21 late-client.out sh -c '
  begun=$(date +%s)
  nuttcp "$@" && exit
  [ $(($(date +%s) - begun)) -lt 3 ] || exit 1
  sleep 0.5
  exec nuttcp "$@"
' nuttcp -t -fparse -i 1 -P 7002 -p 5002 -l 65536 -T 6 172.16.11.2
wait ) &
wait
tell bulk-client
tell late-client
exit 0
