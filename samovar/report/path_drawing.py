"""Lay out the drawing of a path: hosts in columns by distance from the bottleneck, senders on the left.

Coordinates have no unit: columns count from 0, and y counts rows downwards from the middle. The Typst
template decides how large a column and a row are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from samovar.report.campaign_data import Json

LINE_PITCH = 0.72
"""The distance in rows between two lines on the same side of a host."""
HOST_HEIGHT = 0.76
"""The height in rows of a host with one line on each side."""
JOINTS = (0.44, 0.56)
"""The joints of links are between these two positions in the gap between two columns (shares of its width),
so that labels have room on both sides."""


class Port(NamedTuple):
    """An interface of a host on a link; `address` has no prefix length."""

    host: str
    interface: str
    address: str
    link: str


class HostBox(NamedTuple):
    """Where a host is drawn: its column, its middle `y` and its height, both in rows."""

    column: int
    y: float
    height: float


Link = Sequence[Port]


def draw_path(testbed: Json) -> Json:
    """Return the hosts and links in a testbed file, with their positions in the drawing."""
    hosts: Json = {name: entry or {} for name, entry in (testbed.get("hosts") or {}).items()}
    ports = [
        Port(host, interface, str(values.get("address", "")).split("/")[0], str(values["link"]))
        for host, entry in hosts.items()
        for interface, values in (entry.get("interfaces") or {}).items()
        if values and values.get("link")
    ]
    columns = _columns(hosts, ports, testbed.get("bottleneck") or {})
    links: dict[str, list[Port]] = {}
    for port in ports:
        links.setdefault(port.link, []).append(port)
    gaps = {name: min(columns[port.host] for port in link) for name, link in links.items()}
    boxes = _boxes(columns, ports, gaps)
    by_gap: dict[int, list[Link]] = {}
    for name, link in links.items():
        by_gap.setdefault(gaps[name], []).append(link)
    return {
        "columns": max(columns.values(), default=0) + 1,
        "height": 2 * max((abs(box.y) + box.height / 2 for box in boxes.values()), default=0),
        "hosts": [
            {
                "name": name,
                **{key: str(entry.get(key, "")) for key in ("role", "os")},
                **boxes[name]._asdict(),
            }
            for name, entry in hosts.items()
        ],
        "links": [line for gap, members in by_gap.items() for line in _draw_gap(gap, members, boxes)],
        "bottleneck": testbed.get("bottleneck") or None,
    }


def _columns(hosts: Json, ports: Sequence[Port], bottleneck: Mapping[str, str]) -> dict[str, int]:
    """Return each host's column, from its distance to the bottleneck's router; senders are on the left."""
    centre = bottleneck.get("router") or next(iter(hosts), "")
    columns, frontier = {centre: 0}, [centre]
    while frontier:
        host = frontier.pop(0)
        pairs = [(port, other) for port in ports for other in ports if port.link == other.link]
        for port, other in ((port, other.host) for port, other in pairs if port.host == host):
            if other in columns:
                continue
            if host != centre:
                step = 1 if columns[host] > 0 else -1
            elif port.interface in (bottleneck.get("from"), bottleneck.get("to")):
                step = -1 if port.interface == bottleneck.get("from") else 1
            else:
                step = -1 if hosts[other].get("role") == "sender" else 1
            columns[other] = columns[host] + step
            frontier.append(other)
    found = {host: columns.get(host, max(columns.values())) for host in hosts}
    used = sorted(set(found.values()))
    return {host: used.index(column) for host, column in found.items()}


def _boxes(columns: Mapping[str, int], ports: Sequence[Port], gaps: Mapping[str, int]) -> dict[str, HostBox]:
    """Return the position of each host: the hosts of a column are stacked, centred on the middle.

    A host is high enough for the lines on its left or right side, whichever side has more lines.
    """
    boxes: dict[str, HostBox] = {}
    for column in set(columns.values()):
        heights: dict[str, float] = {}
        for host in (host for host in columns if columns[host] == column):
            on_right = [column <= gaps[port.link] for port in ports if port.host == host]
            lines = max(1, on_right.count(True), on_right.count(False))
            heights[host] = HOST_HEIGHT + LINE_PITCH * (lines - 1)
        top = -sum(max(1.0, height + 1 - HOST_HEIGHT) for height in heights.values()) / 2
        for host, height in heights.items():
            row = max(1.0, height + 1 - HOST_HEIGHT)
            boxes[host] = HostBox(column, top + row / 2, height)
            top += row
    return boxes


def _draw_gap(gap: int, links: Sequence[Link], boxes: Mapping[str, HostBox]) -> list[Json]:
    """Return the links between two columns. Each has a joint, from which lines lead to all ports of the link.

    Lines must not cross. So if several links share a host, a link that leads further from the middle has its
    joint nearer to the shared host.
    """
    ordered = sorted(links, key=lambda link: fmean(boxes[port.host].y for port in link))
    distances = [round(abs(fmean(boxes[port.host].y for port in link)), 3) for link in ordered]
    ports: dict[str, list[Port]] = {}
    for port in (port for link in ordered for port in link):
        ports.setdefault(port.host, []).append(port)
    hub_on_right = any(len(own) > 1 and boxes[host].column > gap for host, own in ports.items())
    ranks = sorted(set(distances), reverse=not hub_on_right)
    low, high = JOINTS
    step = (high - low) / max(1, len(ranks) - 1)
    start = low if len(ranks) > 1 else (low + high) / 2
    ends: dict[str, list[Json]] = {}
    for host, own in ports.items():
        for index, port in enumerate(own):  # the lines of a host are spread evenly around its middle
            column, y = boxes[host].column, boxes[host].y + LINE_PITCH * (index - (len(own) - 1) / 2)
            end = {**port._asdict(), "column": column, "side": "right" if column <= gap else "left", "y": y}
            ends.setdefault(port.link, []).append(end)
    return [
        {
            "name": link[0].link,
            "gap": gap,
            "joint": start + step * ranks.index(distance),
            "segment": len(link) > 2,
            "ends": ends[link[0].link],
        }
        for link, distance in zip(ordered, distances, strict=True)
    ]
