# ---- start
launch src-cpu 26 src-cpu.csv python3 -IS -c '"""Report that a logger is ready; precedes the program of each logger."""

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
"""Load of each CPU, from /proc/stat. Arguments: INTERVAL_S READY."""

import posix
import time

tick_s = 1 / posix.sysconf("SC_CLK_TCK")
stat = posix.open("/proc/stat", posix.O_RDONLY)
before = {}


def cpus():
    data = b""
    while b"\nintr" not in data:
        more = posix.pread(stat, 1 << 16, len(data))
        if not more:
            break
        data += more
    for line in data.split(b"\n"):
        name, *counts = line.split()[:9] or [b""]
        if name[:3] == b"cpu" and name != b"cpu":
            yield name[3:].decode(), [int(count) for count in counts]


def share(part, whole):
    return f"{part / whole:.4f}" if whole else ""


def sample(out):
    now = time.time_ns()
    for cpu, counts in cpus():
        gone = [b - a for a, b in zip(before.get(cpu, counts), counts, strict=True)]
        before[cpu] = counts
        _, _, _, idle, iowait, _, softirq, steal = gone
        total = sum(gone)
        shares = (share(total - idle - iowait, total), share(softirq, total), share(steal, total))
        times = (f"{count * tick_s:.2f}" for count in counts)
        out.write(",".join((str(now), cpu, *shares, *times)) + "\n")


COLUMNS = (
    "t_ns,cpu,busy_share,softirq_share,steal_share,"
    "user_s,nice_s,system_s,idle_s,iowait_s,irq_s,softirq_s,steal_s"
)
every(sample, COLUMNS, at_end=True)  # noqa: F821 - sampling.py precedes this file
' 0.1 src-cpu.ready
# ---- ready
await_ready src-cpu || { cat src-cpu.err >&2; fail "the CPU sampler does not run"; }
