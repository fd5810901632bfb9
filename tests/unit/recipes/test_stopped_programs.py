"""Programs of loggers and generators that get SIGTERM while they write to a full pipe."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import sys
import termios
import threading
from contextlib import suppress
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[3] / "templates"
PIPE_BYTES = 4096
ENDING = "posix/program/ending.py"
SEND_PAUSES = """
import os, socket
while not os.path.exists("ready"):
    pass
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("lo", 0))
for _ in range(500):
    link.send(bytes(12) + bytes.fromhex("88080001ffff") + bytes(42))
"""


def _python(*files: str) -> str:
    program = "".join((TEMPLATES / file).read_text() for file in files)
    return f"{shlex.quote(sys.executable)} -IS -c {shlex.quote(program)}"


def _logger(*names: str) -> str:
    return _python(
        "linux/program/ready.py",
        *(ENDING if name == "ending" else f"linux/program/{name}.py" for name in names),
    )


UDP = _python(ENDING, "posix/program/udp.py")
COMMANDS = {
    "cpu": f"exec {_logger('sampling', 'cpu')} 0.0001 ready",
    "beacons": f"exec {_logger('ending', 'beacons')} ready 224.0.1.199 0.0001 always lo ''",
    "pause-frames": f"{sys.executable} -c {shlex.quote(SEND_PAUSES)} >&- & exec {_logger('ending', 'pause_frames')} ready lo",
    "udp": f"{UDP} serve 127.0.0.1 5001 100 0.0001 0 >/dev/null & until grep -q :1389 /proc/net/udp; do :; done\n"
    f"exec {UDP} call 127.0.0.1 5001 127.0.0.1 60 100 0.0001 0",
}


def _wait_until_full(reader: int, program: subprocess.Popen[bytes]) -> None:
    pause = threading.Event()
    while int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), sys.byteorder) < PIPE_BYTES:
        assert program.poll() is None
        pause.wait(0.01)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_program_that_is_stopped_while_it_writes_loses_no_line(name: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    root = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    with (tmp_path / "errors").open("w+") as errors, subprocess.Popen(
        ["unshare", "--net", *root, "sh", "-c", f"ip link set lo up\n{COMMANDS[name]}"],
        cwd=tmp_path, stdout=writer, stderr=errors, start_new_session=True,
    ) as program:  # fmt: skip
        os.close(writer)
        try:
            _wait_until_full(reader, program)
            program.send_signal(signal.SIGTERM)
            with open(reader, encoding="ascii") as output:
                header, *rows = [line.split(",") for line in output.read().split("\n")]
            assert program.wait(20) == 0, Path(errors.name).read_text()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
    assert rows.pop() == [""]
    assert {len(row) for row in rows} == {len(header)}
    if name == "beacons":  # each beacon is in two rows: as sent and as received
        numbers = list(dict.fromkeys(int(row[header.index("sequence")]) for row in rows))
        assert numbers == list(range(1, len(numbers) + 1))
