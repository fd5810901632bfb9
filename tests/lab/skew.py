"""Rewrite a host's recordings as if its clock had an offset and a drift.

The hosts of a lab share one kernel and therefore one clock, so a different clock can only be simulated in recordings. Every time
stamp of the host's clock is rewritten, in captures, in beacons and in the manifest; nothing else is changed.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECOND_NS = 10**9
NANOSECONDS = 0xA1B23C4D
"""The magic number of captures with times in nanoseconds from little-endian hosts (pcap-savefile(5))."""
FILE_HEAD, RECORD_HEAD = 24, struct.Struct("<IIII")


@dataclass(frozen=True)
class Skew:
    """A clock that is `offset_s` ahead of the others at `since_ns`, and gains `drift_ppm` from then on."""

    since_ns: int
    offset_s: float
    drift_ppm: float

    def __call__(self, t_ns: int) -> int:
        """Return the time of this clock when the others show `t_ns`."""
        return t_ns + round(self.offset_s * SECOND_NS + (t_ns - self.since_ns) * self.drift_ppm * 1e-6)


def skew_host(trial: Path, host: str, skew: Callable[[int], int]) -> None:
    """Rewrite the times of a host's clock in a trial's folder: in captures, beacons and the end of the traffic."""
    rewrite(
        trial,
        lambda entry: entry["host"] == host and entry["kind"] == "capture",
        lambda content: skewed_capture(content, skew),
    )
    rewrite(
        trial,
        lambda entry: (entry["host"], entry["logger"]) == (host, "beacons"),
        lambda content: skewed_table(content, skew),
    )
    manifest = json.loads((trial / "manifest.json").read_bytes())
    for end in manifest["ends"]:
        if end["host"] == host:
            end["over_s"] = skew(round(end["over_s"] * SECOND_NS)) / SECOND_NS
    (trial / "manifest.json").write_text(json.dumps(manifest))


def rewrite(
    trial: Path, chosen: Callable[[Mapping[str, Any]], bool], change: Callable[[bytes], bytes]
) -> None:
    """Change files of a trial, and their sizes and checksums in its manifest."""
    manifest = json.loads((trial / "manifest.json").read_bytes())
    for entry in filter(chosen, manifest["files"]):
        content = gzip.decompress((trial / entry["path"]).read_bytes())
        packed = gzip.compress(change(content), compresslevel=1)
        (trial / entry["path"]).write_bytes(packed)
        entry.update(bytes=len(packed), sha256=hashlib.sha256(packed).hexdigest())
    (trial / "manifest.json").write_text(json.dumps(manifest))


def skewed_capture(pcap: bytes, skew: Callable[[int], int]) -> bytes:
    """Return a capture with rewritten times of its packets."""
    assert int.from_bytes(pcap[:4], "little") == NANOSECONDS
    out, at = bytearray(pcap), FILE_HEAD
    while at + RECORD_HEAD.size <= len(pcap):
        seconds, rest_ns, kept, length = RECORD_HEAD.unpack_from(pcap, at)
        RECORD_HEAD.pack_into(out, at, *divmod(skew(seconds * SECOND_NS + rest_ns), SECOND_NS), kept, length)
        at += RECORD_HEAD.size + kept
    return bytes(out)


def skewed_table(content: bytes, skew: Callable[[int], int]) -> bytes:
    """Return a trace with a rewritten column `t_ns`; `sent_ns` of beacons is the other host's clock and stays."""
    rows = list(csv.DictReader(io.StringIO(content.decode("ascii"))))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "t_ns": str(skew(int(row["t_ns"])))} for row in rows)
    return out.getvalue().encode("ascii")
