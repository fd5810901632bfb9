"""Send and receive UDP with few system calls: each costs 20 us in user-mode Linux, and iperf makes several per datagram."""

from __future__ import annotations

FLOOD = """
import ctypes, socket, sys, time
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]
class Message(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint), ("parts", ctypes.POINTER(Part)),
                ("count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
                ("flags", ctypes.c_long), ("sent", ctypes.c_uint)]
address, port, size, seconds, batch, rate = sys.argv[1], *map(float, sys.argv[2:])
part = Part(bytes(int(size)), int(size))
messages = (Message * int(batch))(*[Message(parts=ctypes.pointer(part), count=1) for _ in range(int(batch))])
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.connect((address, int(port)))
send, now = ctypes.CDLL(None).sendmmsg, time.monotonic()
due, end = now, now + seconds
while now < end:
    send(out.fileno(), ctypes.byref(messages), int(batch), 0)
    due = max(due + batch * size * 8 / rate, now - 0.01)
    time.sleep(max(0, due - time.monotonic()))
    now = time.monotonic()
"""
"""ADDRESS PORT SIZE SECONDS BATCH RATE: payload in bytes and in bit/s; what a busy machine held up for long is not made up for."""

SINK = """
import socket, sys, time
into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
into.bind(("", int(sys.argv[1])))
time.sleep(float(sys.argv[2]))
"""
"""PORT SECONDS: a socket that nobody reads, so that what arrives has cost all that a device can charge for it."""


def command(program: str) -> str:
    """Write a program as a command of one line, which is what an experiment can hold."""
    return f"python3 -c 'exec(bytes.fromhex(\"{program.encode('ascii').hex()}\"))'"
