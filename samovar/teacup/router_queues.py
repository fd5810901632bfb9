"""TEACUP's router queues as a path: rate, delay, loss and queue of each direction, and classes of packets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from samovar.experiment import RecipeCatalogue
from samovar.teacup.configuration import Configuration, Network, TeacupEntry
from samovar.teacup.parameters import Names, NoCounterpartError, Target
from samovar.teacup.static_python import UnreadableError
from samovar.teacup.traffic_gens import milliseconds, number, rate, share

UNLIMITED, MOST_PACKETS = "1000mbit", 1000
"""The rate and the queue of an entry that gives none."""
PACKET_BYTES, FRAME_BYTES = 600, 1500
"""TEACUP counts a queue of `bdp` in packets of 600 bytes, a path here in packets of the MTU."""
AQMS = {"fifo": "pfifo", "": "pfifo"}
DIRECTIONS = ("down", "up")
SIZE = ("queue_disc", "queue_size", "queue_size_mult", "avg_packet_size", "rtt")
ARGUMENTS = frozenset(
    ("source", "dest", "delay", "loss", "rate", "queue_disc_params", "bidir", "attach_to_queue", *SIZE)
)


@dataclass
class BottleneckQueues:
    """The bottleneck: its router, the networks of the side that data comes from and of the other.

    `queues` has the entry of each direction, `classes` the entries attached to them, by name of the class.
    """

    router: str
    sides: tuple[Network, Network]
    queues: dict[str, TeacupEntry] = field(default_factory=dict)
    classes: dict[str, dict[str, TeacupEntry]] = field(default_factory=dict)
    ends: dict[str, tuple[str, str]] = field(default_factory=dict)


def find_path(config: Configuration) -> BottleneckQueues | None:
    """Return the bottleneck of a configuration: the first router with queues between two of its networks."""
    for router, entries in config.queues():
        own = [config.network(f"{address}/24") for address in config.addresses.get(router, [])]
        path: BottleneckQueues | None = None
        for entry in entries:
            try:
                path = _add(config, path, router, own, entry)
            except (NoCounterpartError, UnreadableError) as error:
                config.note("TPCONF_router_queues", f"queue {entry.id[:20]}: {error}; it is left out")
        if path is not None and path.queues:
            return path
    return None


def _add(
    config: Configuration, path: BottleneckQueues | None, router: str, own: list[Network], entry: TeacupEntry
) -> BottleneckQueues:
    ends = [config.network(entry.read(name, config.defaults)) for name in ("source", "dest")]
    sides = [next((one for one in own if one.overlaps(end)), None) for end in ends]
    if sides[0] is None or sides[1] is None or sides[0] == sides[1]:
        raise NoCounterpartError(
            f"{router[:40]} has no interface to each of its ends in TPCONF_host_internal_ip"
        )
    path = path or BottleneckQueues(router, (sides[0], sides[1]))
    if set(path.sides) != set(sides):
        raise NoCounterpartError("there is one bottleneck here, between the networks of the first queue")
    first = "down" if sides[0] == path.sides[0] else "up"
    both = str(entry.read("bidir", config.defaults, "0")) == "1"
    for unknown in entry.arguments.keys() - ARGUMENTS:
        config.note("TPCONF_router_queues", f"{unknown[:40]} has no counterpart")
    for direction in DIRECTIONS if both else (first,):
        if "attach_to_queue" in entry.arguments:
            at = [_end_name(config, entry, one) for one in ("source", "dest")]
            at = at if direction == first == "down" or (both and first == "down") else at[::-1]
            name = f"{at[0]}-{at[1]}".replace("/", "-")
            path.classes.setdefault(name, {})[direction] = entry
            path.ends[name] = at[0], at[1]
        elif direction in path.queues:
            raise NoCounterpartError(
                "there is one queue in each direction here; let flows differ in path.classes"
            )
        else:
            path.queues[direction] = entry
    return path


def _end_name(config: Configuration, entry: TeacupEntry, argument: str) -> str:
    end = entry.read(argument, config.defaults)
    network = config.network(end)
    return config.names[config.host_of(network.network_address)] if network.prefixlen == 32 else str(network)


def path_targets(
    config: Configuration, path: BottleneckQueues, catalogue: RecipeCatalogue
) -> Iterator[Target]:
    """Yield the targets of a path and its classes."""
    system, queues = config.system(path.router), path.queues

    def target(key: str, arguments: tuple[str, ...], value: Callable[[TeacupEntry, Names], Any]) -> Target:
        variables = _variables(queues.values(), arguments)
        return Target(f"path.{key}", variables, lambda names: _each(queues, lambda one: value(one, names)))

    def both(key: str, value: Callable[[TeacupEntry, Names, str], str]) -> Target:
        """Return the target of a key of which one value may be for both directions."""

        def one_or_two(names: Names) -> Any:
            found = {direction: value(entry, names, direction) for direction, entry in queues.items()}
            same = len(found) == 2 and len(set(found.values())) == 1
            return found["down"] if same else found

        return Target(f"path.{key}", _variables(queues.values(), ("rate", "delay", *SIZE)), one_or_two)

    yield target("rate", ("rate",), lambda one, names: rate(one.read("rate", names) or UNLIMITED))
    yield Target("path.delay", _variables(queues.values(), ("delay",)), partial(_delay, queues))
    yield target("loss", ("loss",), _loss)
    yield both("aqm", lambda one, names, _: _aqm(one, names, system, catalogue))
    yield both("buffer", lambda one, names, way: _buffer(one, names, way, system, catalogue))
    parameters = (key for one in queues.values() for key in _parameters(config, one, system, catalogue))
    for key in sorted(set(parameters)):
        yield target(key, ("queue_disc", "queue_disc_params"), partial(_parameter, key=key))
    for name, entries in path.classes.items():
        own, at = _variables(entries.values(), ("delay", "loss")), f"path.classes.{name}"
        yield Target(f"{at}.delay", own, partial(_delay, entries), required=True)
        if "down" in entries:
            yield Target(f"{at}.loss", own, partial(_loss, entries["down"]))


def _variables(entries: Iterable[TeacupEntry], arguments: Iterable[str]) -> frozenset[str]:
    names = tuple(arguments)
    found = [one.arguments[name].variables for one in entries for name in names if name in one.arguments]
    return frozenset[str]().union(*found)


def _delay(entries: Mapping[str, TeacupEntry], names: Names) -> dict[str, str]:
    read = {direction: entry.read("delay", names) or 0 for direction, entry in entries.items()}
    return {direction: milliseconds(read.get(direction, 0)) for direction in DIRECTIONS}


def _loss(entry: TeacupEntry, names: Names) -> str:
    return share(entry.read("loss", names) or 0)


def _each(queues: Mapping[str, TeacupEntry], value: Callable[[TeacupEntry], Any]) -> dict[str, Any] | None:
    found = {direction: value(entry) for direction, entry in queues.items()}
    return {direction: one for direction, one in found.items() if one is not None} or None


def _aqm(entry: TeacupEntry, names: Names, system: str, catalogue: RecipeCatalogue) -> str:
    written = str(entry.read("queue_disc", names))
    aqm = AQMS.get(written, written)
    if aqm not in catalogue.names("aqm", system):
        raise NoCounterpartError(f"{aqm[:40]} is not a queue discipline of {system} here")
    return aqm


def _buffer(entry: TeacupEntry, names: Names, direction: str, system: str, catalogue: RecipeCatalogue) -> str:
    aqm = _aqm(entry, names, system, catalogue)
    in_bytes = "buffer_bytes" in (catalogue.parameters("aqm", aqm, system) or {})
    wanted = entry.read("queue_size", names) or MOST_PACKETS
    if wanted != "bdp":
        return f"{round(number(wanted))}{'B' if in_bytes else 'packets'}"
    times = number(entry.read("queue_size_mult", names, 1))
    if not in_bytes:
        times *= FRAME_BYTES / number(entry.read("avg_packet_size", names, PACKET_BYTES))
    up = ".up" if direction == "up" else ""
    rtt = entry.read("rtt", names)
    return f"{times:g} * {f'RATE{up} * {milliseconds(rtt)}' if rtt else f'BDP{up}'}"


def _words(entry: TeacupEntry, names: Names) -> list[str]:
    return str(entry.read("queue_disc_params", names)).split()


def _parameters(
    config: Configuration, entry: TeacupEntry, system: str, catalogue: RecipeCatalogue
) -> Iterator[str]:
    """Yield the parameters of the queue discipline that the queue's default text gives."""
    try:
        known = catalogue.parameters("aqm", _aqm(entry, config.defaults, system, catalogue), system) or {}
        words = _words(entry, config.defaults)
    except (NoCounterpartError, UnreadableError):
        return
    for word in words:
        if word.removeprefix("no") == "ecn" and "ecn" in known:
            yield "ecn"
        elif word in known:
            yield word
        elif not word[:1].isdigit():
            config.note("TPCONF_router_queues", f"queue_disc_params: {word[:40]} has no counterpart")


def _parameter(entry: TeacupEntry, names: Names, key: str) -> str | None:
    words = _words(entry, names)
    if key == "ecn":
        return "on" if "ecn" in words else "off" if "noecn" in words else None
    return words[words.index(key) + 1] if key in words[:-1] else None
