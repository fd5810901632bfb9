"""The congestion controls a kernel allows in its namespaces: one list per machine, widened and given back."""

from __future__ import annotations

from pathlib import Path

from samovar.errors import LabError

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


def read() -> str:
    """Read what is allowed now."""
    return ALLOWED.read_text(encoding="ascii").strip()


def widen() -> None:
    """Allow every congestion control of the machine's kernel."""
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
