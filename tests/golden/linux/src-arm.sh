pinned() { # a neighbour is permanent: ATF_PERM and ATF_COM of arp(7)
  [ -r /proc/net/arp ] || return 1
  while read -r _ _ n_flags _; do [ "$n_flags" != 0x6 ] || return 0; done </proc/net/arp
  return 1
}
if ! pinned && command -v ping >/dev/null; then
  for n_peer in 172.16.11.2; do
    timeout 2 ping -c 1 "$n_peer" >/dev/null 2>&1 || timeout 2 ping -c 1 "$n_peer" >/dev/null 2>&1
  done
fi
launch_root src-eth1 81 src-eth1.pcap.gz nice -n -5 tcpdump -n -Z "$user" -i eth1 -s 96 -B 49152 --time-stamp-precision=nano -w -
launch src-tcp-info 81 src-tcp-info.csv python3 -IS -c '"""Report that a logger is ready; precedes the program of each logger."""

import posix


def tell_ready(name):
    """Create a file of this name, and wake the script that waits at the trial'"'"'s named pipe, if any."""
    open(name, "w").close()
    try:
        pipe = posix.open("events", posix.O_WRONLY | posix.O_NONBLOCK)
    except OSError:
        return
    posix.write(pipe, b"ready\n")
    posix.close(pipe)


"""Loop of all samplers; this file precedes the program of each sampler.

Arguments: INTERVAL_S READY, then the arguments of the sampler.
"""

import _signal as signal
import sys
import time


def every(sample, columns, at_end=False):
    """Write the names of the columns, then samples until SIGTERM.

    There is a sample at the start, and one after each interval; if `at_end` is true, also one after SIGTERM.
    """
    interval_ns, ready = int(float(sys.argv[1]) * 1e9), sys.argv[2]
    out, ending = sys.stdout, [signal.SIGTERM]
    out.write(columns + "\n")
    sample(out)
    # Python may call the handler of a signal within a write to `out`, and another write is refused then.
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    tell_ready(ready)  # noqa: F821 - ready.py precedes this file
    due = time.monotonic_ns()
    while True:
        due += interval_ns
        rest = due - time.monotonic_ns()
        if rest < 0:
            due -= rest  # shift the schedule after a late sample, so that no burst of samples follows
        if signal.sigtimedwait(ending, max(0, rest) / 1e9):
            break
        sample(out)
    if at_end:
        sample(out)
    out.flush()
"""TCP_INFO of every connection between ADDRESSes, over sock_diag(7). Arguments: INTERVAL_S READY ADDRESS…"""

import _socket as socket
import _struct as struct
import sys
import time

addresses = set(sys.argv[3:])
STATES = {
    1: "ESTAB",
    2: "SYN-SENT",
    3: "SYN-RECV",
    4: "FIN-WAIT-1",
    5: "FIN-WAIT-2",
    7: "UNCONN",
    8: "CLOSE-WAIT",
    9: "LAST-ACK",
    11: "CLOSING",
}
INFO, CONG = 2, 4  # INET_DIAG_INFO, INET_DIAG_CONG (linux/inet_diag.h)
WANTED = sum(1 << state for state in (1, 4, 5, 8, 9, 11))
diag = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
diag.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
diag.settimeout(2)
ext = 1 << (INFO - 1) | 1 << (CONG - 1)
# TCPDIAG_GETSOCK with a struct inet_diag_req dumps the sockets of both families in one pass. IPv4 connections
# of a program that listens at `::` are on IPv6 sockets.
TCPDIAG_GETSOCK = 18
request = struct.pack("=IHHII", 76, TCPDIAG_GETSOCK, 0x301, 1, 0) + struct.pack("=xxxB48xII", ext, WANTED, 0)


def fields(info):
    # struct tcp_info (linux/tcp.h): 8 bytes of flags, 24 u32 of state, u64 counters; older kernels send less
    info = info + bytes(max(0, 260 - len(info)))
    w = struct.unpack_from("=24I", info, 8)
    (pacing,) = struct.unpack_from("=Q", info, 104)
    (acked,) = struct.unpack_from("=Q", info, 120)
    (min_rtt,) = struct.unpack_from("=I", info, 148)
    (rate,) = struct.unpack_from("=Q", info, 160)
    sent, retrans = struct.unpack_from("=QQ", info, 200)
    (snd_wnd,) = struct.unpack_from("=I", info, 228)
    state = [w[k] for k in (18, 17, 15, 16)] + [min_rtt] + [w[k] for k in (0, 2, 3, 4, 6, 7, 23)]
    pace = "" if pacing >> 63 else pacing * 8  # all ones: not paced
    return (*state, acked, sent, retrans, snd_wnd, w[22], rate * 8, pace, info[1])


def sockets(data):
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if kind != TCPDIAG_GETSOCK or length < 16:
            yield None
            return
        yield data[at + 16 : at + length]
        at += length + 3 & ~3


def row(message):
    family, state = message[0], message[1]
    sport, dport = struct.unpack_from(">HH", message, 4)
    size = 4 if family == 2 else 16
    src, dst = (socket.inet_ntop(family, message[k : k + size]) for k in (8, 24))
    src, dst = src.removeprefix("::ffff:"), dst.removeprefix("::ffff:")
    if src not in addresses or dst in ("0.0.0.0", "::"):
        return None
    cc, values, at = "", None, 72
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if length < 4:
            break
        if kind == INFO:
            values = fields(message[at + 4 : at + length])
        elif kind == CONG:
            cc = message[at + 4 : at + length].split(b"\0")[0].decode()
        at += length + 3 & ~3
    if values is None:
        return None
    return ",".join(map(str, (src, sport, dst, dport, STATES.get(state, state), cc, *values)))


def sample(out):
    now = time.time_ns()
    diag.send(request)
    while True:
        for message in sockets(diag.recv(1 << 18)):
            if message is None:
                return
            line = row(message)
            if line:
                out.write(f"{now},{line}\n")


COLUMNS = (
    "t_ns,src,sport,dst,dport,state,cc,cwnd_packets,ssthresh_packets,srtt_us,rttvar_us,min_rtt_us,rto_us,"
    "snd_mss_bytes,rcv_mss_bytes,unacked_packets,lost_packets,retrans_packets,total_retrans_packets,bytes_acked,bytes_sent,"
    "bytes_retrans,snd_wnd_bytes,rcv_space_bytes,delivery_rate_bps,pacing_rate_bps,ca_state"
)
every(sample, COLUMNS)  # noqa: F821 - sampling.py precedes this file
' 0.01 src-tcp-info.ready 172.16.10.2 172.16.11.2
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
  for n_to in 172.16.11.2; do echo "route get $n_to"; done | ip -o -force -batch - 2>network.err
) || network_failed network ip "$?"
each_line network_route "$n_output"
await_ready src-tcp-info || { cat src-tcp-info.err >&2; fail "the TCP_INFO sampler does not run"; }
await 5 has_line src-eth1.err 'listening on' || { cat src-eth1.err >&2; fail "tcpdump does not listen on "eth1; }
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
