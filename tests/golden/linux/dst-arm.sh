launch_root dst-eth1 41 dst-eth1.pcap.gz nice -n -5 tcpdump -n -Z "$user" -i eth1 -s 96 -B 49152 --time-stamp-precision=nano -w -
launch bulk-server 41 bulk-server.out iperf3 -s -1 -p 5001 -B 172.16.11.2 -J
launch late-server 41 late-server.out nuttcp -S --nofork -P 7002
await 5 has_line dst-eth1.err 'listening on' || { cat dst-eth1.err >&2; fail "tcpdump does not listen on "eth1; }
await 5 listening 5001 || { cat bulk-server.err >&2; fail "iperf3 does not listen on port "5001; }
await 5 listening 7002 || { cat late-server.err >&2; fail "nuttcp does not listen on port "7002; }
while read -r c_name c_user c_nice c_system c_idle c_wait c_irq c_softirq c_steal _; do
  case $c_name in
    cpu) ;;
    cpu[0-9]*) echo "cpu.${c_name#cpu}=$((c_user + c_nice + c_system + c_irq + c_softirq + c_steal)) $((c_idle + c_wait))" ;;
    *) break ;; # the CPUs are the first lines
  esac
done </proc/stat
read -r c_early _ </proc/uptime
c_now=$(now_ns)
read -r c_late _ </proc/uptime
echo "clock=$c_now $c_early $c_late"
exit 0
