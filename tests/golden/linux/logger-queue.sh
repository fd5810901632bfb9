# ---- start
launch src-queue 26 src-queue.csv python3 -IS -c 'import _signal as signal, _socket as socket, _struct as struct, posix, sys, time  # socket.py alone takes 0.1 s to load

interval_ns, ready, interface = int(float(sys.argv[1]) * 1e9), sys.argv[2], sys.argv[3]
index = socket.if_nametoindex(interface)
route = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
route.bind((0, 0))
route.settimeout(2)
# nlmsghdr (RTM_GETQDISC, REQUEST|DUMP) + tcmsg; the kernel dumps all devices, ours are picked here
request = struct.pack("=IHHII", 36, 38, 0x301, 1, 0) + struct.pack("=BxxxiIII", 0, index, 0, 0, 0)

def attributes(data, at, end):
    while at + 4 <= end:
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4:at + length]
        at += length + 3 & ~3

def name(handle):
    return "root" if handle == 0xFFFFFFFF else "%x:%s" % (handle >> 16, "%x" % (handle & 0xFFFF) if handle & 0xFFFF else "")

def row(message):
    _, device, handle, parent, _ = struct.unpack_from("=BxxxiIII", message, 0)
    if device != index:
        return None
    kind, sent_bytes, sent_packets, backlog, length, drops, overlimits = "", 0, 0, 0, 0, 0, 0
    for attribute, value in attributes(message, 20, len(message)):
        if attribute == 1:  # TCA_KIND
            kind = value.rstrip(b"\0").decode()
        elif attribute == 7:  # TCA_STATS2
            for stat, body in attributes(value, 0, len(value)):
                if stat == 1:  # TCA_STATS_BASIC
                    sent_bytes, sent_packets = struct.unpack_from("=QI", body, 0)
                elif stat == 3:  # TCA_STATS_QUEUE
                    length, backlog, drops, _, overlimits = struct.unpack_from("=IIIII", body, 0)
    return "%s,%s,%s,%s,%d,%d,%d,%d,%d,%d" % (interface, kind, name(handle), name(parent), backlog, length, sent_bytes,
                                              sent_packets, drops, overlimits)

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
            line = row(data[at + 16:at + length])
            if line:
                out.write("%d,%s\n" % (now, line))
            at += length + 3 & ~3

def stop(*_):
    sys.stdout.flush()
    posix._exit(0)

signal.signal(signal.SIGTERM, stop)
out = sys.stdout
out.write("t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes,sent_packets,drops,overlimits\n")
due = time.monotonic_ns()
while True:
    sample(out)
    if ready:
        open(ready, "w").close()
        ready = ""
    due += interval_ns
    rest = due - time.monotonic_ns()
    if rest > 0:
        time.sleep(rest / 1e9)
    else:
        due -= rest  # a late sample delays the next ones instead of a burst
' 0.005 src-queue.ready eth1
# ---- ready
await 5 exists src-queue.ready || { cat src-queue.err >&2; fail "the queue sampler does not run on "eth1; }
