"""Put trials in order: sequential, shuffled or in blocks. The same seed gives the same order.

Trials stay within their part, and parts follow each other in the order of the file. A block contains one
replicate of each treatment, so that drift over time affects all treatments about equally. The shuffle of a
block does not depend on the number of replicates: more replicates append blocks and leave the existing blocks
unchanged.

Treatments between which a host must reboot, according to the headers of setting recipes, belong to different
whole plots. Within a whole plot, treatments between which an interface must be reset belong to different
smaller plots. Settings that are costly to change are thus changed least often. If factors change different
hosts, plots are nested: the outermost plots are those of the hosts with the fewest different settings. Whole
plots are shuffled, and so are the treatments within each plot (a split-plot design; Box, Hunter and Hunter,
Statistics for Experimenters, 2nd ed., section 9.1). All blocks of a whole plot run before the next whole
plot, so that hosts reboot only once for each level that needs a reboot.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from samovar.experiment import RecipeCatalogue
from samovar.plan.model import Changes, HostPlan
from samovar.plan.trials import HOST, Slot, Treatments

REBOOT, RESET = "reboot", "interface-reset"

Column = Sequence[Hashable]
"""A value for each treatment. Between treatments with equal values, no setting of a host has to change."""
States = Mapping[str, Column]
"""The settings that are costly to change: for each host that has any, a column with their values."""


def ordered(
    kind: str,
    seed: int,
    part: str,
    treatments: int,
    replicates: int,
    reboots: Sequence[Column] = (),
    resets: Sequence[Column] = (),
) -> list[Slot]:
    """Return the order of one part's trials. Treatments are counted from 0, replicates and blocks from 1.

    Treatments that are equal in all columns of `reboots` share a whole plot. Within a whole plot, treatments
    that are also equal in all columns of `resets` share a smaller plot. Each column is for one set of hosts
    that change together; the hosts of the first column change least often.
    """
    every, own_seed = list(range(treatments)), f"{seed}/{part}"
    if kind == "blocked":
        return list(_blocked(every, replicates, own_seed, reboots, resets))
    generator = random.Random(own_seed) if kind == "shuffled" else None
    order: list[Slot] = []
    for plot in _plots(every, (*reboots, *resets), generator):
        slots = [Slot(treatment, replicate + 1, 1) for treatment in plot for replicate in range(replicates)]
        if generator is not None:
            generator.shuffle(slots)
        order += slots
    return order


def _plots(
    treatments: list[int], columns: Sequence[Column], generator: random.Random | None = None
) -> Iterator[list[int]]:
    """Yield the plots: treatments divided by the first column, then each plot by the next, and so on.

    If `generator` (of random numbers) is given, plots are shuffled; nested plots stay within their plot.
    """
    if not columns:
        yield treatments
        return
    plots: dict[Hashable, list[int]] = {}
    for treatment in treatments:
        plots.setdefault(columns[0][treatment], []).append(treatment)
    order = list(plots.values())
    if generator is not None:
        generator.shuffle(order)
    for plot in order:
        yield from _plots(plot, columns[1:], generator)


def _blocked(
    treatments: list[int], replicates: int, seed: str, reboots: Sequence[Column], resets: Sequence[Column]
) -> Iterator[Slot]:
    """Yield the slots of all whole plots, which are in random order.

    Within a whole plot, block follows block, and the order within a block is random.
    """
    firsts = sorted(whole[0] for whole in _plots(treatments, reboots))
    for whole in _plots(treatments, reboots, random.Random(seed)):
        own_seed = f"{seed}/{firsts.index(whole[0])}" if len(firsts) > 1 else seed
        for block in range(1, replicates + 1):
            generator = random.Random(f"{own_seed}/{block}")
            for plot in _plots(whole, resets, generator):
                shuffled = list(plot)
                generator.shuffle(shuffled)
                yield from (Slot(treatment, block, block) for treatment in shuffled)


def costly_settings(treatments: Treatments, catalogue: RecipeCatalogue) -> tuple[States, States]:
    """Return two groups of settings for each host: those that need a reboot, and those that need a reset.

    Settings that need a reboot are in both groups, because a reboot resets the interfaces too.
    """
    reboot: dict[str, Column] = {}
    either: dict[str, Column] = {}
    for name, column in treatments.columns(1).items():
        if name.startswith(HOST):
            states = {component: _states(component.value, catalogue) for component in set(column)}
            for index, found in enumerate((reboot, either)):
                if any(one[index] for one in states.values()):
                    found[name.removeprefix(HOST)] = [states[component][index] for component in column]
    return reboot, either


def _states(host: HostPlan, catalogue: RecipeCatalogue) -> tuple[Hashable, Hashable]:
    """Return the settings of a host that need a reboot, and those that need a reset (see costly_settings)."""
    values: dict[str, object] = {
        "mtu": host.mtu_bytes,
        "txd": host.txd,
        "cc": host.cc,
        "rwnd": host.rwnd_bytes,
        **{recipe: sorted(parameters.items()) for recipe, parameters in sorted(host.settings.items())},
    }
    costly: dict[str, list[tuple[str, str]]] = {REBOOT: [], RESET: []}
    for recipe, value in values.items():
        change = catalogue.change(recipe, host.system)
        if value is not None and change in costly:
            costly[change].append((recipe, str(value)))
    reboot, reset = tuple(costly[REBOOT]), tuple(costly[RESET])
    return reboot, (reboot, reset) if reset else reboot


def nested(hosts: Iterable[Column]) -> Sequence[tuple[int, ...]]:
    """Return a column for each set of hosts that change together; the first set changes least often.

    Sets with fewer states come first. Of sets with equally many states, those with more hosts come first.
    """
    weights = Counter[tuple[int, ...]]()
    for column in hosts:
        numbers = {state: number for number, state in enumerate(dict.fromkeys(column))}
        weights[tuple(numbers[state] for state in column)] += 1
    return sorted(filter(any, weights), key=lambda column: (max(column), -weights[column]))


def together(hosts: States) -> States:
    """Merge the states of all hosts into one: a run waits only once for hosts that reboot together."""
    names = sorted(hosts)
    rows = zip(*(hosts[name] for name in names), strict=True)
    named = (zip(names, row, strict=True) for row in rows)
    return {"": [tuple(pair for pair in pairs if pair[1]) for pairs in named]} if hosts else {}


def count_changes(parts: Sequence[tuple[States, States, Sequence[Slot]]]) -> Changes:
    """Count the reboots and resets of all parts in the plan's order and in the naive order (see Changes)."""
    reboot, either = [one for one, _, _ in parts], [one for _, one, _ in parts]
    own = [[slot.treatment for slot in slots] for _, _, slots in parts]
    naive = [[*range(max(order) + 1)] * (len(order) // (max(order) + 1)) for order in own]
    reboots, restored = _count(reboot, own)
    naive_reboots, naive_restored = _count(reboot, naive)
    return Changes(
        reboots=reboots + restored,
        resets=_count(either, own)[0] - reboots,
        naive_reboots=naive_reboots + naive_restored,
        naive_resets=_count(either, naive)[0] - naive_reboots,
        boots=sum(_count([together(hosts) for hosts in reboot], own)),
    )


def _count(parts: Iterable[States], orders: Iterable[Sequence[int]]) -> tuple[int, int]:
    """Return how often hosts change their state, and how many hosts must be restored at the end.

    `orders` has, for each part, the indices of its treatments in the order of the trials.
    """
    sequences: dict[str, list[Hashable]] = {}
    for hosts, order in zip(parts, orders, strict=True):
        for host in {**sequences, **hosts}:
            states = hosts.get(host)
            own = [()] if states is None else [states[treatment] for treatment in order]
            sequences.setdefault(host, [()]).extend(own)
    changes = sum(one != other for states in sequences.values() for one, other in pairwise(states))
    return changes, sum(bool(states[-1]) for states in sequences.values())
