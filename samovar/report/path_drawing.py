"""Layout of the path's drawing: hosts in columns, data from left to right, the bottleneck in the middle.

Coordinates are abstract: columns count from 0, y counts rows from the middle downwards. The template gives
them a size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from samovar.report.campaign_data import Json

LINE_PITCH = 0.72
"""Distance in rows of two lines on the same side of a host."""
HOST_HEIGHT = 0.76
"""Height in rows of a host with one line on a side."""
JOINTS = (0.44, 0.56)
"""Range in the gap between two columns where links have their joints; labels have room at both ends."""


@dataclass(frozen=True)
class Port:
    """An interface of a host on a link; the address is without its prefix length."""

    host: str
    interface: str
    address: str
    link: str


@dataclass(frozen=True)
class HostPosition:
    """Where a host is drawn."""

    column: int
    y: float


Positions = Mapping[str, HostPosition]
Link = Sequence[Port]


def draw_path(testbed: Json) -> Json:
    """Return the hosts, lines and labels of a testbed file with their positions."""
    hosts: Json = testbed.get("hosts") or {}
    ports = [
        Port(host, interface, str(values.get("address", "")).split("/")[0], str(values["link"]))
        for host, entry in hosts.items()
        for interface, values in ((entry or {}).get("interfaces") or {}).items()
        if values and values.get("link")
    ]
    columns = _columns(hosts, ports, testbed.get("bottleneck") or {})
    links = {
        link: [port for port in ports if port.link == link] for link in dict.fromkeys(p.link for p in ports)
    }
    gaps = {link: min(columns[port.host] for port in members) for link, members in links.items()}
    heights = {host: _height(host, ports, columns, gaps) for host in hosts}
    positions = _stack(columns, heights)
    by_gap = {
        gap: [links[link] for link in links if gaps[link] == gap] for gap in dict.fromkeys(gaps.values())
    }
    return {
        "columns": max(columns.values(), default=0) + 1,
        "height": 2 * max((abs(one.y) + heights[host] / 2 for host, one in positions.items()), default=0),
        "hosts": [_draw_host(name, hosts[name] or {}, positions[name], heights[name]) for name in hosts],
        "links": [line for gap, members in by_gap.items() for line in _draw_gap(gap, members, positions)],
        "bottleneck": testbed.get("bottleneck") or None,
    }


def _columns(hosts: Json, ports: Sequence[Port], bottleneck: Mapping[str, str]) -> dict[str, int]:
    """Return a column per host by its distance from the bottleneck's router, senders on the left."""
    centre = bottleneck.get("router") or next(iter(hosts), "")
    columns, frontier = {centre: 0}, [centre]
    while frontier:
        host = frontier.pop(0)
        for port, other in _neighbours(host, ports):
            if other in columns:
                continue
            if host != centre:
                step = 1 if columns[host] > 0 else -1
            elif port.interface in (bottleneck.get("from"), bottleneck.get("to")):
                step = -1 if port.interface == bottleneck.get("from") else 1
            else:
                step = -1 if (hosts[other] or {}).get("role") == "sender" else 1
            columns[other] = columns[host] + step
            frontier.append(other)
    found = {host: columns.get(host, max(columns.values())) for host in hosts}
    used = {column: index for index, column in enumerate(sorted(set(found.values())))}
    return {host: used[column] for host, column in found.items()}


def _neighbours(host: str, ports: Sequence[Port]) -> Iterator[tuple[Port, str]]:
    """Yield the hosts on a host's links, each with the host's port to it."""
    for port in (port for port in ports if port.host == host):
        for other in ports:
            if other.link == port.link and other.host != host:
                yield port, other.host


def _height(host: str, ports: Sequence[Port], columns: Mapping[str, int], gaps: Mapping[str, int]) -> float:
    """Return the height in rows of a host, by the side with more lines."""
    on_right = [columns[host] <= gaps[port.link] for port in ports if port.host == host]
    return HOST_HEIGHT + LINE_PITCH * max(0, max(on_right.count(True), on_right.count(False)) - 1)


def _stack(columns: Mapping[str, int], heights: Mapping[str, float]) -> Positions:
    """Stack the hosts of each column around the middle."""
    positions: dict[str, HostPosition] = {}
    for column in set(columns.values()):
        stack = [host for host in columns if columns[host] == column]
        rows = [max(1.0, heights[host] + 1 - HOST_HEIGHT) for host in stack]
        top = -sum(rows) / 2
        for index, host in enumerate(stack):
            positions[host] = HostPosition(column, top + sum(rows[:index]) + rows[index] / 2)
    return positions


def _draw_gap(gap: int, links: Sequence[Link], positions: Positions) -> list[Json]:
    """Draw the links of one gap: each has a joint, and a line from each port to it.

    Links whose hosts are further from the middle have their joints nearer to the host that they share, so
    that lines do not cross.
    """

    def mean_y(link: Link) -> float:
        return sum(positions[port.host].y for port in link) / len(link)

    ordered = sorted(links, key=mean_y)
    distances = [round(abs(mean_y(link)), 3) for link in ordered]
    hosts = [port.host for link in ordered for port in link]
    hub_on_right = any(hosts.count(host) > 1 and positions[host].column > gap for host in hosts)
    ranks = sorted(set(distances), reverse=not hub_on_right)
    low, high = JOINTS
    step = (high - low) / max(1, len(ranks) - 1)
    start = low if len(ranks) > 1 else (low + high) / 2
    heights = _line_heights(ordered, positions)
    pairs = zip(ordered, distances, strict=True)
    return [
        _draw_link(gap, link, start + step * ranks.index(distance), positions, heights)
        for link, distance in pairs
    ]


def _line_heights(links: Sequence[Link], positions: Positions) -> Mapping[tuple[str, str], float]:
    """Return the y of each line by host and interface, spread around the middle of the host."""
    ports: dict[str, list[Port]] = {}
    for port in (port for link in links for port in link):
        ports.setdefault(port.host, []).append(port)
    return {
        (host, port.interface): positions[host].y + LINE_PITCH * (index - (len(own) - 1) / 2)
        for host, own in ports.items()
        for index, port in enumerate(own)
    }


def _draw_link(
    gap: int, link: Link, joint: float, positions: Positions, heights: Mapping[tuple[str, str], float]
) -> Json:
    ends = [
        {
            "host": port.host,
            "interface": port.interface,
            "address": port.address,
            "column": positions[port.host].column,
            "side": "right" if positions[port.host].column <= gap else "left",
            "y": heights[port.host, port.interface],
        }
        for port in link
    ]
    return {"name": link[0].link, "gap": gap, "joint": joint, "segment": len(link) > 2, "ends": ends}


def _draw_host(name: str, entry: Json, position: HostPosition, height: float) -> Json:
    labels = {"name": name, "role": str(entry.get("role", "")), "os": str(entry.get("os", ""))}
    return {**labels, "column": position.column, "y": position.y, "height": height}
