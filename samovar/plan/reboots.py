"""What must be rebooted or reset between trials, from the headers of the recipes that set their hosts."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise, permutations
from operator import ne
from typing import Literal, NamedTuple, Protocol

from samovar.plan.model import HostPlan
from samovar.plan.order import Plots
from samovar.plan.pool import HOST, Pool
from samovar.plan.product import Column
from samovar.plan.table import Treatments

MOST_TRIED = 4
"""So many sets of hosts are nested in every way to find the best, 24 for four."""
REBOOT, RESET = "reboot", "interface-reset"
AS_FOUND = 0


class Header(Protocol):
    """What the plan reads of a recipe's header."""

    @property
    def change(self) -> Literal["none", "interface-reset", "reboot"]:
        """What a change of the setting costs."""


class Headers(Protocol):
    """The headers of recipes; the command layer has them."""

    def names(self, kind: str, os: str) -> Collection[str]:
        """Return the names of all recipes of a kind for a system."""

    def header(self, kind: str, name: str, os: str) -> Header:
        """Return the header of one recipe."""


class State(NamedTuple):
    """What of a host takes a reboot to change, and what a reboot or a reset; numbers, 0 is as it is found."""

    reboot: int
    either: int


@dataclass(frozen=True)
class States:
    """The numbers of what hosts are set to, over all parts of a plan."""

    headers: Headers | None
    _numbers: dict[object, int] = field(default_factory=lambda: {(): AS_FOUND})

    def of(self, host: HostPlan) -> State:
        """Return the state of a host; as it is found when no headers are known."""
        if self.headers is None:
            return State(AS_FOUND, AS_FOUND)
        known = self.headers.names("setting", host.system)
        costly: dict[str, list[tuple[str, str]]] = {}
        for recipe, value in _settings(host):
            if recipe in known:
                change = self.headers.header("setting", recipe, host.system).change
                costly.setdefault(change, []).append((recipe, value))
        reboot, reset = tuple(costly.get(REBOOT, ())), tuple(costly.get(RESET, ()))
        return State(self._number(reboot), self._number((reboot, reset) if reset else reboot))

    def _number(self, state: object) -> int:
        return self._numbers.setdefault(state, len(self._numbers))


def _settings(host: HostPlan) -> Iterator[tuple[str, str]]:
    own = (("mtu", host.mtu_bytes), ("txd", host.txd), ("cc", host.cc), ("rwnd", host.rwnd_bytes))
    yield from ((recipe, str(value)) for recipe, value in own if value is not None)
    yield from ((recipe, str(sorted(values.items()))) for recipe, values in sorted(host.settings.items()))


@dataclass(frozen=True)
class Costly:
    """The states of a part's hosts by treatment, for each host where anything is costly to change."""

    reboots: Mapping[str, Column]
    either: Mapping[str, Column]

    def plots(self) -> Plots:
        """Return the plots of the part's treatments."""
        return Plots(nested(list(self.reboots.values())), nested(list(self.either.values())))


def costly_of(group: Treatments, pool: Pool, states: States) -> Costly:
    """Return what is costly to change among the treatments of a part."""
    reboots, either = dict[str, Column](), dict[str, Column]()
    for component, columns in zip(group.components, group.columns, strict=True):
        if component.startswith(HOST):
            known = {number: states.of(pool.value(number)) for number in set(columns[0])}
            if any(state.either for state in known.values()):
                host = component.removeprefix(HOST)
                reboots[host] = array(
                    "I", map({n: s.reboot for n, s in known.items()}.__getitem__, columns[0])
                )
                either[host] = array(
                    "I", map({n: s.either for n, s in known.items()}.__getitem__, columns[0])
                )
    return Costly({host: column for host, column in reboots.items() if any(column)}, either)


def nested(hosts: Sequence[Column]) -> Sequence[Column]:
    """Return a column for each set of hosts that change together, that which is to vary slowest first.

    Of all ways to nest a few it is the one by which the fewest hosts change; many are nested by their number
    of states, fewest first.
    """
    alike: dict[bytes, int] = {}
    for text, number in Counter(column.tobytes() for column in hosts).items():
        column = _by_first(array("I", text))
        if any(column):
            alike[column.tobytes()] = alike.get(column.tobytes(), 0) + number
    sets = [(array("I", text), weight) for text, weight in alike.items()]
    sets.sort(key=lambda one: (max(one[0]), -one[1]))
    if not 2 <= len(sets) <= MOST_TRIED:
        return [column for column, _ in sets]
    plots = set(zip(*(column for column, _ in sets), strict=True))
    weights = [weight for _, weight in sets]
    best = min(permutations(range(len(sets))), key=lambda places: _changing(plots, weights, places))
    return [sets[place][0] for place in best]


def _by_first(column: Column) -> Column:
    """Return a column with its states numbered as they come, so that columns that change alike are equal."""
    numbers: dict[int, int] = {}
    return array("I", [numbers.setdefault(state, len(numbers)) for state in column])


def _changing(plots: Collection[tuple[int, ...]], weights: Sequence[int], places: Sequence[int]) -> int:
    """Count the hosts that change where plots are nested so, each larger one taken in order."""
    ordered = sorted(tuple(plot[place] for place in places) for plot in plots)
    own = [weights[place] for place in places]
    return sum(
        weight
        for one, other in pairwise(ordered)
        for weight, a, b in zip(own, one, other, strict=True)
        if a != b
    )


@dataclass(frozen=True)
class Together:
    """The numbers of what all hosts together are set to, over all parts of a plan; 0 is as they are found."""

    _numbers: dict[object, int] = field(default_factory=lambda: {(): AS_FOUND})

    def of(self, hosts: Mapping[str, Column]) -> Mapping[str, Column]:
        """Return the states of all hosts as those of one."""
        if not hosts:
            return {}
        names = sorted(hosts)
        rows = zip(*(hosts[name] for name in names), strict=True)
        changed = (tuple((n, s) for n, s in zip(names, row, strict=True) if s != AS_FOUND) for row in rows)
        return {"": array("I", (self._numbers.setdefault(one, len(self._numbers)) for one in changed))}


class Count:
    """Counts changes over the parts of a plan; hosts begin as they are found, and each counts for itself."""

    def __init__(self) -> None:
        self.own = self.naive = 0
        self._last_own, self._last_naive = dict[str, int](), dict[str, int]()
        self._known: dict[tuple[bytes, int, int], tuple[int, int]] = {}

    def add(self, hosts: Mapping[str, Column], order: Column, replicates: int) -> None:
        """Count a part: in its order, and block after block in the order of the file."""
        for host in dict.fromkeys([*hosts, *self._last_own]):
            column = hosts.get(host)
            own, naive = self._last_own.get(host, AS_FOUND), self._last_naive.get(host, AS_FOUND)
            if column is None:
                self.own, self.naive = self.own + (own != AS_FOUND), self.naive + (naive != AS_FOUND)
                self._last_own[host] = self._last_naive[host] = AS_FOUND
                continue
            inside, around = self._inside(column, order)
            first, last = column[order[0]], column[order[-1]]
            self.own += inside + (first != own)
            between = (replicates - 1) * (column[0] != column[-1])
            self.naive += replicates * around + between + (column[0] != naive)
            self._last_own[host], self._last_naive[host] = last, column[-1]

    def back(self) -> tuple[int, int]:
        """Count the hosts that are not as they were found at the end, in the plan's order and the file's."""
        return sum(map(bool, self._last_own.values())), sum(map(bool, self._last_naive.values()))

    def _inside(self, column: Column, order: Column) -> tuple[int, int]:
        """Count the changes of a column in an order and as it stands; hosts are often all set alike."""
        key = (column.tobytes(), id(order), len(order))
        if key not in self._known:
            trials = array("I", map(column.__getitem__, order))
            self._known[key] = (_changes(trials), _changes(column))
        return self._known[key]


def _changes(states: Column) -> int:
    return sum(map(ne, states, islice(states, 1, None)))
