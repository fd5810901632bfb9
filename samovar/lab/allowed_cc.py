"""The congestion controls a kernel allows in its namespaces: one list per machine, widened and given back."""

from __future__ import annotations

import subprocess
from collections.abc import Set
from pathlib import Path

from samovar.errors import LabError

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


def read() -> str:
    """Read what is allowed now."""
    return ALLOWED.read_text(encoding="ascii").strip()


def widen(wanted: Set[str]) -> None:
    """Allow every congestion control of the machine's kernel, and load those wanted that are modules."""
    unloaded = sorted(wanted - set(AVAILABLE.read_text(encoding="ascii").split()))
    if unloaded:
        command = ["modprobe", "--all", *(f"tcp_{name}" for name in unloaded)]
        subprocess.run(command, capture_output=True, check=False)
    _write(AVAILABLE.read_text(encoding="ascii").strip())


def restore(before: str) -> None:
    """Allow again what was allowed before."""
    _write(before)


def _write(text: str) -> None:
    try:
        ALLOWED.write_text(text + "\n", encoding="ascii")
    except OSError as error:
        accepted = "a machine where root may write it, or kernel uml"
        raise LabError(f"{ALLOWED}: {error.strerror}; accepted: {accepted}") from error
