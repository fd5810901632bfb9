"""The result of one check: requested value, observed value, and the verdict if they differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Verdict = Literal["valid", "suspect", "invalid"]
REASON = re.compile(r"(?P<name>.+?) at \S+: requested (?P<requested>.+), observed .+", re.DOTALL)
MOST_SIMILAR_REASONS = 3
"""Failed checks are similar if they have the same requested value, and the same name apart from numbers in
it. A verdict lists up to this many similar failed checks; if more failed, it lists only the first and the
number of the others."""


@dataclass(frozen=True)
class Check:
    """A requested value compared with the observed one.

    `tolerance`, such as "± 4%", states how far the observed value may differ from the requested one. Without
    a tolerance, the two values must be equal, unless `requested` states a bound such as "at most 3 ms".
    `severity` is the verdict of the trial if this check fails.
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
        """The check as one line for a person to read."""
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
        """Return a check from the value that as_json() returned; `requested` then includes the tolerance."""
        return cls(
            value["check"], *(value[key] for key in ("host", "requested", "observed", "ok", "severity"))
        )


def short_reasons(reasons: Iterable[str]) -> list[str]:
    """Return the reasons of a verdict without near-duplicates.

    If more than MOST_SIMILAR_REASONS come from similar failed checks, only the first of these is returned,
    with the number of the others.
    """
    similar: dict[object, list[str]] = {}
    for reason in reasons:
        found = REASON.fullmatch(reason)
        key = (re.sub(r"\d+", "", found["name"]), found["requested"]) if found else reason
        similar.setdefault(key, []).append(reason)
    shown: list[str] = []
    for first, *others in similar.values():
        many = len(others) >= MOST_SIMILAR_REASONS
        shown += [f"{first} ({len(others)} more checks like this failed)"] if many else [first, *others]
    return shown


def graded(deviation: float, allowed: float, invalid_above: float) -> tuple[bool, Verdict]:
    """Return whether a deviation is within the allowed one, and the verdict if it is not.

    The verdict is invalid if the deviation exceeds `invalid_above` times the allowed one, otherwise suspect.
    """
    return deviation <= allowed, "invalid" if deviation > invalid_above * allowed else "suspect"


def unreadable(trace: Path, host: str, error: Exception) -> Check:
    """Return a failed check for a trace that cannot be read, with the error as the observed value."""
    return Check(f"trace {trace.name}", host, "readable", f"{type(error).__name__}: {error}", False)
