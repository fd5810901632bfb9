launch src-tcpdump 21 src-tcpdump.pcap.gz nice -n -5 tcpdump -n -i em1 -s 96 -B 16384 --time-stamp-precision=nano -w -
