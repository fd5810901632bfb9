"""The path as a drawing: hosts in columns, data from left to right, the bottleneck's router in between.

Coordinates are abstract: columns count from 0, y counts rows from the middle downwards. Typst gives them
a size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from samovar.report.campaign_data import Json

# Where the line of a port lies, by host and interface, in rows.
Heights = Mapping[tuple[str, str], float]
# Distance between two lines that leave the same side of one host, in rows.
PORT_PITCH = 0.72
# Height of a host with one line on a side, in rows.
HOST_HEIGHT = 0.76
# Where a link may stand in the gap between two columns: the middle, so that labels have room at both ends.
TRUNKS = (0.44, 0.56)


@dataclass(frozen=True)
class Port:
    """An interface of a host on a link; the address comes without its prefix length."""

    host: str
    interface: str
    address: str
    link: str


@dataclass(frozen=True)
class Place:
    """Where a host stands."""

    column: int
    y: float


def draw(testbed: Json) -> Json:
    """Turn a testbed file into hosts, lines and labels with places."""
    hosts: Json = testbed.get("hosts") or {}
    ports = list(ports_of(hosts))
    columns = columns_of(hosts, ports, testbed.get("bottleneck") or {})
    heights = {host: HOST_HEIGHT + PORT_PITCH * max(0, busiest(host, ports, columns) - 1) for host in hosts}
    places = place_hosts(columns, heights)
    lines = [line for links in gaps(ports, places).values() for line in draw_gap(links, places)]
    return {
        "columns": max((place.column for place in places.values()), default=0) + 1,
        "height": 2 * max((abs(place.y) + heights[host] / 2 for host, place in places.items()), default=0),
        "hosts": [draw_host(name, hosts[name] or {}, places[name], heights[name]) for name in hosts],
        "links": lines,
        "bottleneck": testbed.get("bottleneck") or None,
    }


def ports_of(hosts: Json) -> Iterable[Port]:
    """List the interfaces that sit on a link."""
    for host, entry in hosts.items():
        for interface, values in ((entry or {}).get("interfaces") or {}).items():
            if values and values.get("link"):
                yield Port(host, interface, str(values.get("address", "")).split("/")[0], str(values["link"]))


def columns_of(hosts: Json, ports: Sequence[Port], bottleneck: Mapping[str, str]) -> dict[str, int]:
    """Give each host a column by its distance from the bottleneck's router: left what feeds the queue."""
    centre = bottleneck.get("router") or next(iter(hosts), "")
    columns, frontier = {centre: 0}, [centre]
    while frontier:
        host = frontier.pop(0)
        for port, other in neighbours(host, ports):
            if other not in columns:
                step = (
                    side(port.interface, bottleneck, hosts[other]) if host == centre else sign(columns[host])
                )
                columns[other] = columns[host] + step
                frontier.append(other)
    last = max(columns.values())
    found = {host: columns.get(host, last) for host in hosts}
    used = {column: index for index, column in enumerate(sorted(set(found.values())))}
    return {host: used[column] for host, column in found.items()}


def side(interface: str, bottleneck: Mapping[str, str], other: Json | None) -> int:
    """Say on which side of the router a neighbour stands: by the queue's direction, else by its role."""
    if interface in (bottleneck.get("from"), bottleneck.get("to")):
        return -1 if interface == bottleneck.get("from") else 1
    return -1 if (other or {}).get("role") == "sender" else 1


def sign(column: int) -> int:
    """Return the way outwards from the router."""
    return 1 if column > 0 else -1


def neighbours(host: str, ports: Sequence[Port]) -> Iterable[tuple[Port, str]]:
    """List the hosts on a host's links, each with the host's port to it."""
    for port in (port for port in ports if port.host == host):
        for other in ports:
            if other.link == port.link and other.host != host:
                yield port, other.host


def busiest(host: str, ports: Sequence[Port], columns: Mapping[str, int]) -> int:
    """Count the lines on the side of a host that has more of them."""
    sides = [columns[host] <= gap_of(port.link, ports, columns) for port in ports if port.host == host]
    return max(sides.count(True), sides.count(False))


def gap_of(link: str, ports: Sequence[Port], columns: Mapping[str, int]) -> int:
    """Return the gap that a link is drawn in: the one right of its leftmost host."""
    return min(columns[port.host] for port in ports if port.link == link)


def place_hosts(columns: Mapping[str, int], heights: Mapping[str, float]) -> dict[str, Place]:
    """Stack the hosts of a column about the middle, each in as many rows as it is high."""
    places: dict[str, Place] = {}
    for column in set(columns.values()):
        stack = [host for host in columns if columns[host] == column]
        rows = [max(1.0, heights[host] + 1 - HOST_HEIGHT) for host in stack]
        top = -sum(rows) / 2
        for index, host in enumerate(stack):
            places[host] = Place(column, top + sum(rows[:index]) + rows[index] / 2)
    return places


def gaps(ports: Sequence[Port], places: Mapping[str, Place]) -> dict[int, list[list[Port]]]:
    """Group the links, each a list of its ports, by the gap that they are drawn in."""
    columns = {host: place.column for host, place in places.items()}
    found: dict[int, list[list[Port]]] = {}
    for link in dict.fromkeys(port.link for port in ports):
        members = [port for port in ports if port.link == link]
        found.setdefault(gap_of(link, ports, columns), []).append(members)
    return found


def draw_gap(links: Sequence[list[Port]], places: Mapping[str, Place]) -> list[Json]:
    """Give the links of one gap their trunks and the lines that join hosts to them."""
    ordered = sorted(links, key=lambda members: mean_y(members, places))
    heights = port_heights(ordered, places)
    far = [round(abs(mean_y(members, places)), 3) for members in ordered]
    ranks = sorted(set(far), reverse=not hub_on_right(ordered, places))
    low, high = TRUNKS
    step = (high - low) / max(1, len(ranks) - 1)
    start = low if len(ranks) > 1 else (low + high) / 2
    trunks = [start + step * ranks.index(one) for one in far]
    pairs = zip(ordered, trunks, strict=True)
    return [draw_link(members, trunk, places, heights) for members, trunk in pairs]


def hub_on_right(links: Sequence[list[Port]], places: Mapping[str, Place]) -> bool:
    """Say whether the host that the links of a gap share stands right of it: the far links turn beside it."""
    hosts = [port.host for members in links for port in members]
    gap = min(places[host].column for host in hosts)
    return any(hosts.count(host) > 1 and places[host].column > gap for host in hosts)


def mean_y(members: Sequence[Port], places: Mapping[str, Place]) -> float:
    """Return the mean height of a link's hosts: the order in which links of a gap are stacked."""
    return sum(places[port.host].y for port in members) / len(members)


def port_heights(links: Sequence[list[Port]], places: Mapping[str, Place]) -> Heights:
    """Spread the lines that one host has in a gap about the host's own height."""
    ports: dict[str, list[Port]] = {}
    for port in (port for members in links for port in members):
        ports.setdefault(port.host, []).append(port)
    return {
        (host, port.interface): places[host].y + PORT_PITCH * (index - (len(mine) - 1) / 2)
        for host, mine in ports.items()
        for index, port in enumerate(mine)
    }


def draw_link(members: Sequence[Port], trunk: float, places: Mapping[str, Place], heights: Heights) -> Json:
    """Draw one link: its trunk in the gap and a line from each port to it."""
    gap = min(places[port.host].column for port in members)
    ends = [
        {
            "host": port.host,
            "interface": port.interface,
            "address": port.address,
            "column": places[port.host].column,
            "side": "right" if places[port.host].column <= gap else "left",
            "y": heights[port.host, port.interface],
        }
        for port in members
    ]
    return {"name": members[0].link, "gap": gap, "trunk": trunk, "segment": len(members) > 2, "ends": ends}


def draw_host(name: str, entry: Json, place: Place, height: float) -> Json:
    """Draw one host."""
    about = {"name": name, "role": str(entry.get("role", "")), "os": str(entry.get("os", ""))}
    return {**about, "column": place.column, "y": place.y, "height": height}
