"""Send and receive UDP with few system calls.

A system call takes 20 us in user-mode Linux, and iperf makes several for each datagram.
"""

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
"""Arguments: ADDRESS PORT SIZE SECONDS BATCH RATE, with the size of the payload in bytes and its rate in bit/s. Datagrams that
are due more than 10 ms ago, as on a busy machine, are not sent."""

SINK = """
import socket, sys, time
into = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
into.bind(("", int(sys.argv[1])))
time.sleep(float(sys.argv[2]))
"""
"""Arguments: PORT SECONDS. Open a UDP socket and do not read from it, so that arriving datagrams cost no system calls."""


def command(program: str) -> str:
    """Return a command of one line, as experiments need it, that runs this program."""
    return f"python3 -c 'exec(bytes.fromhex(\"{program.encode('ascii').hex()}\"))'"
