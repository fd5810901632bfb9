"""Read the samples of the logger `queue` at the bottleneck."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import NamedTuple

LEAF = "10:"
"""The handle of the queue discipline that the bottleneck recipe sets."""
DUMMYNET = "dummynet"
"""FreeBSD's name for the pipe of the queue, whose handle is the pipe's number."""


class QueueSample(NamedTuple):
    """The state of the bottleneck's queue at one time."""

    t_ns: int
    backlog_packets: int
    backlog_bytes: int
    sent_bytes: int


def read_queue_samples(lines: Iterable[str], interface: str) -> Iterator[QueueSample]:
    """Yield the samples of the bottleneck's own queue at an interface.

    Raises ValueError, KeyError, TypeError or csv.Error if the log is malformed.
    """
    for row in csv.DictReader(lines):
        if row["interface"] == interface and (row["handle"] == LEAF or row["qdisc"] == DUMMYNET):
            values = (row[key] for key in ("t_ns", "backlog_packets", "backlog_bytes", "sent_bytes"))
            yield QueueSample(*map(int, values))
