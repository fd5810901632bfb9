"""Targets of levels: everything that the level of a factor may set, such as path.rate or cc, with its type.

Each parameter of a setting recipe is a target, and so is each key that factor_keys.py declares with VARIES.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from samovar.experiment.keys import value_types as types
from samovar.experiment.keys.factor_keys import (
    Arrivals,
    Flow,
    Logger,
    NetworkPath,
    PathClass,
    PlainFactors,
    Stop,
)
from samovar.experiment.keys.key_table import Key, Strict, WithParameters, keys_of
from samovar.experiment.keys.value_types import Parser
from samovar.experiment.values import PerHost, Written
from samovar.units import UnitError

if TYPE_CHECKING:
    from samovar.experiment.keys.experiment_file import Part

NOT_OF_HOSTS = ("path", "traffic", "loggers", "stop")
"""First words of the targets that are not settings of hosts."""


def _parameter(text: str) -> str:
    if not text:
        raise UnitError("is empty; expected a value")
    return text


PARAMETER = replace(types.WORD, name="parameter", parse=_parameter)
"""The type of recipe parameters while the recipe is unknown. The recipe's header has their types."""
PLAIN_FACTORS = tuple(keys_of(PlainFactors))
SETTINGS: Mapping[str, Parser] = {
    name: key.type.parse for name, key in keys_of(PlainFactors).items() if key.type and name != "duration"
}
"""Settings that are keys themselves. Each is also the name of the setting recipe that applies it."""
PATH_FIELDS, CLASS_FIELDS, FLOW_FIELDS, ARRIVALS_FIELDS, STOP_FIELDS = (
    {name: key.attribute for name, key in keys_of(model).items() if key.varies}
    for model in (NetworkPath, PathClass, Flow, Arrivals, Stop)
)
"""The attributes that hold the keys that levels may set, by key."""


def varied_keys(owner: str) -> Mapping[str, Key]:
    """Return the keys that levels may set below an owner such as path, traffic.bulk or '' (plain factors)."""
    model = model_of(owner)
    return {} if model is None else {name: key for name, key in keys_of(model).items() if key.varies}


def model_of(owner: str) -> type[Strict] | None:
    """Return the model of an owner (a target without its last word); None if it has no model."""
    group, _, name = owner.partition(".")
    if not name:
        known: Mapping[str, type[Strict]] = {"": PlainFactors, "path": NetworkPath, "stop": Stop}
        return known.get(group)
    if group == "path":
        return PathClass if name.startswith("classes.") else None
    if group == "traffic":
        return Arrivals if name.endswith(".arrivals") else Flow
    return Logger if group == "loggers" else None


@cache
def type_of(target: str) -> types.ValueType | None:
    """Return the type of a target's values; None when no key or parameter has this name."""
    owner, _, key = target.rpartition(".")
    model = model_of(owner)
    if model is None:
        is_setting = bool(key) and "." not in owner and owner not in ("", *NOT_OF_HOSTS)
        return PARAMETER.of(types.PER_HOST) if is_setting else None
    known = keys_of(model)
    if key in known:
        return known[key].type if known[key].varies else None
    return PARAMETER if key and issubclass(model, WithParameters) else None


def is_target(target: str, part: Part) -> bool:
    """Return whether a level may set a target: the key is known, and its flow, logger or class exists."""
    owner = target.rpartition(".")[0]
    is_named = owner.startswith(("traffic.", "loggers.", "path.classes."))
    return type_of(target) is not None and (not is_named or owner in owners_of(part))


def owners_of(part: Part) -> Iterator[str]:
    """Yield the owners of a part's targets: "" (plain), path, classes, stop, flows, arrivals, loggers."""
    yield from ("", "path", "stop")
    for one in part.path.classes if part.path else ():
        if one.label is not None:
            yield f"path.classes.{one.label}"
    for flow in part.traffic:
        yield f"traffic.{flow.label}"
        if flow.arrivals is not None:
            yield f"traffic.{flow.label}.arrivals"
    yield from (f"loggers.{logger.logger}" for logger in part.loggers)


def read_target(target: str, written: Written | PerHost[str]) -> object:
    """Return the value of a level or setting: typed, a Formula, Distribution, Directional or PerHost.

    Raises ValueError, or pydantic's ValidationError with the places of errors.
    """
    found = type_of(target)
    if found is None:
        raise UnitError(f"unknown factor {target}")
    return found.read(dict(written.hosts) if isinstance(written, PerHost) else written)
