"""Events as lines of JSON, for programs that follow a campaign: docs/reference/events.md describes each."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from samovar.errors import CampaignError
from samovar.events import SCHEMA, Emit, Event, silent


@contextmanager
def opened_stream(where: str, now: Callable[[], float] = time.time) -> Iterator[Emit]:
    """Give what writes events to a file, added to what it has, or to standard output for `-`.

    Raises CampaignError when it cannot be opened. A reader that goes away ends the stream, not the campaign.
    """
    if not where:
        yield silent
    elif where == "-":
        with open(os.dup(sys.stdout.fileno()), "wb", buffering=0) as out:
            yield Stream(out, now)
    else:
        with _opened(Path(where)) as out:
            yield Stream(out, now)


def _opened(file: Path) -> FileIO:
    try:
        return file.open("ab", buffering=0)
    except OSError as error:
        raise CampaignError(f"{file}: events cannot be written: {error.strerror}") from error


class Stream:
    """Writes an event a line, each at once; any thread may."""

    def __init__(self, out: FileIO, now: Callable[[], float]) -> None:
        self._out, self._now, self._lock, self._gone = out, now, threading.Lock(), False

    def __call__(self, event: Event) -> None:
        """Write one event."""
        record = {"schema": SCHEMA, "t_s": round(self._now(), 6), "event": event.name, **event.values}
        with self._lock:
            if self._gone:
                return
            try:
                line = json.dumps(record, ensure_ascii=False, default=str).encode() + b"\n"
                while line:  # a raw file may take a part
                    line = line[self._out.write(line) or 0 :]
            except OSError:
                self._gone = True  # its reader has gone, or its disk is full: the campaign has to go on
