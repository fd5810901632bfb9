# ---- start
launch src-nic 26 src-nic.csv python3 -IS -c '"""Report that a logger is ready; precedes the program of each logger."""

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
"""Counters of an interface, and of PAUSE frames. Arguments: INTERVAL_S READY INTERFACE."""

import _socket as socket
import _struct as struct
import array
import fcntl
import posix
import sys
import time

interface = sys.argv[3]
table = posix.open("/proc/net/dev", posix.O_RDONLY)
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def ethtool(request):
    buffer = array.array("B", request)
    fcntl.ioctl(link, 0x8946, struct.pack("16sP16x", interface.encode(), buffer.buffer_info()[0]))
    return buffer.tobytes()


def pause_counters():
    try:
        (count,) = struct.unpack_from("=I", ethtool(struct.pack("=I", 3) + bytes(192)), 180)
        text = ethtool(struct.pack("=III", 0x1B, 1, count) + bytes(32 * count))
    except OSError:
        return 0, []
    names = [text[12 + 32 * k : 44 + 32 * k].split(b"\0")[0].decode("ascii", "replace") for k in range(count)]
    known = ("pause", "flow_control", "xon", "xoff", "pfc")
    return count, [
        (k, name.replace(",", "_"))
        for k, name in enumerate(names)
        if any(word in name.lower() for word in known)
    ]


# Columns of /proc/net/dev; the others are kinds of errors.
RECEIVED = {"rx_bytes": 0, "rx_packets": 1, "rx_errors": 2, "rx_dropped": 3, "multicast": 7}
COUNTED = RECEIVED | {"tx_bytes": 8, "tx_packets": 9, "tx_errors": 10, "tx_dropped": 11}
total, pauses = pause_counters()


def sample(out):
    data, now = posix.pread(table, 1 << 18, 0), time.time_ns()
    for line in data.split(b"\n"):
        name, _, rest = line.partition(b":")
        if name.strip() == interface.encode():
            counts = rest.split()
            row = [now, interface, *(int(counts[k]) for k in COUNTED.values())]
            if pauses:
                counters = ethtool(struct.pack("=II", 0x1D, total) + bytes(8 * total))
                row += [struct.unpack_from("=Q", counters, 8 + 8 * k)[0] for k, _ in pauses]
            out.write(",".join(map(str, row)) + "\n")
            return
    sys.exit("no interface " + interface)


NAMES = ["t_ns", "interface", *COUNTED, *("card." + name for _, name in pauses)]
every(sample, ",".join(NAMES), at_end=True)  # noqa: F821 - sampling.py precedes this file
' 0.1 src-nic.ready eth1
# ---- ready
await_ready src-nic || { cat src-nic.err >&2; fail "the sampler of counters does not run on "eth1; }
