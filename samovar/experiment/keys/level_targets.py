"""Targets: the keys and parameters that levels of factors may set, such as path.rate or cc, with their types.

A target is a key that factor_keys.py declares with VARIES, or a parameter of a recipe. Its last word is the
key, and the words before are its owner: path, traffic.bulk, loggers.queue; cc and duration have the owner "".
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
"""A dotted target that begins with one of these words is not a setting of hosts."""


def _parameter(text: str) -> str:
    if not text:
        raise UnitError("is empty; expected a value")
    return text


PARAMETER = replace(types.WORD, name="parameter", parse=_parameter)
"""The type of all recipe parameters here. Their real types, in the recipes' headers, are checked later."""
PLAIN_FACTORS = tuple(keys_of(PlainFactors))
SETTINGS: Mapping[str, Parser] = {
    name: key.type.parse for name, key in keys_of(PlainFactors).items() if key.type and name != "duration"
}
"""Parsers of cc, rwnd, mtu and txd. Each is also the name of the setting recipe that applies it."""


@cache
def varied_keys(owner: str) -> Mapping[str, Key]:
    """Return the keys of an owner that levels may set.

    For path, these are rate, rtt and so on; for the owner "", they are cc, rwnd and so on.
    """
    model = model_of(owner)
    return {} if model is None else {name: key for name, key in keys_of(model).items() if key.varies}


def model_of(owner: str) -> type[Strict] | None:
    """Return the model that declares the keys of an owner; None for a setting recipe."""
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
    """Return the type of a target's values, or None if the name cannot be a target."""
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
    """Yield the owners of a part's targets: "", path, stop, path.classes.X, traffic.X, loggers.X."""
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
    """Convert the value of a level or setting from text to the type of its target.

    Values may be Formula, Distribution, Directional or PerHost. If the text cannot be read, return the
    ValueError. If this is pydantic's ValidationError, a subclass, it tells where in the value each error is.
    """
    found = type_of(target)
    if found is None:
        return UnitError(f"unknown factor {target}")
    try:
        return found.read(dict(written.hosts) if isinstance(written, PerHost) else written)
    except ValueError as error:
        return error
