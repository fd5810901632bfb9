"""Which changes between trials need a reboot or an interface reset, by the headers of setting recipes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Literal, Protocol

from samovar.plan.model import HostPlan
from samovar.plan.order import WholePlots
from samovar.plan.trials import HOST, Slot, Treatments

MOST_NESTINGS_TRIED = 4
"""Up to so many sets of hosts are nested in every possible way to find the best, 24 for four."""
REBOOT, RESET = "reboot", "interface-reset"

State = tuple[object, ...]
"""The settings of a host that are costly to change; empty if the host is as it was found."""
States = Mapping[str, Sequence[State]]
"""By host: the state in each treatment."""


class SettingHeader(Protocol):
    """The part of a recipe's header that a plan reads."""

    @property
    def change(self) -> Literal["none", "interface-reset", "reboot"]:
        """What a change of the setting needs."""


class RecipeHeaders(Protocol):
    """The headers of recipes."""

    def names(self, kind: str, os: str) -> Collection[str]:
        """Return the names of all recipes of a kind for an operating system."""

    def header(self, kind: str, name: str, os: str) -> SettingHeader:
        """Return the header of one recipe."""


@dataclass(frozen=True)
class CostlySettings:
    """The settings of a part's hosts that need a reboot to change, and those that need a reboot or a reset.

    Hosts without such settings are left out.
    """

    reboot: States
    either: States

    def whole_plots(self) -> WholePlots:
        """Return the whole plots of the part's treatments."""
        return WholePlots(nested(list(self.reboot.values())), nested(list(self.either.values())))


def costly_settings(treatments: Treatments, headers: RecipeHeaders | None) -> CostlySettings:
    """Return the settings of a part's hosts that are costly to change; none if no headers are known."""
    reboot, either = dict[str, list[State]](), dict[str, list[State]]()
    for name, column in treatments.columns(1).items():
        if not name.startswith(HOST) or headers is None:
            continue
        states = {component: _states(component.value, headers) for component in set(column)}
        host = name.removeprefix(HOST)
        reboot[host] = [states[component][0] for component in column]
        either[host] = [states[component][1] for component in column]
    return CostlySettings(
        {host: states for host, states in reboot.items() if any(states)},
        {host: states for host, states in either.items() if any(states)},
    )


def _states(host: HostPlan, headers: RecipeHeaders) -> tuple[State, State]:
    """Return the settings of a host that need a reboot, and all that need a reboot or an interface reset."""
    values: dict[str, object] = {
        "mtu": host.mtu_bytes,
        "txd": host.txd,
        "cc": host.cc,
        "rwnd": host.rwnd_bytes,
        **{recipe: sorted(parameters.items()) for recipe, parameters in sorted(host.settings.items())},
    }
    known = headers.names("setting", host.system)
    costly: dict[str, list[tuple[str, str]]] = {}
    for recipe, value in values.items():
        if value is not None and recipe in known:
            change = headers.header("setting", recipe, host.system).change
            costly.setdefault(change, []).append((recipe, str(value)))
    reboot, reset = tuple(costly.get(REBOOT, ())), tuple(costly.get(RESET, ()))
    return reboot, (reboot, reset) if reset else reboot


def nested(hosts: Sequence[Sequence[Hashable]]) -> Sequence[Sequence[int]]:
    """Return a column for each set of hosts that change together, the slowest to vary first.

    Up to MOST_NESTINGS_TRIED sets are nested so that the fewest hosts change; more of them by their number of
    states, fewest first.
    """
    weights = Counter(_numbered(column) for column in hosts)
    sets = [(column, weight) for column, weight in weights.items() if any(column)]
    sets.sort(key=lambda one: (max(one[0]), -one[1]))
    if 2 <= len(sets) <= MOST_NESTINGS_TRIED:
        rows = set(zip(*(column for column, _ in sets), strict=True))
        own = [weight for _, weight in sets]
        best = min(permutations(range(len(sets))), key=lambda order: _changing_hosts(rows, own, order))
        sets = [sets[place] for place in best]
    return [column for column, _ in sets]


def _numbered(column: Sequence[Hashable]) -> tuple[int, ...]:
    """Return a column with its states numbered in order: hosts that change together have equal columns."""
    numbers: dict[Hashable, int] = {}
    return tuple(numbers.setdefault(state, len(numbers)) for state in column)


def _changing_hosts(rows: Collection[tuple[int, ...]], weights: Sequence[int], order: Sequence[int]) -> int:
    """Count the hosts that change if plots are nested in this order and each is run in order."""
    ordered = sorted(tuple(row[place] for place in order) for row in rows)
    own = [weights[place] for place in order]
    return sum(
        weight
        for one, other in pairwise(ordered)
        for weight, a, b in zip(own, one, other, strict=True)
        if a != b
    )


def together(hosts: States) -> States:
    """Return the states of all hosts as those of one: trials wait once for hosts that reboot together."""
    if not hosts:
        return {}
    names = sorted(hosts)
    rows = zip(*(hosts[name] for name in names), strict=True)
    return {
        "": [tuple((name, state) for name, state in zip(names, row, strict=True) if state) for row in rows]
    }


class ChangeCount:
    """Counts the changes of hosts' states over all parts, in the plan's order and in a naive one.

    Naive is block after block, each in the order of the file. Every host begins as it was found.
    """

    def __init__(self) -> None:
        self.own = self.naive = 0
        self._last: dict[str, tuple[State, State]] = {}

    def add(self, hosts: States, slots: Sequence[Slot], treatments: int, replicates: int) -> None:
        """Count the changes of one part."""
        for host in dict.fromkeys([*hosts, *self._last]):
            states = list(hosts.get(host) or [()] * treatments)
            last_own, last_naive = self._last.get(host, ((), ()))
            self.own += _changes([last_own, *(states[slot.treatment] for slot in slots)])
            self.naive += _changes([last_naive, *states * replicates])
            self._last[host] = states[slots[-1].treatment], states[-1]

    def restored(self) -> tuple[int, int]:
        """Return how many hosts must be restored at the end, in the plan's order and in the naive one."""
        return sum(bool(own) for own, _ in self._last.values()), sum(
            bool(naive) for _, naive in self._last.values()
        )


def _changes(states: Sequence[State]) -> int:
    return sum(one != other for one, other in pairwise(states))
