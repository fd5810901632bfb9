set --
case $(tcpdump -h 2>&1) in *time-stamp-precision*) set -- --time-stamp-precision=nano ;; esac
launch src-tcpdump 21 src-tcpdump.pcap.gz nice -n -5 tcpdump -n -i em1 -s 96 -B 16384 "$@" -w -
