# ---- start
launch src-cpu 26 src-cpu.csv python3 -IS -c 'import _signal as signal, posix, sys, time

interval_ns, ready = int(float(sys.argv[1]) * 1e9), sys.argv[2]
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
    return "%.4f" % (part / whole) if whole else ""

def sample(out):
    now = time.time_ns()
    for cpu, counts in cpus():
        gone = [b - a for a, b in zip(before.get(cpu, counts), counts)]
        before[cpu] = counts
        user, nice, system, idle, iowait, irq, softirq, steal = gone
        total = sum(gone)
        times = ",".join("%.2f" % (count * tick_s) for count in counts)
        out.write("%d,%s,%s,%s,%s,%s\n" % (now, cpu, share(total - idle - iowait, total), share(softirq, total),
                                           share(steal, total), times))

def stop(*_):
    sample(sys.stdout)  # what was since the last one
    sys.stdout.flush()
    posix._exit(0)

out = sys.stdout
out.write("t_ns,cpu,busy_share,softirq_share,steal_share,user_s,nice_s,system_s,idle_s,iowait_s,irq_s,softirq_s,steal_s\n")
due = time.monotonic_ns()
while True:
    sample(out)
    if ready:
        signal.signal(signal.SIGTERM, stop)
        open(ready, "w").close()
        ready = ""
    due += interval_ns
    rest = due - time.monotonic_ns()
    if rest > 0:
        time.sleep(rest / 1e9)
    else:
        due -= rest  # a late sample delays the next ones instead of a burst
' 0.1 src-cpu.ready
# ---- ready
await 5 exists src-cpu.ready || { cat src-cpu.err >&2; fail "the CPU sampler does not run"; }
