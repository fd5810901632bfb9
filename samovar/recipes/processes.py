"""The programs that a trial starts, and what each leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from samovar.plan import CapturePlan, LoggerPlan
from samovar.recipes.flow_ends import End, FlowEnds
from samovar.recipes.setting_recipes import CAPTURE


@dataclass(frozen=True)
class Program:
    """One program that a trial starts on a host, and the file it leaves.

    What grows fast is compressed while it is written (.gz), the rest when it is collected.
    """

    name: str
    kind: Literal["capture", "logger", "generator"]
    recipe: str
    output: str
    interface: str | None = None
    flow: str | None = None


def of_capture(capture: CapturePlan) -> Program:
    """Return the program of a capture."""
    name = f"{capture.host}-{capture.interface}"
    return Program(name, "capture", CAPTURE, f"{name}.pcap.gz", interface=capture.interface)


def of_logger(entry: LoggerPlan) -> Program:
    """Return the program of a logger."""
    name = f"{entry.host}-{entry.logger}"
    return Program(name, "logger", entry.logger, f"{name}.csv", interface=entry.interface)


def of_generator(ends: FlowEnds, end: End) -> Program:
    """Return the program of one end of a flow."""
    name = ends.name(end)
    return Program(name, "generator", ends.flow.generator, f"{name}.out", flow=ends.flow.label)
