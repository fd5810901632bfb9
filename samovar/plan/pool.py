"""The values that trials share, each held once: its number, its JSON text, its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from samovar.plan.model import (
    CapturePlan,
    FlowPlan,
    HostPlan,
    LoggerPlan,
    PathPlan,
    Resolved,
    StopPlan,
    Value,
)

HOST = "hosts."
DIGEST_BYTES = 16


class RunPlan(Value):
    """What holds for a trial as a whole."""

    mtu_bytes: int | None
    duration_s: float
    deadline_s: float
    stop: StopPlan | None


KINDS: Mapping[str, TypeAdapter[Any]] = {
    "run": TypeAdapter(RunPlan),
    "path": TypeAdapter(PathPlan | None),
    "hosts": TypeAdapter(HostPlan),
    "flows": TypeAdapter(tuple[FlowPlan, ...]),
    "captures": TypeAdapter(tuple[CapturePlan, ...]),
    "loggers": TypeAdapter(tuple[LoggerPlan, ...]),
}
"""The components of a trial; each host is one, `hosts.<name>`."""


def kind_of(component: str) -> str:
    """Return the kind of a component: hosts for hosts.src."""
    return component.partition(".")[0]


def canonical(value: object) -> str:
    """Return the one JSON text of a component's value."""
    return json.dumps(
        _plain(value), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def digest_of(text: str) -> bytes:
    """Return the digest of a value's text."""
    return hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]


class Pool:
    """Values by number; the same value always has the same number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.digests: list[bytes] = []
        self._values: list[Any] = []
        self._numbers: dict[tuple[str, str], int] = {}

    def add(self, component: str, value: object) -> int:
        """Return the number of a component's value, a new one when it was not there."""
        text = canonical(value)
        key = (kind_of(component), text)
        number = self._numbers.setdefault(key, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
            self.digests.append(digest_of(text))
            self._values.append(value)
        return number

    def value(self, number: int) -> Any:
        """Return the value of a number."""
        return self._values[number]


def resolved_of(values: Mapping[str, Any]) -> Resolved:
    """Put a trial together from its components."""
    run: RunPlan = values["run"]
    hosts = {name.removeprefix(HOST): host for name, host in values.items() if name.startswith(HOST)}
    return Resolved.model_construct(
        mtu_bytes=run.mtu_bytes,
        duration_s=run.duration_s,
        deadline_s=run.deadline_s,
        path=values["path"],
        hosts=hosts,
        flows=values["flows"],
        captures=values["captures"],
        loggers=values["loggers"],
        stop=run.stop,
    )


def components_of(resolved: Resolved) -> dict[str, object]:
    """Take a trial apart into its components."""
    run = RunPlan(
        mtu_bytes=resolved.mtu_bytes,
        duration_s=resolved.duration_s,
        deadline_s=resolved.deadline_s,
        stop=resolved.stop,
    )
    return {
        "run": run,
        "path": resolved.path,
        **{f"{HOST}{name}": host for name, host in resolved.hosts.items()},
        "flows": resolved.flows,
        "captures": resolved.captures,
        "loggers": resolved.loggers,
    }


def _plain(value: object) -> Any:
    if isinstance(value, Value):
        return value.as_json()
    if isinstance(value, Sequence):
        return [_plain(one) for one in value]
    return value
