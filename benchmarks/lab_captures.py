"""Make two captures of a bulk transfer through the lab for the benchmarks, at the sender and at the receiver.

    python benchmarks/lab_captures.py

The captures are stored in .stamps/bench, which git ignores; remove this folder for new ones. The lab uses
the machine's own kernel, which is the fastest, and its path has no rate limit. If no such
lab is possible, the folder has no captures and the benchmarks read what make_capture.R writes.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CAPTURES = ROOT / ".stamps" / "bench"
ENDS = {"src": "sender.pcap", "dst": "receiver.pcap"}
LEAST_PACKETS = 1_400_000
LEAST_BYTES = LEAST_PACKETS * (16 + 96)
"""Size of LEAST_PACKETS records, each with a header of 16 bytes and at most 96 bytes of a frame."""
TIMEOUT_S = 900
EXPERIMENT = """
experiment: captures
title: Bulk TCP for the benchmarks
testbed: lab
duration: 300s
traffic: [{flow: bulk, generator: iperf3, from: sender, to: receiver, size: 2300MB}]
captures: [{at: sender}, {at: receiver}]
factors: {cc: [cubic]}
"""


def create_project(folder: Path) -> None:
    """Create a project in `folder`, whose lab uses the machine's own kernel."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "hosts").mkdir(parents=True)
    (folder / "experiments").mkdir()
    for name in ("templates", "analysis", ".rlib"):
        (folder / name).symlink_to(ROOT / name)
    bed = (ROOT / "hosts" / "lab.yaml").read_text().replace("kernel: auto", "kernel: native")
    (folder / "hosts" / "lab.yaml").write_text(bed)
    (folder / "experiments" / "captures.yaml").write_text(EXPERIMENT)
    # The captures are used at any speed of the transfer, so the limits of the verdict are wide.
    (folder / "config.yaml").write_text("retries: 0\nverdict: {cpu: 100%, late: 60s, rate: 5%}\n")


def samovar(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of samovar on the project in `folder`."""
    command = [sys.executable, "-m", "samovar", "--project", str(folder), *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
    )


def store_captures(folder: Path) -> bool:
    """Move the trial's captures to the benchmarks' folder; return whether all exist and are large enough."""
    for manifest in (folder / "results" / "captures" / "latest" / "trials").glob("*/manifest.json"):
        found = captures_of(manifest)
        if set(found) == set(ENDS):
            for host, path in found.items():
                unpack(path, CAPTURES / ENDS[host])
    made = [CAPTURES / name for name in ENDS.values()]
    if all(path.exists() and path.stat().st_size >= LEAST_BYTES for path in made):
        return True
    for path in made:
        path.unlink(missing_ok=True)
    return False


def captures_of(manifest: Path) -> dict[str, Path]:
    """Return a trial's captures by host."""
    read: dict[str, Any] = json.loads(manifest.read_bytes())
    return {
        str(file["host"]): manifest.parent / file["path"]
        for file in read["files"]
        if file["kind"] == "capture"
    }


def unpack(path: Path, to: Path) -> None:
    """Copy a capture and decompress it, so that benchmarks do not measure the cost of gzip."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as source, to.open("wb") as target:
        shutil.copyfileobj(source, target)


def make() -> str:
    """Make the captures; return a message with the result."""
    folder = CAPTURES / "lab"
    create_project(folder)
    try:
        done = samovar(folder, "run", "captures")
    except subprocess.TimeoutExpired:
        return f"no captures from the lab within {TIMEOUT_S} s, the benchmarks make their own"
    finally:
        samovar(folder, "lab", "down", "--testbed", "lab")
    complete = store_captures(folder)
    if complete:
        shutil.rmtree(folder)
        return f"made {CAPTURES}"
    output = (done.stdout + done.stderr).strip()[-500:]
    return f"no captures from the lab, the benchmarks make their own: {output}"


if __name__ == "__main__":
    if all((CAPTURES / name).exists() for name in ENDS.values()):
        print(f"{CAPTURES} already has both captures")
    else:
        print(make())
