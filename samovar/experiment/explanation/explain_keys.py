"""What of an experiment can be explained: its keys, and what holds where nobody says anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from samovar.experiment.checks.check_settings import setting_parameters
from samovar.experiment.explanation.explain_places import LayerNames
from samovar.experiment.explanation.explain_tree import keys_inside
from samovar.experiment.keys import (
    DEVICE_PARAMETERS,
    ROUTER_ONLY,
    SETTINGS,
    Arrivals,
    Config,
    Experiment,
    Factor,
    Flow,
    Logger,
    NetworkPath,
    Order,
    Part,
    Stop,
    Strict,
    Testbed,
    Thresholds,
    own_keys,
    settable,
    written_default,
)
from samovar.experiment.layers.merge import LISTED
from samovar.experiment.layers.precedence import resolve_settings
from samovar.experiment.recipe_interface import ParameterInfo, RecipeCatalogue

GROUPS = ("settings", "factors")
"""Keys of a part of which each key within is explained by itself."""
OF_PART = (
    *("title", "duration", "replicates", "traffic", "captures", "loggers", "path", "exclude", "include"),
    *("stop", *GROUPS),
)
OF_GROUP: Mapping[str, tuple[str, ...]] = {
    "order": tuple(Order.model_fields),
    "verdict": tuple(info.alias or name for name, info in Thresholds.model_fields.items()),
}
OF_EXPERIMENT = (
    *("testbed", "title", "source", "description", "figures", "tables", "expect", "order"),
    *(f"order.{key}" for key in OF_GROUP["order"]),
)
JUDGED = ("calibrate", "retries", "verdict", *(f"verdict.{key}" for key in OF_GROUP["verdict"]))
"""By what trials are judged: an experiment may say it, or config.yaml for all of them."""
NESTED: Mapping[str, type[Strict]] = {"path": NetworkPath, "stop": Stop, "order": Order}
ENTRIES: Mapping[str, tuple[type[Strict], str]] = {
    "traffic": (Flow, "generator"),
    "loggers": (Logger, "logger"),
}


@dataclass(frozen=True)
class Subject:
    """An experiment with its profile and overrides applied, and all that its values can come from."""

    experiment: Experiment
    testbed: Testbed
    catalogue: RecipeCatalogue
    config: Config | None = None
    names: LayerNames = field(default_factory=LayerNames)


def steps_of(key: str) -> tuple[str, ...]:
    """Return the keys that lead to a value: labels of flows and names of settings keep their dots."""
    first, _, rest = key.partition(".")
    if first in LISTED and "." in rest:
        label, _, own = rest.rpartition(".")
        name, dot, last = label.rpartition(".")
        return (first, name, last, own) if dot and last == "arrivals" else (first, label, own)
    if first in LISTED and rest:
        return (first, rest)
    return tuple(key.split(".")) if first in NESTED else (key,)


def known_keys(subject: Subject, name: str) -> set[str]:
    """Return every key of a part that can be explained."""
    part = subject.experiment.parts[name]
    found = {*OF_PART, *part.factors, *SETTINGS, "stop.after", "stop.when"}
    found |= {target for _, target in targets_of(part)}
    having = (flow for flow in part.traffic if flow.arrivals is not None)
    found |= {f"traffic.{flow.label}.arrivals.{key}" for flow in having for key in own_keys(Arrivals)}
    for owner, (model, known) in _owners(subject, part).items():
        found |= {owner, *(f"{owner}.{key}" for key in (*own_keys(model), *known))}
    found |= {f"path.{key}" for key in _ways_said(subject, name)}
    if subject.testbed.device is not None:
        found -= {f"path.{key}" for key in ROUTER_ONLY}
    settings = resolve_settings(subject.experiment, name, subject.testbed, subject.config)
    for host, machine in subject.testbed.hosts.items():
        found |= {*setting_parameters(subject.catalogue, machine.system), *settings[host]}
    return found


def _ways_said(subject: Subject, part: str) -> Iterator[str]:
    """Yield the keys of the path that stand for one direction, where no factor sets both."""
    tree = subject.experiment.complete
    varied = {target for _, target in targets_of(subject.experiment.parts[part])}
    for key in keys_inside(tree, ("parts", part, "path")):
        if "." in key and f"path.{key.partition('.')[0]}" not in varied:
            yield key


def targets_of(part: Part) -> Iterator[tuple[Factor, str]]:
    """Yield each factor with each thing that its levels set."""
    for factor in part.factors.values():
        found = {target for level in factor.levels for target in level.texts}
        yield from ((factor, target) for target in sorted(found))


def default_of(subject: Subject, key: str, part: Part | None) -> str | None:
    """Return what holds when nobody says anything, as text; None when then nothing does."""
    steps = steps_of(key)
    owner = ".".join(steps[:-1])
    model: type[Strict] = NESTED.get(owner, Part if part is not None else Experiment)
    known: Mapping[str, ParameterInfo] = {}
    if part is not None:
        model, known = _owners(subject, part).get(owner, (model, known))
    if steps[-1] in known:
        text = getattr(known[steps[-1]], "default", None)
        return None if text is None else str(text)
    return _field_default(model, steps[-1])


def default_of_judging(key: str) -> str | None:
    """Return what a trial is judged by when neither an experiment nor config.yaml says anything, as text."""
    owner, _, own = key.rpartition(".")
    return _field_default(Thresholds if owner else Config, own)


def _owners(subject: Subject, part: Part) -> dict[str, tuple[type[Strict], Mapping[str, ParameterInfo]]]:
    """Return what stands before the last dot of a key, with its own keys and its recipe's parameters."""
    found: dict[str, tuple[type[Strict], Mapping[str, ParameterInfo]]] = {}
    bottleneck = subject.testbed.bottleneck
    if bottleneck is not None:
        system = subject.testbed.hosts[bottleneck.router].system
        aqm = part.path.aqm if part.path is not None else "pfifo"
        found["path"] = (NetworkPath, settable(subject.catalogue, "aqm", str(aqm), system))
    elif subject.testbed.device is not None:
        found["path"] = (NetworkPath, DEVICE_PARAMETERS)
    for group, label, recipe, at in _recipes(part):
        model, kind = ENTRIES[group]
        host = subject.testbed.host_of(at) or subject.testbed.host_of(at.removesuffix("s"))
        known = settable(subject.catalogue, kind, recipe, subject.testbed.hosts[host].system) if host else {}
        found[f"{group}.{label}"] = (model, known)
    return found


def _recipes(part: Part) -> Sequence[tuple[str, str, str, str]]:
    flows = [("traffic", flow.label, flow.generator, flow.from_end) for flow in part.traffic]
    return [*flows, *(("loggers", one.logger, one.logger, one.at[0]) for one in part.loggers)]


def _field_default(model: type[Strict], key: str) -> str | None:
    fields = {info.alias or name: info for name, info in model.model_fields.items()}
    return written_default(fields[key]) if key in fields else None
