# ---- start
set -- ${SSH_CONNECTION:-}
launch src-beacons 26 src-beacons.csv python3 -IS -c '"""Report that a logger is ready; precedes the program of each logger."""

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


"""Let a program notice SIGTERM while it waits in select(); precedes the program."""

import _signal
import posix


def end_pipe():
    """Return a file descriptor that SIGTERM makes readable."""
    ended, end = posix.pipe()
    posix.set_blocking(end, False)
    _signal.set_wakeup_fd(end)
    # The handler does nothing, because Python may call it within a write to standard output.
    _signal.signal(_signal.SIGTERM, lambda *_: None)
    return ended


"""Receive and send multicast beacons, in the format of docs/reference/traces.md.

Arguments: READY GROUP INTERVAL_S SEND INTERFACE ADDRESS; the last two select the network.
"""

import _socket as socket
import _struct as struct
import array
import fcntl
import posix
import select
import sys
import time

ready, group, interval_s, send, control, reached = sys.argv[1:7]
interval_ns, MAGIC, SOL_PACKET, SIOCGIFADDR = int(float(interval_s) * 1e9), b"SAMOVAR1", 263, 0x8915
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def address_of(interface):
    try:
        return socket.inet_ntoa(
            fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", interface.encode()))[20:24]
        )
    except OSError:
        return ""


held = {address_of(name): name for _, name in socket.if_nameindex()}
interface = control or held.get(reached.removeprefix("::ffff:"))
own = address_of(interface) if interface else ""
if not own:
    sys.exit("no interface of the control network was found; set `control` to an interface with an address")

out, membership = sys.stdout, socket.inet_aton(group) + socket.inet_aton(own)
member = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
member.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
sender.setsockopt(
    socket.SOL_SOCKET,
    26,
    struct.pack("HP", 1, (none := array.array("B", struct.pack("=HBBI", 6, 0, 0, 0))).buffer_info()[0]),
)
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own))
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)

# Classic BPF on the IP packet: ICMP packets to the group.
(to_group,) = struct.unpack(">I", socket.inet_aton(group))
program = array.array(
    "B",
    b"".join(
        struct.pack("=HBBI", *one)
        for one in (
            (0x20, 0, 0, 16),
            (0x15, 0, 3, to_group),
            (0x30, 0, 0, 9),
            (0x15, 0, 1, 1),
            (0x06, 0, 0, 0xFFFF),
            (0x06, 0, 0, 0),
        )
    ),
)
packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
packets.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", 6, program.buffer_info()[0]))
packets.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
packets.bind((interface, 3))

quiet_until = time.monotonic_ns() + (0 if send == "always" else 3 * interval_ns)
count = 0


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def beacon():
    global count
    count += 1
    body = struct.pack(
        ">HH8sQQ", posix.getpid() & 0xFFFF, count & 0xFFFF, MAGIC, time.time_ns(), count
    ) + bytes(24)
    check = checksum(b"\x08\0\0\0" + body)
    sender.sendto(struct.pack(">BBH", 8, 0, check) + body, (group, 0))


def write():
    global quiet_until
    packet, ancillary, _, address = packets.recvmsg(2048, 256)
    start = (packet[0] & 15) * 4
    if len(packet) < start + 8 or packet[start] != 8:
        return
    seconds, nanoseconds = struct.unpack("=qq", ancillary[0][2][:16])
    source, way = socket.inet_ntoa(packet[12:16]), "out" if address[2] == 4 else "in"
    ours = packet[start + 8 : start + 16] == MAGIC and len(packet) >= start + 32
    identifier, sequence = struct.unpack_from(">HH", packet, start + 4)
    sent_ns = ""
    if ours:
        sent_ns, sequence = struct.unpack_from(">QQ", packet, start + 16)
    came_ns = seconds * 10**9 + nanoseconds
    out.write(f"{came_ns},{way},{source},{identifier},{sequence},{sent_ns}\n")
    if way == "in" and send != "always" and (not ours or packet[12:16] < socket.inet_aton(own)):
        quiet_until = time.monotonic_ns() + 3 * interval_ns


ended = end_pipe()  # noqa: F821 - ending.py precedes this file
out.write("t_ns,direction,src,id,sequence,sent_ns\n")
tell_ready(ready)  # noqa: F821 - ready.py precedes this file
due, readable = quiet_until, []
while ended not in readable:
    if packets in readable:
        write()
    now = time.monotonic_ns()
    if now >= due:
        if send != "never" and now >= quiet_until:
            beacon()
        due = now + interval_ns
    readable = select.select([packets, ended], [], [], max(0, due - time.monotonic_ns()) / 1e9)[0]
packets.setblocking(False)
try:
    while True:
        write()
except BlockingIOError:
    pass
_, dropped = struct.unpack("=II", packets.getsockopt(SOL_PACKET, 6, 8))
sys.stderr.write(f"{dropped} beacons dropped by kernel\n")
out.flush()
' src-beacons.ready 224.0.1.199 1 auto eth0 "${3:-}"
# ---- ready
await_ready src-beacons || { cat src-beacons.err >&2; fail "beacons cannot be watched on the control network"; }
