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
