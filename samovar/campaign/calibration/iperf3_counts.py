"""What iperf3's receivers have counted of a calibration's packets, where no program could note each one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from samovar.recipes import IP_UDP_BYTES

COUNTED = re.compile(r"^iperf3 (burst|paced)\n", re.MULTILINE)
WHOLE_S = 0.05
"""A shorter interval of iperf3's is a rest, which tells no rate."""


@dataclass(frozen=True)
class Counted:
    """What a receiver that tells no single packets has counted: rates by interval, losses, disorder."""

    rates_bps: tuple[float, ...] = ()
    paced_packets: int = 0
    lost: int = 0
    overtaken: int = 0


def read_counted(text: str, headers_bytes: int) -> Counted | None:
    """Read what iperf3's servers printed, each behind a line that names it; None where none did.

    `headers_bytes` is what a rate counts of a packet beside its IP packet.
    """
    parts = COUNTED.split(text)
    told = {kind: _json(part) for kind, part in zip(parts[1::2], parts[2::2], strict=True)}
    if not told:
        return None
    burst, paced = told.get("burst", {}), told.get("paced", {})
    streams = paced.get("end", {}).get("streams", ())
    udp: Mapping[str, Any] = next((stream["udp"] for stream in streams if "udp" in stream), {})
    return Counted(
        rates_bps=tuple(_interval_rates(burst, headers_bytes)),
        paced_packets=int(udp.get("packets", 0)),
        lost=int(udp.get("lost_packets", 0)),
        overtaken=int(udp.get("out_of_order", 0)),
    )


def _json(text: str) -> dict[str, Any]:
    """Read one JSON object; nothing where a server was ended before it could write it."""
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _interval_rates(burst: Mapping[str, Any], headers_bytes: int) -> Iterator[float]:
    """Give the rate of each interval but the first and the last, which were not filled with packets."""
    payload_bytes = burst.get("start", {}).get("test_start", {}).get("blksize", 0)
    sums = [interval["sum"] for interval in burst.get("intervals", ()) if interval["sum"]["packets"]]
    for one in sums[1:-1]:
        if payload_bytes and one["seconds"] > WHOLE_S:
            share = (payload_bytes + IP_UDP_BYTES + headers_bytes) / payload_bytes
            yield float(one["bits_per_second"]) * share
