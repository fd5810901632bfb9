# ---- start
launch src-pause-frames 26 src-pause-frames.csv python3 -IS -c '"""Report that a logger is ready; precedes the program of each logger."""

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


"""MAC control frames on an interface. Arguments: READY INTERFACE."""

import _socket as socket
import _struct as struct
import array
import select
import sys

ready, interface = sys.argv[1], sys.argv[2]
ALL, MAC_CONTROL, SOL_PACKET = 3, 0x8808, 263
frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
# Classic BPF: whole frames of type MAC control, in both directions.
program = array.array(
    "B",
    b"".join(
        struct.pack("=HBBI", *one)
        for one in ((0x28, 0, 0, 12), (0x15, 0, 1, MAC_CONTROL), (0x06, 0, 0, 0xFFFF), (0x06, 0, 0, 0))
    ),
)
frames.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", 4, program.buffer_info()[0]))
frames.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
frames.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
frames.bind((interface, ALL))
# Only a promiscuous card receives frames to the group address.
frames.setsockopt(SOL_PACKET, 1, struct.pack("=iHH8s", socket.if_nametoindex(interface), 1, 0, b""))


def write(out, flags=0):
    frame, ancillary, _, address = frames.recvmsg(2048, 256, flags)
    seconds, nanoseconds = struct.unpack("=qq", ancillary[0][2][:16])
    (opcode,) = struct.unpack_from(">H", frame, 14)
    classes, quanta = "", ""
    if opcode == 1:
        (quanta,) = struct.unpack_from(">H", frame, 16)
    elif opcode == 0x101:
        values = struct.unpack_from(">9H", frame, 16)
        classes, quanta = f"0x{values[0]:02x}", " ".join(map(str, values[1:]))
    way = "out" if address[2] == 4 else "in"  # PACKET_OUTGOING
    came_ns, source = seconds * 10**9 + nanoseconds, frame[6:12].hex(":")
    out.write(f"{came_ns},{interface},{way},{source},0x{opcode:04x},{classes},{quanta}\n")


ended = end_pipe()  # noqa: F821 - ending.py precedes this file
out = sys.stdout
out.write("t_ns,interface,direction,src,opcode,classes,quanta\n")
tell_ready(ready)  # noqa: F821 - ready.py precedes this file
while ended not in select.select([frames, ended], [], [])[0]:
    write(out)
try:
    while True:
        write(out, 0x40)  # MSG_DONTWAIT: frames that have arrived and were not read yet
except BlockingIOError:
    pass
_, dropped = struct.unpack("=II", frames.getsockopt(SOL_PACKET, 6, 8))
sys.stderr.write(f"{dropped} frames dropped by kernel\n")
out.flush()
' src-pause-frames.ready eth1
# ---- ready
await_ready src-pause-frames || { cat src-pause-frames.err >&2; fail "PAUSE frames cannot be watched on "eth1; }
