"""Test that the program of the generators voip and game continues when the local queue drops its packets."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parents[3] / "templates" / "posix" / "program"
PROGRAM = (PROGRAMS / "ending.py").read_text() + (PROGRAMS / "udp.py").read_text()
AS_FREEBSD = """
import socket
class Socket(socket.socket):
    def __init__(self, *words):
        super().__init__(*words)
        self.setsockopt(socket.IPPROTO_IP, 11, 1)
socket.socket = Socket
"""
"""With IP_RECVERR, Linux reports to a program that the local queue dropped its packet, as FreeBSD always does."""
QUEUE = """set -e
ip link add em1 type veth peer name em9
ip address add 192.0.2.1/24 dev em1
ip link set em1 up
ip link set em9 up
ip neighbour add 192.0.2.2 lladdr 02:00:00:00:00:02 dev em1
tc qdisc add dev em1 root tbf rate 8kbit burst 200 limit 200
"$@"
tc -s qdisc show dev em1"""


def test_a_call_continues_if_the_local_queue_drops_its_packets() -> None:
    root = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    call = [sys.executable, "-c", AS_FREEBSD + PROGRAM, "call"]
    words = ["192.0.2.2", "5001", "192.0.2.1", "0.2", "100", "0.01", "0"]
    done = subprocess.run(
        ["unshare", "--net", *root, "sh", "-c", QUEUE, "sh", *call, *words],
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "(dropped 0," not in done.stdout
