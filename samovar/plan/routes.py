"""Find the shortest route between two hosts of a testbed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from samovar.experiment import Testbed


@dataclass(frozen=True)
class Hop:
    """One hop: out of a host's interface, over a link, into an interface of the next host."""

    host: str
    out_interface: str
    link: str
    next_host: str
    in_interface: str


def shortest_path(testbed: Testbed, start: str, end: str) -> tuple[Hop, ...] | None:
    """Return the hops from one host to another, () from a host to itself, or None if they are not connected.

    Of several shortest routes, return the one whose hosts and interfaces come first in the file.
    """
    paths: dict[str, tuple[Hop, ...]] = {start: ()}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        if here == end:
            return paths[here]
        if here != start and testbed.hosts[here].role != "router":
            continue
        for hop in _hops_from(testbed, here):
            if hop.next_host not in paths:
                paths[hop.next_host] = (*paths[here], hop)
                queue.append(hop.next_host)
    return None


def _hops_from(testbed: Testbed, host: str) -> Iterator[Hop]:
    for out_name, out in testbed.hosts[host].interfaces.items():
        for other, machine in testbed.hosts.items():
            for in_name, interface in machine.interfaces.items():
                if other != host and interface.link == out.link:
                    yield Hop(host, out_name, out.link, other, in_name)
