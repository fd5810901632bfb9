"""The program of logger tcp-info, which samples TCP_INFO, run on real connections."""

from __future__ import annotations

import csv
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

PROGRAMS = Path(__file__).parents[3] / "templates" / "linux" / "program"


def test_ipv4_connections_of_a_program_that_listens_on_ipv6_are_sampled(tmp_path: Path) -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), server.accept()[0]:
            rows = sample(tmp_path, "127.0.0.1")
    ports = {(row["src"], int(row["sport"])) for row in rows}
    assert ("127.0.0.1", port) in ports


def test_ipv6_connections_are_sampled_at_both_ends(tmp_path: Path) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("::1", port)), server.accept()[0]:
            rows = sample(tmp_path, "::1")
    assert {(row["src"], port in (int(row["sport"]), int(row["dport"]))) for row in rows} >= {("::1", True)}


def sample(folder: Path, *addresses: str) -> list[dict[str, str]]:
    """Run the program until it reports that it is ready; return its rows about connections of these addresses."""
    names = ("ready.py", "sampling.py", "tcp_info.py")
    program = "".join((PROGRAMS / name).read_text() for name in names)
    ready = folder / "ready"
    command = [sys.executable, "-IS", "-c", program, "0.05", str(ready), *addresses]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sampler:
        limit = threading.Timer(20, sampler.kill)
        limit.start()
        while not ready.exists() and sampler.poll() is None:
            time.sleep(0.01)
        sampler.terminate()
        assert sampler.stdout
        text = sampler.stdout.read()
        limit.cancel()
    return list(csv.DictReader(text.splitlines()))
