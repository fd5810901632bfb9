"""HTTP/1.1 over one connection: `serve` sends N zeros for GET /N; `get` and `play` send and log requests.

serve ADDRESS PORT.
get FROM PORT OWN SECONDS BYTES OBJECT OBJECTS PERIOD: from address FROM, bound to OWN, for SECONDS or until
BYTES have arrived ("-": no such limit), pages of OBJECTS objects of OBJECT bytes, one object after the other,
a page every PERIOD s (0: no pause).
play FROM PORT OWN SECONDS BYTES RATE RATES CYCLE PREFETCH: a video of RATES bit rates, which are RATE bit/s
and its half, quarter and so on: first PREFETCH s at the lowest rate, then a chunk of CYCLE s every CYCLE s.

Each request, even an unfinished last one, gives a line: its time, the bytes requested, its duration and its
delay in seconds, the number of its page or chunk, the seconds until the answer began, the bytes that arrived,
and the play time of a chunk.
"""

import collections
import signal
import socket
import sys
import threading
import time

ZEROS = bytes(1 << 16)
COLUMNS = "t_ns,bytes,seconds,late_s,number,first_byte_s,received_bytes,play_s\n"
FOREVER = float("inf")


def answer(connection):
    with connection, connection.makefile("rb") as asked:
        for line in asked:
            if line.startswith(b"GET /"):
                left = int(line.split()[1][1:])
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)
                while left > 0:
                    left -= connection.send(ZEROS[:left])


def serve(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, int(port)), family=family)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def within(connection, end):
    connection.settimeout(max(0.001, end - time.monotonic()) if end != FOREVER else None)


def fetch(connection, answers, size, due, end, number, byte_s):
    """Request an object and return its throughput in bit/s. Raises TimeoutError at `end`."""
    begun, t_ns, first, received = time.monotonic(), time.time_ns(), "", 0
    try:
        within(connection, end)
        connection.sendall(b"GET /%d HTTP/1.1\r\nHost: samovar\r\n\r\n" % size)
        answers.readline()
        first = f"{time.monotonic() - begun:.6f}"
        while answers.readline() not in (b"\r\n", b""):
            pass
        while received < size:
            within(connection, end)
            got = len(answers.read1(size - received))
            if not got:
                raise SystemExit("the server has closed the connection")
            received += got
    finally:
        took = time.monotonic() - begun
        late = max(0.0, begun - due)
        play_s = f"{size * byte_s:.6f}" if byte_s else ""
        sys.stdout.write(f"{t_ns},{size},{took:.6f},{late:.6f},{number},{first},{received},{play_s}\n")
    return 8 * size / took


def pages(size, objects, period):
    """Yield, for each request, seconds from the start until it is due, bytes, number, play time of a byte."""
    number = 0
    while True:
        yield number * period or None, size, number, None
        for _ in range(objects - 1):
            yield None, size, number, None
        number += 1


def chunks(rates, cycle, prefetch):
    """Yield the same values as `pages`; the caller sends the throughput of the last chunk.

    The rate of a chunk is the highest one below the harmonic mean of the throughputs of the last five chunks.
    """
    number, play_s, rate, speeds = 0, max(prefetch, cycle), rates[-1], collections.deque(maxlen=5)
    while True:
        speeds.append((yield number * cycle or None, rate * play_s / 8, number, 8 / rate))
        mean = len(speeds) / sum(1 / speed for speed in speeds)
        rate = next((one for one in rates if one < mean), rates[-1])
        number, play_s = number + 1, cycle


def run(address, port, own, seconds, total, requests):
    begun = time.monotonic()
    end = begun + float(seconds) if seconds != "-" else FOREVER
    left = int(total) if total != "-" else FOREVER
    connection = socket.create_connection((address, int(port)), source_address=(own, 0))
    signal.signal(signal.SIGTERM, stop)
    answers = connection.makefile("rb", 1 << 16)
    sys.stdout.write(COLUMNS)
    try:
        begun, speed = time.monotonic(), None
        while left > 0:
            after_s, size, number, byte_s = requests.send(speed)
            due = now = time.monotonic()
            if after_s is not None:
                due = begun + after_s
                time.sleep(max(0.0, min(due, end) - now))
            if time.monotonic() >= end:
                break
            size = int(min(round(size), left))
            speed, left = fetch(connection, answers, size, due, end, number, byte_s), left - size
    except TimeoutError:
        pass
    sys.stdout.flush()


def get(address, port, own, seconds, total, size, objects, period):
    run(address, port, own, seconds, total, pages(int(size), int(objects), float(period)))


def play(address, port, own, seconds, total, rate, rates, cycle, prefetch):
    ladder = [float(rate) / 2**halvings for halvings in range(int(rates))]
    run(address, port, own, seconds, total, chunks(ladder, float(cycle), float(prefetch)))


def stop(*_):
    raise TimeoutError


{"serve": serve, "get": get, "play": play}[sys.argv[1]](*sys.argv[2:])
