"""One HTTP/1.1 connection: `serve ADDRESS PORT` sends N zeros for GET /N, `get` prints a line per request.

get FROM PORT OWN SECONDS BYTES FIRST OBJECT PERIOD: from address FROM, bound to OWN, for SECONDS or until
BYTES have arrived (either "-"), an object of FIRST bytes, then of OBJECT bytes, every PERIOD s (0: no pause).
"""

import socket
import sys
import threading
import time

ZEROS = bytes(1 << 16)


def answer(connection):
    with connection, connection.makefile("rb") as asked:
        for line in asked:
            if line.startswith(b"GET /"):
                left = int(line.split()[1][1:])
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)
                while left > 0:
                    left -= connection.send(ZEROS[:left])


def serve(address, port):
    listener = socket.create_server((address, int(port)))
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def fetch(connection, answers, size):
    connection.sendall(b"GET /%d HTTP/1.1\r\nHost: samovar\r\n\r\n" % size)
    while answers.readline() not in (b"\r\n", b""):
        pass
    left = size
    while left > 0:
        got = len(answers.read1(left))
        if not got:
            raise SystemExit("the server has closed the connection")
        left -= got


def get(address, port, own, seconds, total, first, size, period):
    end = time.monotonic() + float(seconds) if seconds != "-" else float("inf")
    wanted = int(total) if total != "-" else float("inf")
    connection = socket.create_connection((address, int(port)), source_address=(own, 0))
    answers = connection.makefile("rb", 1 << 16)
    sys.stdout.write("t_ns,bytes,seconds,late_s\n")
    due, number, done = time.monotonic(), 0, 0
    while done < wanted:
        now = time.monotonic()
        if due > now:
            time.sleep(max(0.0, min(due, end) - now))
        if time.monotonic() >= end:
            break
        begun, t_ns = time.monotonic(), time.time_ns()
        asked = int(min(int(first) if number == 0 else int(size), wanted - done))
        connection.settimeout(max(0.001, end - begun) if end != float("inf") else None)
        try:
            fetch(connection, answers, asked)
        except TimeoutError:
            break
        took = time.monotonic() - begun
        sys.stdout.write(f"{t_ns},{asked},{took:.6f},{max(0.0, begun - due):.6f}\n")
        done, number, due = done + asked, number + 1, due + float(period)
    sys.stdout.flush()


{"serve": serve, "get": get}[sys.argv[1]](*sys.argv[2:])
