"""SSH keys of a lab: made once per state folder, used by every later start."""

from __future__ import annotations

import subprocess
from pathlib import Path

from samovar.lab.topology import Topology

CLIENT_KEY = "id_ed25519"
KNOWN_HOSTS = "known_hosts"


def make_keys(state_folder: Path, boot_folder: Path, topology: Topology, port: int) -> None:
    """Make what keys are missing, let the client key in on every host, and pin every host's key."""
    client = _make_key(state_folder / CLIENT_KEY, f"samovar lab {topology.name}")
    (boot_folder / "authorized_keys").write_text(client, encoding="utf-8")
    lines = []
    for node in topology.nodes:
        public = _make_key(boot_folder / "hosts" / node.name / "host_key", node.name)
        kind, key = public.split()[:2]
        place = str(node.control.ip) if port == 22 else f"[{node.control.ip}]:{port}"
        lines.append(f"{place} {kind} {key}\n")
    (state_folder / KNOWN_HOSTS).write_text("".join(lines), encoding="utf-8")


def _make_key(path: Path, comment: str) -> str:
    public = path.with_name(path.name + ".pub")
    if not (path.exists() and public.exists()):
        path.unlink(missing_ok=True)
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return public.read_text(encoding="utf-8")
