read -r device <bulk-client.device
launch bulk-client 21 bulk-client.out sh -c 'timeout --foreground "$0" "$@"; [ $? = 124 ]' 6 tcpreplay -i "$device" --timer=nano --loop=0 --multiplier=1.0 bulk-client.replay.pcap
