"""Faults of the controller's files: full disks, read-only folders, changed files."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from samovar.campaign.collection.verify import verify
from tests.faults.fault import Fault
from tests.faults.hosts import state_of, wait_for
from tests.faults.scene import END_S, Scene

ROOM_MIB = 256
BROKEN = ("failed", "invalid")


def small_disk(scene: Scene) -> None:
    """Mount a small disk on the results folder, visible to the controller only."""
    scene.private_mounts()
    results = scene.bench.checkout.folder / "results"
    results.mkdir(exist_ok=True)
    scene.mount(f"mount -t tmpfs -o size={ROOM_MIB}m results '{results}'")


def disk_full(scene: Scene) -> None:
    """Fill the small disk to its last byte."""
    scene.mount(f"head -c {ROOM_MIB}M /dev/zero >'{_results(scene)}/full' 2>/dev/null || true")
    scene.let_go()


def room_again(scene: Scene) -> None:
    """Free space on the small disk."""
    scene.mount(f"rm -f '{_results(scene)}/full'")


def own_mounts(scene: Scene) -> None:
    """Give the controller a mount namespace of its own."""
    scene.private_mounts()
    (scene.bench.checkout.folder / "results").mkdir(exist_ok=True)


def read_only(scene: Scene) -> None:
    """Remount the results folder read-only: open files can still be written, but no file created."""
    results = _results(scene)
    scene.mount(f"mount --bind '{results}' '{results}'; mount -o remount,bind,ro '{results}'")
    scene.let_go()


def writable(scene: Scene) -> None:
    """Make the results folder writable again."""
    scene.mount(f"umount -l '{_results(scene)}'")


def _results(scene: Scene) -> Path:
    return scene.bench.checkout.folder / "results"


def changed_during_collection(scene: Scene) -> None:
    """Change a file on its host after its checksum was made and before it is fetched."""
    commands = scene.campaign / "in-progress" / scene.victim / "commands"
    scene.let_go()
    end_s = time.monotonic() + END_S
    while not list(commands.glob("*-src-pack.json")):
        assert time.monotonic() < end_s, "no file was packed"
    os.kill(scene.controller.pid, signal.SIGSTOP)
    wait_for("the controller to stop", lambda: state_of(scene.controller.pid) == "T")
    remote = f"/tmp/samovar/{scene.campaign.name}/{scene.victim}"
    scene.lab.on(
        "src", f"for file in {remote}/*.gz; do printf '\\377' | dd of=$file bs=1 seek=40 conv=notrunc; done"
    )
    scene.let_go()


def changed_afterwards(scene: Scene) -> None:
    """Change one byte in a trace of the campaign's first trial."""
    file = next((scene.campaign / "trials" / scene.begun(1) / "traces").glob("*.gz"))
    whole = file.read_bytes()
    scene.notes["file"], scene.notes["whole"] = file, whole
    middle = len(whole) // 2
    file.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    scene.let_go()


def found_and_restored(scene: Scene) -> None:
    """Check that `fab verify` finds the changed file, then restore the file."""
    file, whole = scene.notes["file"], scene.notes["whole"]
    assert isinstance(file, Path) and isinstance(whole, bytes)
    if scene.process and scene.process.poll() is not None:
        found = [finding.path for finding in verify(scene.campaign).findings]
        scene.notes["found"] = found
    file.write_bytes(whole)
    assert scene.notes.get("found") == [str(file.relative_to(scene.campaign))], scene.notes.get("found")


FILE_FAULTS = (
    Fault("disk-full-in-set", "set", disk_full, ("cut", *BROKEN), (1,), mend=room_again, prepare=small_disk),
    Fault(
        "disk-full-in-collect",
        "collect",
        disk_full,
        ("cut", *BROKEN),
        (1,),
        mend=room_again,
        prepare=small_disk,
    ),
    Fault(
        "results-read-only",
        "collect",
        read_only,
        ("cut", *BROKEN),
        (1,),
        mend=writable,
        prepare=own_mounts,
    ),
    Fault("file-changed-on-its-way", "collect", changed_during_collection, ("valid", *BROKEN), (0, 1)),
    Fault("file-changed-afterwards", "set", changed_afterwards, ("valid",), (0,), mend=found_and_restored),
)
