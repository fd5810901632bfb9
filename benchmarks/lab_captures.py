"""Two captures of one bulk transfer through the lab, at its sender and at its receiver, for the benchmarks.

    python benchmarks/lab_captures.py

They are kept in .stamps/bench, which git ignores, and made once: remove the folder for new ones. The lab uses
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
KEPT = ROOT / ".stamps" / "bench"
ENDS = {"src": "sender.pcap", "dst": "receiver.pcap"}
LEAST_PACKETS = 1_400_000
LEAST_BYTES = LEAST_PACKETS * (16 + 96)
"""No record is longer than its header and what is kept of a frame: so large a file holds that many."""
PATIENCE_S = 900
EXPERIMENT = """
experiment: captures
title: Bulk TCP for the benchmarks
testbed: lab
duration: 300s
traffic: [{flow: bulk, generator: iperf3, from: sender, to: receiver, size: 2300MB}]
captures: [{at: sender}, {at: receiver}]
factors: {cc: [cubic]}
"""


def lay_out(folder: Path) -> None:
    """Create a second checkout in `folder`; its lab uses the machine's own kernel, which is the fastest."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "hosts").mkdir(parents=True)
    (folder / "experiments").mkdir()
    for name in ("templates", "analysis", ".rlib"):
        (folder / name).symlink_to(ROOT / name)
    bed = (ROOT / "hosts" / "lab.yaml").read_text().replace("kernel: auto", "kernel: native")
    (folder / "hosts" / "lab.yaml").write_text(bed)
    (folder / "experiments" / "captures.yaml").write_text(EXPERIMENT)
    # How fast the transfer was does not matter here, only that it was captured.
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
        timeout=PATIENCE_S,
        check=False,
    )


def keep(folder: Path) -> bool:
    """Move the trial's captures to the benchmarks' folder; return whether all exist and are large enough."""
    for manifest in (folder / "results" / "captures" / "latest" / "trials").glob("*/manifest.json"):
        found = captures_of(manifest)
        if set(found) == set(ENDS):
            for host, path in found.items():
                unpack(path, KEPT / ENDS[host])
    made = [KEPT / name for name in ENDS.values()]
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
    folder = KEPT / "lab"
    lay_out(folder)
    try:
        done = samovar(folder, "run", "captures")
    except subprocess.TimeoutExpired:
        return f"no captures from the lab within {PATIENCE_S} s, the benchmarks make their own"
    finally:
        samovar(folder, "lab", "down", "--testbed", "lab")
    made = keep(folder)
    if made:
        shutil.rmtree(folder)
        return f"made {KEPT}"
    said = (done.stdout + done.stderr).strip()[-500:]
    return f"no captures from the lab, the benchmarks make their own: {said}"


if __name__ == "__main__":
    if all((KEPT / name).exists() for name in ENDS.values()):
        print(f"{KEPT} is there")
    else:
        print(make())
