"""Where the values of an experiment come from: what each layer says of a key, the one that wins first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from samovar.definition.explain_keys import (
    ENTRIES,
    JUDGED,
    NESTED,
    OF_EXPERIMENT,
    Subject,
    default_of,
    default_of_judging,
    known_keys,
    steps_of,
    targets_of,
)
from samovar.definition.explain_places import flow_text
from samovar.definition.factor_levels import Factor, texts_of
from samovar.definition.factors import SETTINGS
from samovar.definition.layers import MAIN
from samovar.definition.nearest import unknown
from samovar.definition.origins import Origin, ResolvedSetting, layers_for, level_of, resolve_setting
from samovar.definition.values import Directional
from samovar.definition.yamltext import Map, Node, Seq
from samovar.errors import DefinitionError, Problem

Levels = Mapping[str, str]


@dataclass(frozen=True)
class Said:
    """What one layer says: its value as written, the layer, and the place in its file."""

    value: str
    layer: str
    place: str


@dataclass(frozen=True)
class Explanation:
    """One value with all that was said of it; the first of `chain` holds unless `taken_away`.

    A key that varies has the levels of its factor; in a trial, `came_to` says what it is there and where. A
    setting is explained for the hosts of which the same is said.
    """

    subject: str
    chain: tuple[Said, ...]
    levels: tuple[str, ...] = ()
    taken_away: bool = False
    came_to: tuple[tuple[str, str], ...] = ()
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Where:
    """A key of a part, in a trial of it when its levels are given."""

    subject: Subject
    part: str
    key: str
    levels: Levels | None

    @property
    def title(self) -> str:
        return self.key if list(self.subject.experiment.parts) == [MAIN] else f"{self.part}: {self.key}"

    @property
    def tree(self) -> Node | None:
        return _at(self.subject.experiment.complete, "parts", self.part)

    @property
    def factor(self) -> Factor | None:
        """The factor that is the key, or whose levels set it."""
        part = self.subject.experiment.parts[self.part]
        named = part.factors.get(self.key)
        return named or next((one for one, target in targets_of(part) if target == self.key), None)


def explain(subject: Subject, key: str, part: str = "", levels: Levels | None = None) -> list[Explanation]:
    """Explain a key in every part that has it, or in one; `levels` are those of a trial of that part.

    Raises DefinitionError for a key that the experiment does not have, naming the nearest that it has.
    """
    parts = subject.experiment.parts
    given, rest = _split_part(subject, key)
    wanted = given or part
    if not wanted and rest in OF_EXPERIMENT:
        return [_of_experiment(subject, rest)]
    if not wanted and rest in JUDGED:
        return [_of_judging(subject, rest)]
    known = {name: known_keys(subject, name) for name in parts if name in (wanted or name)}
    having = [name for name, keys in known.items() if rest in keys]
    if not having:
        every = {*OF_EXPERIMENT, *JUDGED}.union(*known.values())
        raise DefinitionError([Problem(subject.experiment.name, 0, 0, unknown("key", rest, every))])
    places = (_Where(subject, name, rest, levels) for name in having)
    return [one for where in places for one in _in_part(where)]


def _split_part(subject: Subject, key: str) -> tuple[str, str]:
    if not key.startswith("parts."):
        return "", key
    name, _, rest = key.removeprefix("parts.").partition(".")
    if name not in subject.experiment.parts:
        message = unknown("part", name, subject.experiment.parts)
        raise DefinitionError([Problem(subject.experiment.name, 0, 0, message)])
    return name, rest


def _in_part(where: _Where) -> Iterator[Explanation]:
    if _is_setting(where):
        yield from _of_hosts(where)
        return
    below = _of_tree(where)
    varied = _of_factor(where)
    taken_away = below.taken_away and not varied
    yield Explanation(where.title, (*varied, *below.chain), _level_texts(where), taken_away)


def _is_setting(where: _Where) -> bool:
    owner = where.key.partition(".")[0]
    return where.key in SETTINGS or ("." in where.key and owner not in (*NESTED, *ENTRIES))


def _level_texts(where: _Where) -> tuple[str, ...]:
    """Return the levels of a factor, each with what it sets when that says more; none for a trial."""
    factor = where.factor
    if factor is None or where.levels is not None:
        return ()
    texts = ((level.label, _value(factor, level.label, where.key)) for level in factor.levels)
    return tuple(label if value == label else f"{label} ({value})" for label, value in texts)


def _value(factor: Factor, label: str, key: str) -> str:
    level = factor.level(label)
    value = level.values.get(key) if level else None
    return label if value is None else "-".join(texts_of(value))


def _of_factor(where: _Where, host: str = "") -> tuple[Said, ...]:
    """Return what a factor says: all its levels, or in a trial the one that it has there."""
    factor = where.factor
    if factor is None:
        return ()
    written = _chain(where.subject, _nodes(_at(where.tree, "factors"), (factor.name,)))
    if where.levels is None:
        return written
    label = where.levels.get(factor.name, "")
    text: str | None = _value(factor, label, where.key)
    level = factor.level(label)
    value = level.values.get(where.key) if level else None
    if host and value is not None and not isinstance(value, Directional):
        given = level_of(factor.name, value, host, where.subject.testbed)
        text = given.value if given else None
    place = written[0].place if written else ""
    return () if text is None else (Said(text, f"level of factor {factor.name}", place),)


def _of_hosts(where: _Where) -> Iterator[Explanation]:
    """Explain a setting at every host; hosts of which the same is said are named together."""
    subject = where.subject
    layers = layers_for(subject.experiment, where.part, subject.testbed, subject.config, subject.catalogue)
    hosts_by_chain: dict[tuple[Said, ...], list[str]] = {}
    for host in subject.testbed.hosts:
        below = _setting_chain(subject, resolve_setting(where.key, host, layers))
        hosts_by_chain.setdefault((*_of_factor(where, host), *below), []).append(host)
    for chain, hosts in hosts_by_chain.items():
        at = ", ".join(hosts) if len(hosts_by_chain) > 1 else "every host"
        yield Explanation(f"{where.title} at {at}", chain, _level_texts(where), hosts=tuple(hosts))


def _setting_chain(subject: Subject, setting: ResolvedSetting | None) -> tuple[Said, ...]:
    if setting is None:
        return ()
    every = ((setting.value, setting.origin), *((one.value, one.origin) for one in setting.hides))
    return tuple(Said(value, _layer(subject, origin), origin.place) for value, origin in every)


def _layer(subject: Subject, origin: Origin) -> str:
    return subject.names.of_place(origin.place) if origin.layer == "experiment" else origin.layer


def _of_tree(where: _Where) -> Explanation:
    subject = where.subject
    return _explained(
        subject,
        where.title,
        where.tree,
        where.key,
        default_of(subject, where.key, subject.experiment.parts[where.part]),
    )


def _of_experiment(subject: Subject, key: str) -> Explanation:
    return _explained(subject, key, subject.experiment.complete, key, default_of(subject, key, None))


def _of_judging(subject: Subject, key: str) -> Explanation:
    """Explain what trials are judged by: the experiment's word, then config.yaml's, then the default."""
    steps = tuple(key.split("."))
    own = _chain(subject, _nodes(subject.experiment.complete, steps))
    config = _nodes(subject.config.written if subject.config else None, steps)
    general = tuple(Said(flow_text(node), "config", str(node.mark)) for node in config)
    default = default_of_judging(key)
    last = (Said(default, "default", ""),) if default is not None else ()
    return Explanation(key, (*own, *general, *last))


def _explained(subject: Subject, title: str, tree: Node | None, key: str, default: str | None) -> Explanation:
    steps = steps_of(key)
    chain = _chain(subject, _nodes(tree, steps))
    holder = _holder(tree, steps[:-1])
    taken_away = bool(chain) and holder is not None and steps[-1] not in holder
    if default is not None and not taken_away:
        chain = (*chain, Said(default, "default", ""))
    return Explanation(title, chain, (), taken_away)


def _nodes(node: Node | None, steps: Sequence[str]) -> list[Node]:
    """Return what every layer says at the end of some steps, the strongest first."""
    if node is None:
        return []
    if not steps:
        return [node]
    if isinstance(node, Seq):
        return [found for one in _named(node, steps[0]) for found in _nodes(one, steps[1:])]
    if not isinstance(node, Map):
        return []
    here = [node[steps[0]]] if steps[0] in node else []
    return [found for one in (*here, *node.hidden.get(steps[0], ())) for found in _nodes(one, steps[1:])]


def _holder(node: Node | None, steps: Sequence[str]) -> Map | None:
    for step in steps:
        if isinstance(node, Seq):
            node = next(iter(_named(node, step)), None)
        else:
            node = node.get(step) if isinstance(node, Map) else None
    return node if isinstance(node, Map) else None


def _named(entries: Seq, name: str) -> list[Map]:
    maps = [one for one in entries if isinstance(one, Map)]
    return [one for one in maps if name in (one.get("flow"), one.get("logger"))]


def _chain(subject: Subject, nodes: Sequence[Node]) -> tuple[Said, ...]:
    return tuple(Said(flow_text(node), subject.names.of(node.mark), str(node.mark)) for node in nodes)


def _at(tree: Node | None, *keys: str) -> Node | None:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Map) else None
    return tree
