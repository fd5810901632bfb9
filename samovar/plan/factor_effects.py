"""Warn about levels of a factor that give equal trials, and name the value that overrides the level."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from samovar.experiment import Experiment, RecipeCatalogue, Testbed, yaml_tree
from samovar.plan.effective_values import EffectiveValues, class_of, duration_s, ends_before
from samovar.plan.model import FlowPlan, HostPlan, PathPlan, Resolved
from samovar.plan.trials import HOST, Component, Treatments
from samovar.units import format_duration

T = TypeVar("T", bound=Hashable)
Row = tuple[int, ...]
Tree = yaml_tree.Node | None
UNUSED = "nothing uses the values that differ"


class Reason(NamedTuple):
    """The reason why two levels have the same effect, and the position of the value that overrides them."""

    text: str
    position: yaml_tree.Position | None = None


class EqualLevels(NamedTuple):
    """Levels of a factor that give equal trials.

    `of` is the number of combinations of the other factors' levels, and `combinations` is the number of those
    in which the trials are equal. `rows` is an example: two treatments that differ only in this factor and
    give equal trials.
    """

    levels: tuple[int, ...]
    combinations: int
    of: int
    rows: tuple[int, int]


class FactorEffects:
    """Finds factors without effect in the parts of one experiment."""

    def __init__(self, experiment: Experiment, testbed: Testbed, catalogue: RecipeCatalogue) -> None:
        self.experiment, self.effective = experiment, EffectiveValues(testbed, catalogue)

    def warnings(self, part: Treatments) -> Iterator[str]:
        """Yield a warning for each set of a factor's levels that give equal trials."""
        keys = self._keys(part)
        if len(set(keys)) == len(keys):
            return
        explained = False
        for number, name in enumerate(part.factors):
            for equal in _equal_levels(part, keys, number):
                explained = True
                yield self._warning(part, name, equal)
        if not explained:
            first: dict[Hashable, int] = {}
            second = next(row for row, key in enumerate(keys) if first.setdefault(key, row) != row)
            rows = (first[keys[second]], second)
            one, other = (" ".join(part.labels(row).values()) for row in rows)
            yield f"{part.part}: {one} and {other} give the same trial{self._why(part, rows, None)}"

    def _keys(self, part: Treatments) -> Sequence[Hashable]:
        """Return, for every treatment, a key made from its effective values; equal keys mean equal trials."""
        columns, effective = part.columns(1), self.effective
        flows, run = columns["flows"], columns["run"]
        uses = {one: effective.uses(one.value) for one in set(flows)}
        found = [
            _column(flows, run, lambda own, by: effective.flows(own.value, by.value.stop)),
            _column(run, flows, lambda own, by: effective.stop(own.value.stop, by.value)),
            _column(columns["path"], flows, lambda own, by: effective.path(own.value, by.value)),
            columns["captures"],
            columns["loggers"],
        ]
        for host in self.effective.testbed.hosts:
            use = {one: use[host] for one, use in uses.items()}
            beside = [use[one] for one in flows]
            found.append(
                _column(columns[f"{HOST}{host}"], beside, lambda own, by: effective.host(own.value, by))
            )
        varying = [column for column in found if len(set(column)) > 1]
        return list(zip(*varying, strict=True)) if varying else [()] * len(part)

    def _warning(self, part: Treatments, name: str, equal: EqualLevels) -> str:
        labels = part.factors[name]
        listed = [labels[level] for level in equal.levels]
        levels = f"{', '.join(listed[:-1])} and {listed[-1]} give the same trials"
        why = self._why(part, equal.rows, name)
        if len(listed) == len(labels) and equal.combinations == equal.of:
            return f"{part.part}: factor {name} has no effect: {levels}{why}"
        where = ""
        if equal.combinations < equal.of:
            others = [f"{key} is {label}" for key, label in part.labels(equal.rows[0]).items() if key != name]
            many = f"{equal.combinations:,} of {equal.of:,} combinations of the other factors"
            where = f" in {many}, e.g. where {', '.join(others)}"
        return f"{part.part}: {name} {levels}{where}{why}"

    def _why(self, part: Treatments, rows: tuple[int, int], factor: str | None) -> str:
        """Return the end of a warning: `, as …` with the reasons why two treatments give equal trials."""
        one, other = (part.resolved(row) for row in rows)
        tree = yaml_tree.node_at(self.experiment.tree, "parts", part.part)
        node = yaml_tree.node_at(tree, "factors", factor or "")
        texts = []
        for reason in dict.fromkeys(self._reasons(tree, one, other)) or [Reason(UNUSED)]:
            position = reason.position or _position(node)
            texts.append(f"{reason.text} ({position})" if position else reason.text)
        return f", as {' and '.join(texts)}"

    def _reasons(self, tree: Tree, one: Resolved, other: Resolved) -> Iterator[Reason]:
        """Yield, for each difference between two treatments, why it has no effect."""
        for name, host in one.hosts.items():
            yield from self._reasons_of_host(tree, name, host, other.hosts[name], one.flows)
        if one.path is not None and other.path is not None:
            yield from self._reasons_of_path(tree, one.path, other.path, one.flows)
        for flow, same in zip(one.flows, other.flows, strict=False):
            yield from self._reasons_of_flow(tree, flow, same)
            lasts_s = duration_s(flow, one.stop), duration_s(same, other.stop)
            if flow.duration_s != same.duration_s and lasts_s[0] == lasts_s[1]:
                yield Reason(
                    "all traffic stops before the flow ends",
                    _position(yaml_tree.node_at(tree, "stop", "after")),
                )
        if one.stop != other.stop and one.stop is not None and ends_before(one.stop, one.flows):
            end_s = round(max(flow.start_s + (flow.duration_s or 0.0) for flow in one.flows), 6)
            place = _at(tree, one.flows[0], "duration")
            yield Reason(f"all flows end within {format_duration(end_s)}", place)

    def _reasons_of_flow(self, tree: Tree, one: FlowPlan, other: FlowPlan) -> Iterator[Reason]:
        if one.cc != other.cc:
            yield Reason(f"{one.cc} and {other.cc} are the same congestion control")
        if one.rwnd_bytes != other.rwnd_bytes:
            yield Reason(f"flow '{one.group}' is not TCP", _at(tree, one, "generator"))
        if one.parameters != other.parameters:
            yield Reason(_same_values(one.parameters, other.parameters))

    def _reasons_of_host(
        self,
        tree: Tree,
        name: str,
        one: HostPlan,
        other: HostPlan,
        flows: Sequence[FlowPlan],
    ) -> Iterator[Reason]:
        if one == other:
            return
        use = self.effective.uses(flows)[name]
        if not use.passed:
            yield Reason(f"no flow passes {name}")
            return
        sent = [flow for flow in flows if flow.from_host == name]
        received = [flow for flow in flows if flow.to_host == name]
        if one.cc != other.cc and None in use.ccs:
            yield Reason(f"{one.cc} and {other.cc} are the same congestion control")
        elif one.cc != other.cc:
            yield from self._overriding(tree, "cc", sent, f"no flow sends from {name}")
        if one.cc_parameters != other.cc_parameters:
            yield Reason(f"no flow from {name} uses {one.cc}")
        if one.rwnd_bytes != other.rwnd_bytes:
            yield from self._overriding(tree, "rwnd", received, f"no flow ends at {name}")
        for recipe in one.settings:
            if one.settings[recipe] == other.settings.get(recipe):
                continue
            if recipe == "tcp" and not use.tcp:
                yield Reason(f"no TCP flow begins or ends at {name}")
            else:
                yield Reason(_same_values(one.settings[recipe], other.settings.get(recipe, {})))

    def _overriding(self, tree: Tree, key: str, flows: Sequence[FlowPlan], without: str) -> Iterator[Reason]:
        """Yield why each flow ignores a setting of its host: the flow has its own value, or is not TCP."""
        if not flows:
            yield Reason(without)
        for flow in flows:
            if not self.effective.is_tcp(flow):
                text, at = f"flow '{flow.group}' is not TCP", "generator"
            else:
                text, at = f"flow '{flow.group}' has its own {key}", key
            yield Reason(text, _at(tree, flow, at))

    def _reasons_of_path(
        self, tree: Tree, one: PathPlan, other: PathPlan, flows: Sequence[FlowPlan]
    ) -> Iterator[Reason]:
        if one.device is not None:
            if one != other:
                what = f"the adapters of link '{one.link}', which are not in a lab"
                yield Reason(f"samovar cannot configure {what}")
            return
        for mine, its in ((one.down, other.down), (one.up, other.up)):
            if (mine.buffer_packets, mine.buffer_bytes) != (its.buffer_packets, its.buffer_bytes):
                buffer = self.effective.buffer(mine, self.effective.testbed.hosts[one.router].system)
                unit, size = buffer or ("", 0)
                yield Reason(f"{mine.aqm} counts {unit}, and both buffers are {size:,} {unit}")
            if mine.aqm_parameters != its.aqm_parameters:
                yield Reason(_same_values(mine.aqm_parameters, its.aqm_parameters))
            if mine.delay_s != its.delay_s:
                yield from _class_reasons(tree, ("rtt", "delay"), one, flows)
            if mine.loss != its.loss:
                yield from _class_reasons(tree, ("loss",), one, flows)


def _column(
    column: Sequence[Component], beside: Sequence[T], effective: Callable[[Component, T], Hashable]
) -> Sequence[Hashable]:
    """Return the effective value of each entry of a column, given the entry of `beside` in the same row."""
    pairs = list(zip(column, beside, strict=True))
    found = {pair: effective(*pair) for pair in set(pairs)}
    return [found[pair] for pair in pairs]


def _equal_levels(part: Treatments, keys: Sequence[Hashable], factor: int) -> Iterator[EqualLevels]:
    """Yield the sets of levels of a factor that give equal trials if no other factor changes."""
    combinations: dict[Row, dict[Hashable, list[tuple[int, int]]]] = {}
    for number, (row, key) in enumerate(zip(part.levels, keys, strict=True)):
        others = row[:factor] + row[factor + 1 :]
        combinations.setdefault(others, {}).setdefault(key, []).append((row[factor], number))
    found: dict[Row, EqualLevels] = {}
    for by_key in combinations.values():
        for group in (one for one in by_key.values() if len(one) > 1):
            levels = tuple(sorted(level for level, _ in group))
            first = found.get(levels, EqualLevels(levels, 0, 0, (group[0][1], group[1][1])))
            found[levels] = first._replace(combinations=first.combinations + 1)
    present = [{level for group in one.values() for level, _ in group} for one in combinations.values()]
    for equal in found.values():
        yield equal._replace(of=sum(levels.issuperset(equal.levels) for levels in present))


def _same_values(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    name = next(name for name in {**one, **other} if one.get(name) != other.get(name))
    return f"{name} {one.get(name)} is the same as {other.get(name)}"


def _class_reasons(
    tree: Tree, keys: Sequence[str], path: PathPlan, flows: Sequence[FlowPlan]
) -> Iterator[Reason]:
    """Yield a reason for each flow whose traffic class overrides one of these keys of the path."""
    classes = yaml_tree.node_at(tree, "path", "classes")
    for flow in flows:
        own = class_of(path, flow)
        if own is None or not isinstance(classes, yaml_tree.Seq):
            continue
        entry = classes[path.classes.index(own)]
        name = yaml_tree.node_at(entry, "name") or yaml_tree.node_at(entry, "flow")
        for key in keys:
            node = yaml_tree.node_at(tree, "factors", f"path.classes.{name}.{key}") or yaml_tree.node_at(
                entry, key
            )
            if node is not None:
                text = f"flow '{flow.group}' has its {key} from a traffic class of the path"
                yield Reason(text, node.position)


def _at(tree: Tree, flow: FlowPlan, key: str) -> yaml_tree.Position | None:
    """Return where a part sets a key of a flow: in the factor that sets it, or else in `traffic`."""
    factors = yaml_tree.node_at(tree, "factors")
    for name, node in factors.items() if isinstance(factors, yaml_tree.Map) else ():
        if name == f"traffic.{flow.group}.{key}":
            return node.position
    traffic = yaml_tree.node_at(tree, "traffic")
    for entry in traffic if isinstance(traffic, yaml_tree.Seq) else ():
        if yaml_tree.node_at(entry, "flow") == flow.group:
            return _position(yaml_tree.node_at(entry, key) or entry)
    return None


def _position(node: yaml_tree.Node | None) -> yaml_tree.Position | None:
    return node.position if node is not None else None
