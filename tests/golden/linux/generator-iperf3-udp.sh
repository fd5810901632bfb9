# ==== timed client ====
listen
(
at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out iperf3 -u -c 172.16.11.2 -B 172.16.10.2 -p 5001 -J -i 1 -b 1000000 -l 1400 -t 6
fi
) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >starter
sentinel() {
  trap '[ -z "$s_pid" ] || kill "$s_pid"; exit 0' TERM
  s_pid='' s_floor='' s_ceiling='' s_rest=5
  while :; do
    sleep "$s_rest" & s_pid=$!
    wait "$s_pid" && [ -p events ] || exit 0 # its sleep was killed with all processes of the campaign, or the trial's folder is gone
    s_early=
    [ ! -r /proc/uptime ] || read -r s_early _ </proc/uptime
    set -- $(df -Pk .)
    [ "${11:-48829}" -ge 48829 ] || tell_trouble disk "$((${11} * 1024 / 1000000))MB are free in $dir"
    if clock_at_boot; then
      [ -n "$s_floor" ] || s_floor=$b_floor s_ceiling=$b_ceiling
      s_step=0
      [ "$b_floor" -le "$s_ceiling" ] || s_step=$((b_floor - s_ceiling))
      [ "$b_ceiling" -ge "$s_floor" ] || s_step=$((b_ceiling - s_floor))
      [ "${s_step#-}" -le 50000000 ] || tell_trouble clock "stepped by $((s_step / 1000000)) ms"
    fi
    [ -n "$s_early" ] || continue
    read -r s_late _ </proc/uptime
    s_spent=$((${s_late%.*} * 100 + 1${s_late#*.} - ${s_early%.*} * 100 - 1${s_early#*.}))
    s_rest=$((s_spent / 2))
    [ "$s_rest" -ge 1 ] || s_rest=1
    [ "$s_rest" -le 30 ] || s_rest=30
  done
}
tell_trouble() { echo "trouble $*" 1<>events; }
if [ ! -e sentinel.pid ]; then
  ( sentinel ) </dev/null >/dev/null 2>&1 3>&- &
  echo "$!" >sentinel.pid
fi
clients=late-client
servers=''
named=''
loggers=''
due_of() {
  case $1 in
  late-client) due_ns=1000000008200000000 ;;
  *) due_ns=0 ;;
  esac
}
rules() {
  :
}
watch
exit 0
# ==== timed server ====
launch late-server 80 late-server.out iperf3 -s -1 -p 5001 -B 172.16.11.2 -J
network_failed() { # PREFIX PROGRAM CODE: the program's messages are in network.err, and its output cannot be trusted
  n_why='' n_lacks=''
  while read -r n_line || [ -n "$n_line" ]; do
    case $n_line in
      'Command failed '* | 'Dump terminated') ;;
      *': Network is unreachable' | *': No route to host' | *': Operation not supported') n_lacks=yes ;;
      *) n_why="$n_why: $n_line" ;;
    esac
  done <network.err
  if [ -z "$n_why" ] && [ -n "$n_lacks" ]; then return; fi
  echo "$1.unknown=$2 ended with exit code $3$n_why"
  n_output=''
}
network_filter() { [ -z "$n_pref" ] || echo "shaping.filter.$n_device.$n_pref.$n_count=$n_text"; n_pref=; }
network_queue() { # a line of tc qdisc show or tc filter show for one interface after the other, which name none
  case ${1-} in
    qdisc)
      network_filter
      case $4 in root) n_device=${n_names%% *} n_names=${n_names#* } n_count=0 ;; esac
      case "$2 $3" in noqueue* | 'mq '* | *' 0:') return ;; esac
      n_queue=$2 n_handle=$3; shift 3
      n_line=$*
      n_line=${n_line#root } n_line=${n_line#refcnt * }
      case $n_line in *' direct_packets_stat '*) n_line="${n_line%% direct_packets_stat *} ${n_line#* direct_packets_stat * }" ;; esac
      echo "shaping.qdisc.$n_device.$n_handle=$n_queue $n_line" ;;
    filter)
      n_line=$*
      n_now=${n_line#* pref }
      [ "${n_now%% *}" = "$n_pref" ] || { network_filter; n_pref=${n_now%% *} n_text='' n_count=$((n_count + 1)); }
      n_text="$n_text$n_line " ;;
    *) n_text="$n_text$* " ;;
  esac
}
network_route() { # a line of ip route get, which may begin with a type
  [ $# -gt 1 ] || return 0
  case $1 in *[.:]*) ;; *) shift ;; esac
  n_to=$1 n_text=''
  case " $* " in *' expires '*) n_learned=yes ;; *) n_learned='' ;; esac
  while [ $# -gt 1 ]; do
    case $1 in
      via | dev | src) n_text="$n_text$1 $2 " ;;
      mtu) [ "$2" != lock ] || shift; [ -n "$n_learned" ] || n_text="${n_text}mtu $2 " ;;
    esac
    shift
  done
  echo "network.route.$n_to=$n_text"
}
n_pref='' n_device='' n_count=0 n_names=''
for n_name in eth1; do
  read -r n_mtu <"/sys/class/net/$n_name/mtu" && echo "network.mtu.$n_name=$n_mtu" && n_names="$n_names$n_name "
done
if command -v tc >/dev/null; then
  n_output=$(
    for n_name in $n_names; do
      echo "qdisc show dev $n_name"
      for n_side in '' ' ingress' ' egress'; do echo "filter show dev $n_name$n_side"; done
    done | tc -force -batch - 2>network.err
  ) || network_failed shaping tc "$?"
  each_line network_queue "$n_output"
  network_filter
else
  echo "shaping.unseen=tc is not installed"
fi
n_output=$(
  for n_to in 172.16.10.2; do echo "route get $n_to"; done | ip -o -force -batch - 2>network.err
) || network_failed network ip "$?"
each_line network_route "$n_output"
await 5 listening 5001 || { cat late-server.err >&2; fail "iperf3 does not listen on port "5001; }
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
# ==== sized client ====
listen
(
at 1000000002500000000
if [ ! -e late-client.finished ]; then
launch late-client 17.5 late-client.out iperf3 -u -c 172.16.11.2 -B 172.16.10.2 -p 5001 -J -i 1 -b 1000000 -l 1400 -S 184 -n 1000000
fi
) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >starter
sentinel() {
  trap '[ -z "$s_pid" ] || kill "$s_pid"; exit 0' TERM
  s_pid='' s_floor='' s_ceiling='' s_rest=5
  while :; do
    sleep "$s_rest" & s_pid=$!
    wait "$s_pid" && [ -p events ] || exit 0 # its sleep was killed with all processes of the campaign, or the trial's folder is gone
    s_early=
    [ ! -r /proc/uptime ] || read -r s_early _ </proc/uptime
    set -- $(df -Pk .)
    [ "${11:-48829}" -ge 48829 ] || tell_trouble disk "$((${11} * 1024 / 1000000))MB are free in $dir"
    if clock_at_boot; then
      [ -n "$s_floor" ] || s_floor=$b_floor s_ceiling=$b_ceiling
      s_step=0
      [ "$b_floor" -le "$s_ceiling" ] || s_step=$((b_floor - s_ceiling))
      [ "$b_ceiling" -ge "$s_floor" ] || s_step=$((b_ceiling - s_floor))
      [ "${s_step#-}" -le 50000000 ] || tell_trouble clock "stepped by $((s_step / 1000000)) ms"
    fi
    [ -n "$s_early" ] || continue
    read -r s_late _ </proc/uptime
    s_spent=$((${s_late%.*} * 100 + 1${s_late#*.} - ${s_early%.*} * 100 - 1${s_early#*.}))
    s_rest=$((s_spent / 2))
    [ "$s_rest" -ge 1 ] || s_rest=1
    [ "$s_rest" -le 30 ] || s_rest=30
  done
}
tell_trouble() { echo "trouble $*" 1<>events; }
if [ ! -e sentinel.pid ]; then
  ( sentinel ) </dev/null >/dev/null 2>&1 3>&- &
  echo "$!" >sentinel.pid
fi
clients=late-client
servers=''
named=''
loggers=''
due_of() {
  case $1 in
  *) due_ns=0 ;;
  esac
}
rules() {
  :
}
watch
exit 0
# ==== sized server ====
launch late-server 80 late-server.out iperf3 -s -1 -p 5001 -B 172.16.11.2 -J
network_failed() { # PREFIX PROGRAM CODE: the program's messages are in network.err, and its output cannot be trusted
  n_why='' n_lacks=''
  while read -r n_line || [ -n "$n_line" ]; do
    case $n_line in
      'Command failed '* | 'Dump terminated') ;;
      *': Network is unreachable' | *': No route to host' | *': Operation not supported') n_lacks=yes ;;
      *) n_why="$n_why: $n_line" ;;
    esac
  done <network.err
  if [ -z "$n_why" ] && [ -n "$n_lacks" ]; then return; fi
  echo "$1.unknown=$2 ended with exit code $3$n_why"
  n_output=''
}
network_filter() { [ -z "$n_pref" ] || echo "shaping.filter.$n_device.$n_pref.$n_count=$n_text"; n_pref=; }
network_queue() { # a line of tc qdisc show or tc filter show for one interface after the other, which name none
  case ${1-} in
    qdisc)
      network_filter
      case $4 in root) n_device=${n_names%% *} n_names=${n_names#* } n_count=0 ;; esac
      case "$2 $3" in noqueue* | 'mq '* | *' 0:') return ;; esac
      n_queue=$2 n_handle=$3; shift 3
      n_line=$*
      n_line=${n_line#root } n_line=${n_line#refcnt * }
      case $n_line in *' direct_packets_stat '*) n_line="${n_line%% direct_packets_stat *} ${n_line#* direct_packets_stat * }" ;; esac
      echo "shaping.qdisc.$n_device.$n_handle=$n_queue $n_line" ;;
    filter)
      n_line=$*
      n_now=${n_line#* pref }
      [ "${n_now%% *}" = "$n_pref" ] || { network_filter; n_pref=${n_now%% *} n_text='' n_count=$((n_count + 1)); }
      n_text="$n_text$n_line " ;;
    *) n_text="$n_text$* " ;;
  esac
}
network_route() { # a line of ip route get, which may begin with a type
  [ $# -gt 1 ] || return 0
  case $1 in *[.:]*) ;; *) shift ;; esac
  n_to=$1 n_text=''
  case " $* " in *' expires '*) n_learned=yes ;; *) n_learned='' ;; esac
  while [ $# -gt 1 ]; do
    case $1 in
      via | dev | src) n_text="$n_text$1 $2 " ;;
      mtu) [ "$2" != lock ] || shift; [ -n "$n_learned" ] || n_text="${n_text}mtu $2 " ;;
    esac
    shift
  done
  echo "network.route.$n_to=$n_text"
}
n_pref='' n_device='' n_count=0 n_names=''
for n_name in eth1; do
  read -r n_mtu <"/sys/class/net/$n_name/mtu" && echo "network.mtu.$n_name=$n_mtu" && n_names="$n_names$n_name "
done
if command -v tc >/dev/null; then
  n_output=$(
    for n_name in $n_names; do
      echo "qdisc show dev $n_name"
      for n_side in '' ' ingress' ' egress'; do echo "filter show dev $n_name$n_side"; done
    done | tc -force -batch - 2>network.err
  ) || network_failed shaping tc "$?"
  each_line network_queue "$n_output"
  network_filter
else
  echo "shaping.unseen=tc is not installed"
fi
n_output=$(
  for n_to in 172.16.10.2; do echo "route get $n_to"; done | ip -o -force -batch - 2>network.err
) || network_failed network ip "$?"
each_line network_route "$n_output"
await 5 listening 5001 || { cat late-server.err >&2; fail "iperf3 does not listen on port "5001; }
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
