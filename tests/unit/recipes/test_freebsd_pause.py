"""Logger pause-frames of FreeBSD: frames parsed from a real tcpdump's output, with every installed awk."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.recipes.freebsd_sample import ROOT, logger_script, recorded_output, run_logger

NAME = "pause-frames"
DATA = ROOT / "analysis" / "tests" / "testthat" / "data"
CAPTURE = DATA / "pause-frames.pcap"
ROWS = (DATA / "pause-frames-freebsd.csv").read_text().splitlines()
"""The rows that the recipe writes for the capture; tests in R compare them with the frames that R reads from it."""
IFCONFIG = "em1: " + recorded_output("14.0", "ifconfig").split("em1: ")[1].split("lo0: ")[0]
AWKS = [name for name in ("awk", "mawk", "gawk", "original-awk", "busybox") if shutil.which(name)]
TCPDUMP = shutil.which("tcpdump")
FROM_FILE = f"""!
for word; do
  shift
  case $word in -i) word=-r ;; em1) word=- ;; esac
  set -- "$@" "$word"
done
{TCPDUMP} "$@" <'{CAPTURE}'
echo 'listening on em1' >&2; exec sleep 20"""
"""A stand-in for tcpdump: reads the capture instead of the interface, then waits as if it still listened."""


@pytest.mark.parametrize("awk", AWKS)
def test_mac_control_frames_are_parsed_from_tcpdump_s_output_for_a_real_capture(
    awk: str, tmp_path: Path
) -> None:
    program = f'!exec {shutil.which(awk)} {"awk" if awk == "busybox" else ""} "$@"'
    rows = run_logger(NAME, {"tcpdump": FROM_FILE, "ifconfig": IFCONFIG, "awk": program}, tmp_path)
    assert rows == ROWS


def test_the_loggers_of_freebsd_and_linux_write_the_same_columns() -> None:
    linux = (ROOT / "templates" / "linux" / "program" / "pause_frames.py").read_text()
    assert f'out.write("{ROWS[0]}\\n")' in linux


SEND = f"""
import socket, subprocess
lines = subprocess.run(["{TCPDUMP}", "-t", "-xx", "-r", "-", "ether", "proto", "0x8808"],
                       stdin=open("{CAPTURE}"), capture_output=True, text=True).stdout.splitlines()
frames = []
for line in lines:
    if line.startswith("\\t"):
        frames[-1] += bytes.fromhex(line.partition(":")[2])
    else:
        frames.append(b"")
for frame in frames:
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind(("em1" if frame[6:12].hex() == "525400a30801" else "em9", 0))
    link.send(frame)
"""
LIVE = """
ip link add em1 address 52:54:00:a3:08:01 type veth peer name em9 address 52:54:00:a4:08:01 || exit 1
ip link set em1 up && ip link set em9 up || exit 1
{start}
n=0; until [ -e src-{name}.ready ]; do n=$((n + 1)); [ $n -lt 300 ] || exit 2; sleep 0.02; done
python3 -c "$SEND" || exit 3
read -r watching <src-{name}.watching
n=0; until grep -q 'tcpdump: {count} packets captured' src-{name}.err; do
  n=$((n + 1)); [ $n -lt 300 ] || exit 4
  kill -USR1 "$watching"; sleep 0.02
done
kill $!; wait
"""


def test_mac_control_frames_are_recorded_from_a_live_interface(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    stubs = {"ifconfig": f"cat <<'EOF'\n{IFCONFIG}EOF", "tcpdump": f'exec {TCPDUMP} -Z root "$@"'}
    for name, body in stubs.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    script = LIVE.format(start=logger_script(NAME, tmp_path), name=NAME, count=len(ROWS) - 1)
    inside = ["unshare", "--net", *(() if os.geteuid() == 0 else ("--user", "--map-root-user"))]
    done = subprocess.run(
        [*inside, "dash", "-c", script],
        env={**os.environ, "SEND": SEND}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    errors = (tmp_path / f"src-{NAME}.err").read_text()
    assert done.returncode == 0, done.stderr + errors
    rows = (tmp_path / f"src-{NAME}.csv").read_text().splitlines()
    assert [row.partition(",")[2] for row in rows] == [row.partition(",")[2] for row in ROWS]
    assert "0 packets dropped by kernel" in errors


def test_a_missing_interface_ends_the_logger_with_tcpdump_s_message(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    refusal = "tcpdump: em1: No such device exists"
    for name, body in {"ifconfig": "exit 1", "tcpdump": f"echo '{refusal}' >&2; exit 1"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    script = f"{logger_script(NAME, tmp_path)}\nwait $!"
    done = subprocess.run(["dash", "-c", script], check=False, capture_output=True, timeout=20)
    assert done.returncode == 1
    assert refusal in (tmp_path / f"src-{NAME}.err").read_text()
    assert not (tmp_path / f"src-{NAME}.ready").exists()
