# ---- start
launch src-nic 26 src-nic.csv python3 -IS -c 'import _signal as signal, _socket as socket, _struct as struct, array, fcntl, posix, sys, time

interval_ns, ready, interface = int(float(sys.argv[1]) * 1e9), sys.argv[2], sys.argv[3]
table = posix.open("/proc/net/dev", posix.O_RDONLY)
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

def ethtool(request):
    buffer = array.array("B", request)
    fcntl.ioctl(link, 0x8946, struct.pack("16sP16x", interface.encode(), buffer.buffer_info()[0]))
    return buffer.tobytes()

def pause_counters():
    try:
        count, = struct.unpack_from("=I", ethtool(struct.pack("=I", 3) + bytes(192)), 180)
        text = ethtool(struct.pack("=III", 0x1B, 1, count) + bytes(32 * count))
    except OSError:
        return 0, []
    names = [text[12 + 32 * k:44 + 32 * k].split(b"\0")[0].decode("ascii", "replace") for k in range(count)]
    known = ("pause", "flow_control", "xon", "xoff", "pfc")
    return count, [(k, name.replace(",", "_")) for k, name in enumerate(names) if any(word in name.lower() for word in known)]

total, pauses = pause_counters()

def sample(out):
    data, now = posix.pread(table, 1 << 18, 0), time.time_ns()
    for line in data.split(b"\n"):
        name, _, rest = line.partition(b":")
        if name.strip() == interface.encode():
            rx_bytes, rx_packets, rx_errors, rx_dropped, _, _, _, multicast, tx_bytes, tx_packets, tx_errors, tx_dropped = \
                map(int, rest.split()[:12])
            row = [now, interface, rx_bytes, rx_packets, rx_errors, rx_dropped, multicast, tx_bytes, tx_packets, tx_errors, tx_dropped]
            if pauses:
                counters = ethtool(struct.pack("=II", 0x1D, total) + bytes(8 * total))
                row += [struct.unpack_from("=Q", counters, 8 + 8 * k)[0] for k, _ in pauses]
            out.write(",".join(map(str, row)) + "\n")
            return
    sys.exit("no interface " + interface)

def stop(*_):
    sample(sys.stdout)  # the counters at the end
    sys.stdout.flush()
    posix._exit(0)

out = sys.stdout
out.write(",".join(["t_ns", "interface", "rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "multicast", "tx_bytes",
                    "tx_packets", "tx_errors", "tx_dropped"] + ["card." + name for _, name in pauses]) + "\n")
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
' 0.1 src-nic.ready eth1
# ---- ready
await 5 exists src-nic.ready || { cat src-nic.err >&2; fail "the sampler of counters does not run on "eth1; }
