"""The program of generators http, dash and incast: the rows that its client logs."""

from __future__ import annotations

import csv
import io
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "templates" / "posix" / "program" / "http.py"
HERE = "127.0.0.1"
Rows = list[dict[str, str]]


def _start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, PROGRAM, *map(str, words)], text=True, stdout=subprocess.PIPE)


def _rows(client: subprocess.Popen[str]) -> Rows:
    text = client.communicate(timeout=60)[0]
    assert client.returncode == 0
    return list(csv.DictReader(io.StringIO(text)))


def _free_port() -> int:
    with socket.create_server((HERE, 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server of the program."""
    port = _free_port()
    server = _start("serve", HERE, port)
    while True:
        try:
            socket.create_connection((HERE, port)).close()
            break
        except ConnectionRefusedError:
            assert server.poll() is None
    yield port
    server.kill()
    server.communicate()


def test_the_objects_of_a_page_have_the_number_of_the_page(port: int) -> None:
    rows = _rows(_start("get", HERE, port, HERE, "-", 5500, 1000, 2, 0.01))
    assert [(row["number"], row["bytes"]) for row in rows] == [
        *[("0", "1000")] * 2,
        *[("1", "1000")] * 2,
        ("2", "1000"),
        ("2", "500"),
    ]
    assert all(row["received_bytes"] == row["bytes"] for row in rows)
    assert all(float(row["first_byte_s"]) <= float(row["seconds"]) for row in rows)


def test_a_video_begins_at_its_lowest_rate_and_takes_the_highest_that_the_throughput_allows(
    port: int,
) -> None:
    rows = _rows(_start("play", HERE, port, HERE, "-", 400, 1600, 3, 0.1, 1))
    # 400 bit/s for 1 s, then 1600 bit/s for 0.1 s each; the last chunk is cut to the size of the flow
    assert [row["bytes"] for row in rows] == ["50", *["20"] * 17, "10"]
    assert [row["play_s"] for row in rows] == ["1.000000", *["0.100000"] * 17, "0.050000"]


def test_a_stopped_client_logs_the_received_bytes_of_its_last_object() -> None:
    with socket.create_server((HERE, 0)) as listener:
        client = _start("get", HERE, listener.getsockname()[1], HERE, "-", "-", 1000, 1, 0)
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(1000))
            connection.recv(1000)  # the request of the second object
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(300))
            _wait_until_read(connection, client)
            client.send_signal(signal.SIGTERM)
            rows = _rows(client)
    assert [(row["bytes"], row["received_bytes"]) for row in rows] == [("1000", "1000"), ("1000", "300")]


def _wait_until_read(connection: socket.socket, client: subprocess.Popen[str]) -> None:
    """Wait until the client has read everything and waits for more: its receive queue is empty, and it sleeps."""
    ends = f"{connection.getpeername()[1]:04X}", f"{connection.getsockname()[1]:04X}"
    pause = threading.Event()
    while True:
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        empty = any((w[1][-4:], w[2][-4:]) == ends and w[4].endswith(":00000000") for w in lines)
        state = Path(f"/proc/{client.pid}/stat").read_text().rpartition(")")[2].split()[0]
        if empty and state == "S":
            return
        pause.wait(0.01)
