"""UDP packets in both directions, each at its own rate.

serve ADDRESS PORT SIZE INTERVAL DSCP; call ADDRESS PORT OWN SECONDS SIZE INTERVAL DSCP. SIZE is the payload
in bytes, or MEAN:SD of a normal distribution; every run has the same sizes. The server sends to the host
from which it received last. Each packet that arrives gives a line: its number, and the times of sending and
arrival, each by the clock of that host.
"""

import contextlib
import errno
import os
import random
import select
import socket
import struct
import sys
import time

HEAD = struct.Struct("!Qq")
SMALLEST, LARGEST = HEAD.size, 65507


def sizes(text):
    mean, _, deviation = text.partition(":")
    draw = random.Random(0)
    while True:
        size = draw.gauss(float(mean), float(deviation)) if deviation else float(mean)
        yield round(min(max(size, SMALLEST), LARGEST))


def talk(sock, peer, size, interval, end):
    sizing, interval_ns, number = sizes(size), round(float(interval) * 1e9), 0
    due = time.monotonic_ns()
    ended = end_pipe()  # noqa: F821 - ending.py precedes this file
    # On a busy host packets would be late at a normal priority: in a lab with one processor, 8 calls beside
    # 8 bulk flows paused for up to 2 s. The interpreter starts at a normal priority, so that it does not
    # delay the starts of other flows. Without root, the priority stays normal.
    with contextlib.suppress(PermissionError):
        os.nice(-10)
    sys.stdout.write("number,t_sent_ns,t_ns,bytes\n")
    while due < end:
        rest_s = max(0, due - time.monotonic_ns()) / 1e9 if peer else None
        readable = select.select([sock, ended], [], [], rest_s)[0]
        if ended in readable:
            break
        if readable:
            data, sender = sock.recvfrom(1 << 16)
            if not peer:
                due = time.monotonic_ns()
            peer = sender
            if len(data) >= HEAD.size:
                received, t_sent_ns = HEAD.unpack_from(data)
                sys.stdout.write(f"{received},{t_sent_ns},{time.time_ns()},{len(data)}\n")
        elif peer:
            try:
                sock.sendto(HEAD.pack(number, time.time_ns()) + bytes(next(sizing) - HEAD.size), peer)
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # FreeBSD's answer if the local queue drops the packet
                    raise
            number, due = number + 1, due + interval_ns
    sys.stdout.flush()


def opened(address, port, dscp):
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    if ":" in address:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 4 * int(dscp))
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 4 * int(dscp))
    sock.bind((address, int(port)))
    return sock


def serve(address, port, size, interval, dscp):
    talk(opened(address, port, dscp), None, size, interval, float("inf"))


def call(address, port, own, seconds, size, interval, dscp):
    end = time.monotonic_ns() + round(float(seconds) * 1e9)
    talk(opened(own, 0, dscp), (address, int(port)), size, interval, end)


{"serve": serve, "call": call}[sys.argv[1]](*sys.argv[2:])
