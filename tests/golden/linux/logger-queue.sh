# ---- start
launch src-queue 26 src-queue.csv python3 -IS -c '"""Report that a logger is ready; precedes the program of each logger."""

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
"""All queue disciplines of an interface, over rtnetlink(7). Arguments: INTERVAL_S READY INTERFACE."""

import _socket as socket
import _struct as struct
import sys
import time

interface = sys.argv[3]
index = socket.if_nametoindex(interface)
route = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
route.bind((0, 0))
route.settimeout(2)
# nlmsghdr (RTM_GETQDISC, REQUEST|DUMP) + tcmsg; the kernel dumps all devices, of which one is selected here
request = struct.pack("=IHHII", 36, 38, 0x301, 1, 0) + struct.pack("=BxxxiIII", 0, index, 0, 0, 0)

# Offsets of the counters of packets marked with Congestion Experienced, in the statistics of each queue
# discipline (linux/pkt_sched.h). codel counts marks above ce_threshold separately. pie'"'"'s counter is its last
# field; the first field has 32 or 64 bits, depending on the kernel.
MARKS = {
    "codel": (24, 32),
    "fq_codel": (12, 28),
    "red": (12,),
    "choke": (12,),
    "pie": (-4,),
    "fq_pie": (16,),
    "dualpi2": (24,),
}


def marks(kind, stats):
    counters = [stats[at:][:4] for at in MARKS.get(kind, ()) if at + 4 <= len(stats)]
    if kind == "cake":  # TCA_CAKE_STATS_TIN_STATS, each tin, TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS
        counters = [c for tins in inside(stats, 10) for tin in inside(tins) for c in inside(tin, 8)]
    return sum(struct.unpack("=I", one)[0] for one in counters) if counters else ""


def inside(data, wanted=None):
    return [value for kind, value in attributes(data, 0, len(data)) if wanted in (None, kind)]


def attributes(data, at, end):
    while at + 4 <= end:
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += length + 3 & ~3


def name(handle):
    major, minor = handle >> 16, handle & 0xFFFF
    return "root" if handle == 0xFFFFFFFF else f"{major:x}:{minor:x}" if minor else f"{major:x}:"


def row(message):
    _, device, handle, parent, _ = struct.unpack_from("=BxxxiIII", message, 0)
    if device != index:
        return None
    kind, sent_bytes, sent_packets, backlog, length, drops, overlimits, marked = "", 0, 0, 0, 0, 0, 0, ""
    for attribute, value in attributes(message, 20, len(message)):
        if attribute == 1:  # TCA_KIND
            kind = value.rstrip(b"\0").decode()
        elif attribute == 7:  # TCA_STATS2
            for stat, body in attributes(value, 0, len(value)):
                if stat == 1:  # TCA_STATS_BASIC
                    sent_bytes, sent_packets = struct.unpack_from("=QI", body, 0)
                elif stat == 3:  # TCA_STATS_QUEUE
                    length, backlog, drops, _, overlimits = struct.unpack_from("=IIIII", body, 0)
                elif stat == 4:  # TCA_STATS_APP
                    marked = marks(kind, body)
    counts = (backlog, length, sent_bytes, sent_packets, drops, overlimits, marked)
    return ",".join(map(str, (interface, kind, name(handle), name(parent), *counts)))


def sample(out):
    now = time.time_ns()
    route.send(request)
    while True:
        data = route.recv(1 << 18)
        at = 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind != 36 or length < 16:
                return
            line = row(data[at + 16 : at + length])
            if line:
                out.write(f"{now},{line}\n")
            at += length + 3 & ~3


COLUMNS = (
    "t_ns,interface,qdisc,handle,parent,"
    "backlog_bytes,backlog_packets,sent_bytes,sent_packets,drops,overlimits,marks"
)
every(sample, COLUMNS)  # noqa: F821 - sampling.py precedes this file
' 0.005 src-queue.ready eth1
# ---- ready
await_ready src-queue || { cat src-queue.err >&2; fail "the queue sampler does not run on "eth1; }
