"""Convert TEACUP's router queues to a path: rate, delay, loss and queue of each direction, and classes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Network
from itertools import product
from typing import Any

from samovar.experiment import RecipeCatalogue
from samovar.teacup.configuration import Configuration, TeacupEntry
from samovar.teacup.convert_values import milliseconds, number, rate, share, size
from samovar.teacup.parameters import Names, NoCounterpartError, Target
from samovar.teacup.static_python import UnreadableError
from samovar.units import format_rate, parse_rate

UNLIMITED = "1000mbit"
"""The rate of an entry without a rate."""
MOST_PACKETS = {"linux": 1000, "freebsd": 50}
"""The queue size of an entry without one: TEACUP's default for tc, and dummynet's own default."""
PACKET_BYTES, FRAME_BYTES = 600, 1500
"""Packet sizes for converting a BDP to packets: TEACUP's on Linux, and samovar's, which is the MTU."""
LEAST_PACKETS, LEAST_BYTES = 1, 2048
"""The smallest queue that TEACUP computes from a BDP."""
DIRECTIONS = ("down", "up")
SIZE = ("queue_disc", "queue_size", "queue_size_mult", "avg_packet_size", "rtt")
ENDS = ("source", "dest")
OTHERS = ("delay", "loss", "rate", "queue_disc_params", "bidir", "attach_to_queue")


@dataclass
class BottleneckQueues:
    """The bottleneck: its router and the networks on its two sides; data comes from the first network.

    `queues` has the entry of each direction. `classes` maps each class to the entries of its directions, in
    the order of TEACUP, where the last class that matches a packet applies. `ends` maps each class to its
    source and destination.
    """

    router: str
    sides: tuple[IPv4Network, IPv4Network]
    queues: dict[str, TeacupEntry] = field(default_factory=dict)
    classes: dict[str, dict[str, TeacupEntry]] = field(default_factory=dict)
    ends: dict[str, tuple[str, str]] = field(default_factory=dict)


def find_path(config: Configuration) -> BottleneckQueues | None:
    """Return the bottleneck of a configuration: the first router with queues between two of its networks."""
    found: BottleneckQueues | None = None
    for router, entries in config.queues():
        if found is not None:
            config.note("TPCONF_router_queues", f"{router[:40]}: only {found.router} becomes the bottleneck")
            continue
        path: BottleneckQueues | None = None
        for entry in entries:
            try:
                path = _with_entry(config, path, router, entry)
            except (NoCounterpartError, UnreadableError) as error:
                config.note("TPCONF_router_queues", f"queue {entry.id[:20]}: {error}; it is left out")
        if path is not None and path.queues:
            found = path
    return found


def _with_entry(
    config: Configuration, path: BottleneckQueues | None, router: str, entry: TeacupEntry
) -> BottleneckQueues:
    """Add an entry to a path, or to a new path if `path` is None."""
    own = [config.network(f"{address}/24") for address in config.addresses.get(router, [])]
    ends = [config.network(entry.read(name, config.defaults)) for name in ENDS]
    near, far = ([one for one in own if one.overlaps(end)] for end in ends)
    sides = next(((one, other) for one, other in product(near, far) if one != other), None)
    if sides is None:
        where = "each end of the queue in TPCONF_host_internal_ip"
        raise NoCounterpartError(f"{router[:40]} has no interface to {where}")
    path = path or BottleneckQueues(router, sides)
    if set(path.sides) != set(sides):
        raise NoCounterpartError("samovar has one bottleneck, between the networks of the first queue")
    for unknown in sorted(entry.arguments.keys() - {*SIZE, *ENDS, *OTHERS}):
        config.note("TPCONF_router_queues", f"{unknown[:40]} has no counterpart")
    is_down = sides[0] == path.sides[0]
    both = str(entry.read("bidir", config.defaults, "0")) == "1"
    directions = DIRECTIONS if both else ("down" if is_down else "up",)
    if "attach_to_queue" in entry.arguments:
        first, second = (_end_name(config, end) for end in (ends if is_down else reversed(ends)))
        name = f"{first}-{second}".replace("/", "-")
        path.ends[name] = first, second
        path.classes[name] = {**path.classes.pop(name, {}), **dict.fromkeys(directions, entry)}
    elif path.queues.keys() & set(directions):
        raise NoCounterpartError(
            "samovar has one queue in each direction; path.classes gives flows a delay or loss of their own"
        )
    else:
        path.queues.update(dict.fromkeys(directions, entry))
    return path


def _end_name(config: Configuration, end: IPv4Network) -> str:
    return config.names[config.host_of(end.network_address)] if end.prefixlen == 32 else str(end)


def path_targets(
    config: Configuration, path: BottleneckQueues, catalogue: RecipeCatalogue
) -> Iterator[Target]:
    """Yield the targets of a path and its classes."""
    queues, reader = path.queues, QueueReader(config.system(path.router), catalogue)

    def target(key: str, arguments: Iterable[str], value: Callable[[str, Names], str]) -> Target:
        """Return the target of a key; its value is a mapping by direction, or one value for both."""

        def by_direction(names: Names) -> Any:
            found = {direction: value(direction, names) for direction in queues}
            is_shared = key in ("aqm", "buffer") and len(found) == 2 and len({*found.values()}) == 1
            return found["down"] if is_shared else found

        return Target(f"path.{key}", _variables(queues, *arguments), by_direction)

    yield target("rate", ["rate"], lambda direction, names: reader.rate(queues[direction], names))
    yield Target("path.delay", _variables(queues, "delay"), partial(_delay, queues))
    yield target("loss", ["loss"], lambda direction, names: _loss(queues[direction], names))
    yield target("aqm", SIZE, lambda direction, names: reader.aqm(queues[direction], names))
    yield target("buffer", (*SIZE, "delay"), partial(reader.buffer, queues))
    own = _variables(queues, "queue_disc", "queue_disc_params")
    for key in reader.known_parameters():
        yield Target(f"path.{key}", own, partial(_parameter, config, reader, queues.values(), key))
    for name, entries in reversed(path.classes.items()):  # in samovar the first class that matches applies
        at, whole = f"path.classes.{name}", {**queues, **entries}
        yield Target(f"{at}.delay", _variables(whole, "delay"), partial(_delay, whole), required=True)
        if "down" in entries:
            yield Target(f"{at}.loss", _variables(entries, "loss"), partial(_loss, entries["down"]))
        if "up" in entries and _argument(entries["up"], "loss") != _argument(queues.get("up"), "loss"):
            config.note(
                "TPCONF_router_queues",
                f"queue {entries['up'].id[:20]}: a class has no upstream loss of its own; the path's applies",
            )


def _variables(entries: Mapping[str, TeacupEntry], *arguments: str) -> frozenset[str]:
    return frozenset[str]().union(*(entry.variables(*arguments) for entry in entries.values()))


def _argument(entry: TeacupEntry | None, name: str) -> str:
    """Return an argument as it is written, or 0 if it is missing."""
    return ast.unparse(entry.arguments[name]) if entry is not None and name in entry.arguments else "0"


def _delay(entries: Mapping[str, TeacupEntry], names: Names) -> dict[str, str]:
    read = {direction: entry.read("delay", names) or 0 for direction, entry in entries.items()}
    return {direction: milliseconds(read.get(direction, 0)) for direction in DIRECTIONS}


def _loss(entry: TeacupEntry, names: Names) -> str:
    return share(entry.read("loss", names) or 0)


def _parameter(
    config: Configuration, reader: QueueReader, entries: Collection[TeacupEntry], key: str, names: Names
) -> str | None:
    """Return the value of a queue discipline's parameter; raises NoCounterpartError if directions differ."""
    found = {reader.parameters(config, entry, names).get(key) for entry in entries}
    if len(found) > 1:
        raise NoCounterpartError("differs between the directions, but samovar has one value for both")
    return found.pop()


def _has_unit(written: Any) -> bool:
    """Return whether a queue size has a unit, such as 20Kbytes, rather than being a number or `bdp`."""
    return bool(re.fullmatch(r"[0-9]+ *[A-Za-z]+", str(written).strip()))


@dataclass(frozen=True)
class QueueReader:
    """Reads the queue of an entry, for a router with a given operating system."""

    system: str
    catalogue: RecipeCatalogue

    def rate(self, entry: TeacupEntry, names: Names) -> str:
        """Return the rate; raises NoCounterpartError."""
        written = str(entry.read("rate", names) or UNLIMITED).lower()
        if self.system == "linux" and written.endswith("bps"):  # tc's bps are bytes per second
            return format_rate(8 * parse_rate(rate(written)))
        return rate(written)

    def aqm(self, entry: TeacupEntry, names: Names) -> str:
        """Return the queue discipline; raises NoCounterpartError."""
        written = str(entry.read("queue_disc", names))
        aqm = "pfifo" if written in ("", "fifo") else written
        if aqm == "pfifo" and self.system == "freebsd" and _has_unit(entry.read("queue_size", names)):
            aqm = "bfifo"  # dummynet's fifo counts bytes if the size has a unit
        if aqm not in self.catalogue.names("aqm", self.system):
            raise NoCounterpartError(f"samovar has no queue discipline {aqm[:40]} for {self.system}")
        return aqm

    def buffer(self, queues: Mapping[str, TeacupEntry], direction: str, names: Names) -> str:
        """Return the size of a direction's queue in the unit of its discipline, or as a formula."""
        entry = queues[direction]
        aqm = self.aqm(entry, names)
        in_bytes = "buffer_bytes" in (self.catalogue.parameters("aqm", aqm, self.system) or {})
        wanted = str(entry.read("queue_size", names) or MOST_PACKETS[self.system])
        if wanted.lower() != "bdp":
            if not _has_unit(wanted):
                return f"{round(number(wanted))}{'B' if in_bytes else 'packets'}"
            if not in_bytes:
                raise NoCounterpartError(f"{wanted[:40]} is a size in bytes, but {aqm} counts packets")
            return size(wanted)
        times = number(entry.read("queue_size_mult", names, 1))
        if not in_bytes and self.system == "linux":
            times *= FRAME_BYTES / number(entry.read("avg_packet_size", names, PACKET_BYTES))
        up = ".up" if direction == "up" else ""
        rtt = entry.read("rtt", names)
        if not rtt:  # TEACUP assumes that the opposite direction has the same delay
            delays = {
                one: number(queues[one].read("delay", names) or 0) if one in queues else 0
                for one in DIRECTIONS
            }
            if len({*delays.values()}) == 1 and any(delays.values()):
                return f"{times:g} * BDP{up}"
            rtt = 2 * delays[direction]
        if not number(rtt):
            return f"{LEAST_BYTES}B" if in_bytes else f"{LEAST_PACKETS}packets"
        return f"{times:g} * RATE{up} * {milliseconds(rtt)}"

    def known_parameters(self) -> list[str]:
        """Return the names of the parameters that any queue discipline has."""
        names = self.catalogue.names("aqm", self.system)
        return sorted(
            {key for name in names for key in self.catalogue.parameters("aqm", name, self.system) or ()}
        )

    def parameters(self, config: Configuration, entry: TeacupEntry, names: Names) -> dict[str, str]:
        """Return the queue discipline's parameters that an entry gives, and add a note on each other word.

        If the parameters vary for the same queue discipline, a level without some of them has their defaults.
        """
        try:
            aqm = self.aqm(entry, names)
        except (NoCounterpartError, UnreadableError):
            return {}  # the target path.aqm reports it
        known, found = self.catalogue.parameters("aqm", aqm, self.system) or {}, dict[str, str]()
        own, of_aqm = entry.variables("queue_disc_params"), entry.variables("queue_disc")
        if any(one.variables & own and not one.variables & of_aqm for one in config.parameters()):
            found |= {key: one.default for key, one in known.items() if one.default is not None}
        words = iter(str(entry.read("queue_disc_params", names)).split())
        for word in words:
            switch = word.removeprefix("no")
            if switch in known and known[switch].type == "switch":
                found[switch] = "on" if switch == word else "off"
            elif word in known:
                try:
                    found[word] = self._quantity(known[word].type, next(words, ""))
                except NoCounterpartError as error:
                    config.note("TPCONF_router_queues", f"queue_disc_params: {word}: {error}")
            elif not word[:1].isdigit():
                config.note(
                    "TPCONF_router_queues", f"queue_disc_params: {word[:40]} has no counterpart for {aqm}"
                )
        return found

    def _quantity(self, type_: str, text: str) -> str:
        """Return a parameter's value with a unit; raises NoCounterpartError.

        Times without a unit are in ms for ipfw, and in µs for tc.
        """
        if type_ == "share":
            return share(text)
        if type_ == "size":
            return size(text)
        units = {"packets": "packets", "duration": "ms" if self.system == "freebsd" else "us"}
        return text + units.get(type_, "") if text.replace(".", "", 1).isdecimal() else text
