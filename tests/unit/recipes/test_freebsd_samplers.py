"""Samplers of FreeBSD, run with FreeBSD's awk, that are killed as timeout(1) kills them on slow hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.unit.recipes.freebsd_sample import CATALOGUE, values_of

PROGRAMS = {
    "stat": "echo >>samples; echo t 1795271645.123456",
    "sysctl": """case $* in
*kern.clockrate) echo '{ hz = 1000, tick = 1000, profhz = 8128, stathz = 127 }' ;;
*kern.cp_times) echo 1 2 3 4 5 ;;
esac""",
    "ifconfig": ":",
    "netstat": """cat <<'END'
Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop
em1    1500 <Link#2>      52:54:00:12:34:56     1073     0     0      71166     1896     0    2089028     0     0
END""",
    "ipfw": """case $* in
list) echo '00043 pipe 20999 ip from any to any out xmit em1' ;;
-a*) echo '00044 8 800 count ip from any to any out xmit em1' ;;
*) echo '20999:   4.000 Mbit/s    1 ms burst 0 '
   echo '  0 ip           0.0.0.0/0             0.0.0.0/0        9      900  0    0   1' ;;
esac""",
    "awk": 'exec original-awk "$@"',
}


def await_samples(file: Path, count: int) -> None:
    pause = threading.Event()
    while not file.exists() or file.stat().st_size < count:
        pause.wait(0.02)


@pytest.mark.parametrize("name", ["cpu", "nic", "queue"])
def test_a_killed_sampler_has_written_the_samples_that_it_took(name: str, tmp_path: Path) -> None:
    recipe = CATALOGUE.recipe("logger", name, "freebsd")
    for program, text in PROGRAMS.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / program).chmod(0o755)
    start = recipe.render("start", {**values_of(recipe), "interval_s": 0.05})
    script = f'PATH={tmp_path}:$PATH\nlaunch() {{ shift 3; exec "$@"; }}\n{start}'
    with subprocess.Popen(
        ["dash", "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as sampler:
        await_samples(tmp_path / "samples", 4)
        os.killpg(sampler.pid, signal.SIGKILL)
        assert sampler.stdout is not None
        rows = sampler.stdout.read().splitlines()
    assert rows[0].startswith("t_ns,")
    assert rows[1].startswith("1795271645123456")
