"""One check of a verdict: the requested value, the observed value, and what a difference means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Verdict = Literal["valid", "suspect", "invalid"]


@dataclass(frozen=True)
class Check:
    """A requested value compared with the observed one.

    `tolerance`, such as "± 4%", is how far the two may differ. Without a tolerance they must be equal, or
    `requested` is a bound. `severity` is the verdict if the check fails.
    """

    name: str
    host: str
    requested: str
    observed: str
    ok: bool
    severity: Verdict = "invalid"
    tolerance: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict of this check alone."""
        return "valid" if self.ok else self.severity

    @property
    def reason(self) -> str:
        """The check as one line for people."""
        requested = f"{self.requested} {self.tolerance}".rstrip()
        return f"{self.name} at {self.host}: requested {requested}, observed {self.observed}"

    def as_json(self) -> dict[str, object]:
        """Return the check as manifest.json and calibration files store it."""
        return {
            "check": self.name,
            "host": self.host,
            "requested": f"{self.requested} {self.tolerance}".rstrip(),
            "observed": self.observed,
            "ok": self.ok,
            "severity": self.severity,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Check:
        """Read a check that `as_json` wrote, in which the tolerance is part of `requested`."""
        return cls(
            value["check"], *(value[key] for key in ("host", "requested", "observed", "ok", "severity"))
        )


def unreadable(trace: Path, host: str, error: Exception) -> Check:
    """Return the failed check of a trace that cannot be read."""
    return Check(f"trace {trace.name}", host, "readable", f"{type(error).__name__}: {error}", False)
