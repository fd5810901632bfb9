"""Generators between IPv6 addresses: the programs send over the loopback address ::1."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from samovar.recipes import Catalogue

CATALOGUE = Catalogue(Path(__file__).parents[3] / "templates")
SHELL = """
launch() { shift 3; exec timeout 20 "$@"; }
await() { shift; for k_try in 1 2 3 4 5 6 7 8 9 10; do "$@" && return; sleep 0.2; done; return 1; }
fail() { echo "$*" >&2; exit 1; }
"""
VALUES = {
    "name": "late",
    "output": "late.out",
    "from_address": "::1",
    "to_address": "::1",
    "duration_s": None,
    "size_bytes": 5_000,
    "limit_s": 20,
    "cc": None,
    "dscp": 10,
    "system": "linux",
}
# Text that the client or, for generators in REPORTED_BY_SERVER, the server prints about the 5000 bytes.
PRINTED = {
    "dash": ",5000,",
    "game": "\n80,",
    "http": ",5000,",
    "incast": ",5000,",
    "iperf": ",5000,",
    "iperf-udp": ",::1,",
    "iperf3": '"bytes":\t5000,',
    "iperf3-udp": '"bytes":\t5600,',
    "nuttcp": "megabytes=0.0048 ",
    "nuttcp-udp": " pkt=4 ",
    "voip": "\n25,",
}
REPORTED_BY_SERVER = {"game", "iperf", "voip"}


def _free_port() -> int:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("generator", PRINTED)
def test_a_generator_sends_its_bytes_between_ipv6_addresses(generator: str, tmp_path: Path) -> None:
    recipe = CATALOGUE.recipe("generator", generator, "linux")
    values = VALUES | {"port": _free_port()}
    listening = CATALOGUE.recipe("step", "listening", "linux").render("script", values)

    def start(*blocks: str) -> subprocess.Popen[str]:
        text = SHELL + listening + "".join(recipe.render(block, values) for block in blocks)
        return subprocess.Popen(["dash", "-c", text], cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    with start("server") as server:
        try:
            (tmp_path / "late.err").touch()
            with start("ready", "client") as client:
                by_client = client.communicate(timeout=30)[0]
        finally:
            server.terminate()
        by_server = server.communicate(timeout=30)[0]
    assert client.returncode == 0
    assert PRINTED[generator] in (by_server if generator in REPORTED_BY_SERVER else by_client)


def test_scp_puts_the_address_in_brackets_because_ipv6_addresses_contain_colons() -> None:
    values = VALUES | {"port": 5001}
    text = CATALOGUE.recipe("generator", "scp", "linux").render("client", values)
    assert text.endswith(' late.file "$user@["::1"]:/dev/null"\n')
