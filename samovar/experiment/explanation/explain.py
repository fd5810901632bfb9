"""Where the values of an experiment come from: what each layer says of a key, the one that wins first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from samovar.errors import DefinitionError, Problem
from samovar.experiment.explanation.explain_device import device_keys, device_says
from samovar.experiment.explanation.explain_keys import (
    ENTRIES,
    GROUPS,
    JUDGED,
    NESTED,
    OF_EXPERIMENT,
    OF_GROUP,
    Subject,
    default_of,
    default_of_judging,
    known_keys,
    steps_of,
    targets_of,
)
from samovar.experiment.explanation.explain_places import flow_text
from samovar.experiment.explanation.explain_tree import is_taken_away, keys_inside, nodes_at
from samovar.experiment.expressions import PerHost
from samovar.experiment.keys import SETTINGS, Factor, texts_of
from samovar.experiment.layers.merge import MAIN
from samovar.experiment.layers.precedence import HostSetting, LayerValue, resolve_settings
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import Map, Node

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
    setting is explained for the hosts of which the same is said, which `at` names. What holds other keys is
    explained by those that are said, `inside`.
    """

    subject: str
    chain: tuple[Said, ...]
    levels: tuple[str, ...] = ()
    taken_away: bool = False
    came_to: tuple[tuple[str, str], ...] = ()
    hosts: tuple[str, ...] = ()
    at: str = ""
    inside: tuple[tuple[str, Explanation], ...] = ()


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
    known = {name: known_keys(subject, name) for name in parts if name in (given or part or name)}
    having = [name for name, keys in known.items() if rest in keys]
    of_whole = rest in (*OF_EXPERIMENT, *JUDGED)
    if of_whole and not given and not (part and having):
        return [_of_judging(subject, rest) if rest in JUDGED else _of_experiment(subject, rest)]
    if not having:
        every = {*(() if given else (*OF_EXPERIMENT, *JUDGED))}.union(*known.values())
        raise DefinitionError([Problem(subject.experiment.name, 0, 0, unknown("key", rest, every))])
    places = (_Where(subject, name, rest, levels) for name in having)
    return [one for where in places for one in _in_part(where)]


def _split_part(subject: Subject, key: str) -> tuple[str, str]:
    """Return the part that a key names, if any, and the key as it is known: settings and factors by name."""
    name = ""
    if key.startswith("parts."):
        name, _, key = key.removeprefix("parts.").partition(".")
        if name not in subject.experiment.parts:
            message = unknown("part", name, subject.experiment.parts)
            raise DefinitionError([Problem(subject.experiment.name, 0, 0, message)])
    return name, key.removeprefix("settings.").removeprefix("factors.")


def _in_part(where: _Where) -> Iterator[Explanation]:
    if where.key in GROUPS:
        keys = _names_in(where)
        yield from (one for key in keys for one in _in_part(replace(where, key=key)))
        if not keys:
            yield Explanation(where.title, ())
    elif _is_setting(where):
        yield from _of_hosts(where)
    else:
        yield _of_key(where)


def _names_in(where: _Where) -> list[str]:
    """Name the factors of a part, or the settings that anybody but recipes says anything of."""
    subject = where.subject
    if where.key == "factors":
        return list(subject.experiment.parts[where.part].factors)
    settings = resolve_settings(subject.experiment, where.part, subject.testbed, subject.config)
    return sorted({key for own in settings.values() for key in own})


def _of_key(where: _Where) -> Explanation:
    below = _of_tree(where)
    varied = _of_factor(where)
    keys = () if varied else dict.fromkeys(_keys_in(where))
    inside = tuple((key, _of_key(replace(where, key=f"{where.key}.{key}"))) for key in keys)
    chain = below.chain[1:] if inside else (*varied, *_over_device(where, below.chain))
    taken_away = below.taken_away and not varied
    return Explanation(where.title, _once(chain), _level_texts(where), taken_away, inside=inside)


def _over_device(where: _Where, chain: tuple[Said, ...]) -> tuple[Said, ...]:
    """Return what is said of a key, over what the testbed says of the device that is its bottleneck."""
    owner, _, key = where.key.partition(".")
    said = tuple(Said(*one) for one in device_says(where.subject.testbed, key)) if owner == "path" else ()
    return (*(one for one in chain if one.layer != "default"), *said) if said else chain


def _keys_in(where: _Where) -> Iterator[str]:
    """Yield the keys within a key that anybody says: the experiment, its testbed's device, its factors."""
    owner = f"{where.key}."
    targets = [target for _, target in targets_of(where.subject.experiment.parts[where.part])]
    varied = [target.removeprefix(owner) for target in targets if target.startswith(owner)]
    said = keys_inside(where.tree, steps_of(where.key))
    yield from (key for key in said if key.rpartition(".")[0] not in varied)  # a factor hides both ways
    yield from device_keys(where.subject.testbed) if where.key == "path" else ()
    yield from varied


def _once(chain: Iterable[Said]) -> tuple[Said, ...]:
    """Return what is said without what the same place says again, of parts what it says at the top."""
    return tuple(dict.fromkeys(chain))


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
    value = level.texts.get(key) if level else None
    return label if value is None else "-".join(texts_of(value))


def _of_factor(where: _Where, host: str = "") -> tuple[Said, ...]:
    """Return what a factor says: all its levels, or in a trial the one that it has there."""
    factor = where.factor
    if factor is None:
        return ()
    written = _chain(where.subject, nodes_at(_at(where.tree, "factors"), (factor.name,)))
    if where.levels is None:
        return written
    label = where.levels.get(factor.name, "")
    text: str | None = _value(factor, label, where.key)
    level = factor.level(label)
    value = level.texts.get(where.key) if level else None
    if host and isinstance(value, PerHost):
        text = where.subject.testbed.value_at(host, value.hosts)
    elif host and isinstance(value, str):
        text = value
    place = written[0].place if written else ""
    return () if text is None else (Said(text, f"level of factor {factor.name}", place),)


def _of_hosts(where: _Where) -> Iterator[Explanation]:
    """Explain a setting at every host; hosts of which the same is said are named together."""
    subject = where.subject
    settings = resolve_settings(
        subject.experiment, where.part, subject.testbed, subject.config, subject.catalogue
    )
    hosts_by_chain: dict[tuple[Said, ...], list[str]] = {}
    for host, own in settings.items():
        below = _setting_chain(subject, own.get(where.key))
        hosts_by_chain.setdefault((*_of_factor(where, host), *below), []).append(host)
    for chain, hosts in hosts_by_chain.items():
        at = ", ".join(hosts) if len(hosts_by_chain) > 1 else "every host"
        yield Explanation(where.title, _once(chain), _level_texts(where), hosts=tuple(hosts), at=f" at {at}")


def _setting_chain(subject: Subject, setting: HostSetting | None) -> tuple[Said, ...]:
    layers = setting.layers if setting else ()
    return tuple(Said(one.text, _layer(subject, one), one.place) for one in layers)


def _layer(subject: Subject, given: LayerValue) -> str:
    return subject.names.of_place(given.place) if given.layer == "experiment" else given.layer


def _of_tree(where: _Where) -> Explanation:
    """Explain what a file says; the starts of random arrivals are what their flow's arrivals say first."""
    subject = where.subject
    found = _explained(
        subject,
        where.title,
        where.tree,
        where.key,
        default_of(subject, where.key, subject.experiment.parts[where.part]),
    )
    steps = steps_of(where.key)
    drawn = nodes_at(where.tree, (*steps[:-1], "arrivals")) if steps[-1] == "start" else []
    return replace(found, chain=(*_chain(subject, drawn), *found.chain))


def _of_experiment(subject: Subject, key: str) -> Explanation:
    tree = subject.experiment.complete
    found = _explained(subject, key, tree, key, default_of(subject, key, None))
    if key == "testbed" and found.chain and found.chain[0].value != subject.testbed.name:
        asked = Said(subject.testbed.name, "--testbed", f"--testbed {subject.testbed.name}")
        return replace(found, chain=(asked, *found.chain))
    inside = ((own, _of_experiment(subject, f"{key}.{own}")) for own in OF_GROUP.get(key, ()))
    return replace(found, inside=tuple(inside), chain=() if key in OF_GROUP else found.chain)


def _of_judging(subject: Subject, key: str) -> Explanation:
    """Explain what trials are judged by: the experiment's word, then config.yaml's, then the default."""
    if key in OF_GROUP:
        inside = tuple((own, _of_judging(subject, f"{key}.{own}")) for own in OF_GROUP[key])
        return Explanation(key, (), inside=inside)
    steps = tuple(key.split("."))
    own = _chain(subject, nodes_at(subject.experiment.complete, steps))
    config = nodes_at(subject.config.written if subject.config else None, steps)
    general = tuple(Said(flow_text(node), "config", str(node.position)) for node in config)
    default = default_of_judging(key)
    last = (Said(default, "default", ""),) if default is not None else ()
    return Explanation(key, (*own, *general, *last))


def _explained(subject: Subject, title: str, tree: Node | None, key: str, default: str | None) -> Explanation:
    steps = steps_of(key)
    chain = _chain(subject, nodes_at(tree, steps))
    taken_away = bool(chain) and is_taken_away(tree, steps)
    if default is not None and not taken_away:
        chain = (*chain, Said(default, "default", ""))
    return Explanation(title, chain, (), taken_away)


def _chain(subject: Subject, nodes: Sequence[Node]) -> tuple[Said, ...]:
    return tuple(Said(flow_text(node), subject.names.of(node.position), str(node.position)) for node in nodes)


def _at(tree: Node | None, *keys: str) -> Node | None:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Map) else None
    return tree
