"""Factors: their levels and ranges of levels, the targets that levels set, and treatments in `include`.

A target is a key that factor_keys.py declares with VARIES, or a parameter of a recipe. The last word of its
name is the key. The words before the key are the target's owner, such as path, traffic.bulk or
loggers.queue; the targets cc and duration have the owner "".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo

from samovar import units
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
from samovar.experiment.keys.key_table import Key, Strict, WithParameters, entry, keys_of
from samovar.experiment.keys.value_types import LIST, PER_HOST, WORD, Parser, Places, Word
from samovar.experiment.values import DISTRIBUTIONS, PerHost, Written, read_each
from samovar.experiment.yaml_tree import plain
from samovar.units import UnitError

if TYPE_CHECKING:
    from samovar.experiment.keys.experiment_file import Part

A_LEVEL = "expected a level such as cdg, {down: 100Mbit, up: 40Mbit} or {sender: cubic, sender2: cdg}"
MOST_LEVELS = 1000
MOST_DECIMALS = 18  # of the number in a quantity, as in units.py
RANGE_KEYS = ("from", "to", "step")
A_RANGE = "{from: 50KB, to: 1MB, step: 50KB}"
TABLE_COLUMNS = (
    *("trial", "id", "part", "replicate", "block", "order", "verdict", "standing", "overhead_s", "campaign"),
    *("flow", "metric", "quantity", "unit", "value", "note", "factor", "level", "curve", "share"),
    *("median", "mean", "lo", "hi", "n", "confidence", "valid", "suspect", "min", "max", "p25", "p75", "p90"),
    *("t_s", "t_ns", "low", "mid", "high", "source", "rtt_ms", "jitter_ms"),
    *("cycle", "start_s", "before_s", "end_s", "cwnd_packets", "cause", "first", "counts"),
    *("episode", "first_s", "last_s", "frames", "drop_s", "drops", "pause_to_drop_s"),
)
"""Columns that tables of results have besides the factors' columns. Factors must have other names."""
NOT_OF_HOSTS = ("path", "traffic", "loggers", "stop")
"""A dotted target that begins with one of these words is not a setting of hosts."""


def _parameter(text: str) -> str:
    if not text:
        raise UnitError("is empty; expected a value")
    return text


PARAMETER = replace(WORD, name="parameter", parse=_parameter)
"""The type of all recipe parameters here. Their real types, in the recipes' headers, are checked later."""
PLAIN_FACTORS = tuple(keys_of(PlainFactors))
SETTINGS: Mapping[str, Parser] = {
    name: key.type.parse for name, key in keys_of(PlainFactors).items() if key.type and name != "duration"
}
"""Parsers of cc, rwnd, mtu and txd. Each of these settings is applied by the recipe of the same name."""
APPLIED_BY_DEFAULT = ("air", "buffers", "offloads", "tcp")
"""Setting recipes that run even if none of their parameters is set: `offloads` at every host, `buffers` and
`tcp` at the ends of flows, `air` in a lab's WLAN. Other recipes with parameters run only where one is set."""


@cache
def varied_keys(owner: str) -> Mapping[str, Key]:
    """Return the keys of an owner that levels may set.

    The owner `path` has the keys rate, rtt and so on; the owner "" has the keys cc, rwnd and so on.
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
        return PARAMETER.of(PER_HOST) if is_setting else None
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


# Factors and their levels


@dataclass(frozen=True)
class Level:
    """One level of a factor.

    `label` is its name in tables, trial ids and figures. `texts` maps targets (path.rate, cc) to text from
    the file, `values` maps them to typed values, or to the error if the text cannot be read. The checks
    report these errors.
    """

    label: str
    texts: Mapping[str, Written]
    values: Mapping[str, object] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, label: str, texts: Mapping[str, Written]) -> Level:
        """Return a level with these texts, and with the values that can be read from them."""
        return cls(label, texts, {target: read_target(target, text) for target, text in texts.items()})


@dataclass(frozen=True)
class Factor:
    """One factor with its levels; see FactorKeys for `at` and `sets`."""

    name: str
    levels: tuple[Level, ...]
    at: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the factor's levels."""
        return tuple(level.label for level in self.levels)

    @property
    def linked(self) -> bool:
        """Whether each level maps targets to values. Otherwise, a level has one value for all `targets`."""
        return not self.sets and is_free(self.name)

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of levels that give only a value: `sets`, or else the factor's name."""
        return self.sets or (self.name,)

    def level(self, label: str) -> Level | None:
        """Return the level with this label, or None."""
        return next((level for level in self.levels if level.label == label), None)

    def read_levels(self, written: object) -> tuple[Level, ...]:
        """Read the levels of this factor: one level, a list, or a range.

        Raises ValueError, or its subclass ValidationError, which tells where in the levels each error is.
        """
        if isinstance(written, str):
            return (self.read(written),)
        if isinstance(written, list) and len(written) > MOST_LEVELS:
            raise ValueError(f"{len(written)} levels; expected at most {MOST_LEVELS}")
        if isinstance(written, list):
            return tuple(read_each(dict(enumerate(written)), self.read).values())
        if isinstance(written, Mapping) and is_range(written):
            return tuple(map(self.read, read_range(written)))
        raise ValueError("expected a level, a list such as [50KB, 1MB], {from: ..., to: ..., step: ...} "
                         "or {levels: ...}; one level that is a mapping must be in a list")  # fmt: skip

    def read(self, written: object) -> Level:
        """Read a level of this factor.

        Raises ValueError, or its subclass ValidationError, which tells where in the level each error is.
        """
        if isinstance(written, str):
            text = str(written)
            placed: Written = dict.fromkeys(self.at, text) if self.at else text
            return Level.of(text, dict.fromkeys(self.targets, placed))
        if not isinstance(written, Mapping):
            raise ValueError(f"{A_LEVEL}, not a list")
        if not self.linked and written.keys() == {"value", "label"} and isinstance(written["value"], str):
            return replace(self.read(written["value"]), label=_label(written["label"]))
        if self.at:
            expected = "a factor with `at` has levels such as cdg or {value: cdg, label: new}"
            raise ValueError(f"{expected}; remove `at`, and name the hosts in the level")
        values = {key: value for key, value in written.items() if key != "label"}
        if not values:
            raise ValueError(A_LEVEL)
        if self.linked:
            texts = read_each(values, read_value)
        else:
            texts = dict.fromkeys(self.targets, read_value(values))
        label = "-".join(texts_of(texts if self.linked else values))
        return Level.of(_label(written.get("label", label)), texts)


def _label(written: object) -> str:
    if not isinstance(written, str) or not written.strip():
        raise ValueError("label: expected a text")
    return str(written)


class FactorKeys(Strict):
    """The long form of a factor: its levels, the keys that they set, and the hosts to which they apply."""

    levels: Any = entry("One level, a list of levels, or a range.")
    sets: Annotated[tuple[str, ...], replace(WORD, meaning="a key", form=LIST)] = entry(
        "Keys that every level sets, such as [traffic.there.rate, traffic.back.rate].", ()
    )
    at: Places = entry("Hosts or roles to which the levels apply.", ())


def is_free(name: str) -> bool:
    """Return whether a factor's name is an invented word such as `home`, not a target such as cc."""
    return "." not in name and name not in PLAIN_FACTORS


def texts_of(written: Any) -> Iterator[str]:
    """Yield the texts within a value, which make up its label: 30ms, 10ms for {down: 30ms, up: 10ms}."""
    if isinstance(written, str):
        yield written
    elif isinstance(written, list):
        yield from (text for one in written for text in texts_of(one))
    else:
        for key in ("down", "up") if written.keys() <= {"down", "up"} else written:
            if written.keys() & {*DISTRIBUTIONS}:
                yield key
            yield from texts_of(written.get(key, []))


def read_value(written: object) -> Written:
    """Return a level's value as text or as a mapping of texts; read_target converts it later."""
    if isinstance(written, str):
        return str(written)
    if not isinstance(written, Mapping) or not written:
        raise ValueError(f"{A_LEVEL}, not {'a list' if isinstance(written, list) else 'an empty value'}")
    if is_range(written):
        raise ValueError(
            "a range cannot be in a list of levels; expected the range alone, or its levels listed"
        )
    return {str(key): plain(value) for key, value in written.items()}


def _read_factors(written: object) -> Mapping[str, Factor]:
    if not isinstance(written, Mapping):
        raise ValueError("expected a mapping such as {cc: [cubic, cdg], rwnd: [50KB, 1MB]}")
    named = {str(name): (str(name), one) for name, one in written.items()}
    return read_each(named, lambda factor: _read_factor(*factor))


def _read_factor(name: str, written: object) -> Factor:
    factor = Factor(name, ())
    if not isinstance(written, Mapping) or "levels" not in written:
        return replace(factor, levels=factor.read_levels(written))
    known = read_each(written, lambda value: value, "key of a factor", keys_of(FactorKeys))
    own = FactorKeys.model_validate(known)
    factor = Factor(name, (), own.at, own.sets)
    return replace(factor, levels=read_each({"levels": own.levels}, factor.read_levels)["levels"])


LEVELS = replace(WORD, meaning="a level", form=LIST)
Settings = Mapping[Word, Annotated[str | PerHost[str], WORD.of(PER_HOST)]]
Free = Annotated[Any, PlainValidator(plain)]
Levels = Annotated[tuple[str, ...], LEVELS]
Excluded = Annotated[Mapping[Word, Levels], Field(min_length=1)]
Factors = Annotated[Mapping[str, Factor], PlainValidator(_read_factors)]
Included = Annotated[Mapping[Word, Free], Field(min_length=1)]


# Ranges of levels.


def is_range(written: Mapping[str, object]) -> bool:
    """Return whether a mapping is meant as a range of levels, {from: …, to: …, step: …}."""
    return "step" in written or {"from", "to"} <= written.keys()


def read_range(written: Mapping[str, object]) -> tuple[str, ...]:
    """Return the levels of a range as texts, both ends included, all in the same unit.

    The unit is that of `from`, or the smallest unit in the range if levels need too many decimals in that of
    `from`, such as 70s in minutes. Raises ValueError, or its subclass ValidationError, which tells where in
    the range each error is.
    """
    ends = read_each(written, _range_end, "key of a range", RANGE_KEYS)
    missing = next((key for key in RANGE_KEYS if key not in ends), None)
    if missing:
        raise ValueError(f"key '{missing}' is missing; expected a range such as {A_RANGE}")
    start, stop, step = (ends[key][0] * ends[key][2] for key in RANGE_KEYS)
    if len({kind for *_, kind in ends.values()}) > 1 or start >= stop or step <= 0:
        raise ValueError(
            f"expected `to` above `from`, `step` above zero and units of one kind, such as {A_RANGE}"
        )
    count = (stop - start) / step
    if count != int(count):
        reached = f"{written['to']}; expected a step that reaches it"
        raise ValueError(f"steps of {written['step']} from {written['from']} do not end at {reached}")
    if count >= MOST_LEVELS:
        raise ValueError(f"the range has {int(count) + 1} levels; expected at most {MOST_LEVELS}")
    levels = [start + index * step for index in range(int(count) + 1)]
    _, unit, scale, _ = ends["from"]
    if any((level * 10**MOST_DECIMALS / scale).denominator > 1 for level in levels):
        _, unit, scale, _ = min(ends.values(), key=lambda end: end[2])
    numbers = [level / scale for level in levels]
    return tuple(units.format_number(Decimal(one.numerator) / one.denominator) + unit for one in numbers)


def _range_end(text: object) -> tuple[Fraction, str, int, units.Kind | None]:
    """Return the number, unit, unit scale and kind of quantity of a range's `from`, `to` or `step`."""
    if not isinstance(text, str):
        raise ValueError("expected one value")
    split = units.split_quantity(text)
    if split is None:
        raise UnitError(f"'{text}' is not a quantity; expected one such as 50KB, 40Mbit or 10packets")
    number, unit, kind = split
    return Fraction(number), unit, kind.scales[kind.unit(unit) or unit] if kind else 1, kind


# Treatments: all combinations of levels that `exclude` does not remove, and those that `include` adds.

Treatment = Mapping[str, Level]


def _read_include(lines: tuple[Mapping[str, object], ...], info: ValidationInfo) -> tuple[Treatment, ...]:
    """Return the treatments that the lines of `include` add, each with the factors in the part's order.

    A level is the factor's level with the given label, or a new one. Raises ValidationError, which tells
    where in the lines each error is.
    """
    factors: Mapping[str, Factor] = info.data.get("factors", {})
    levels = {name: list(factor.levels) for name, factor in factors.items()}

    def read_level(entry: tuple[str, object]) -> Level:
        name, written = entry
        level = factors[name].level(written) if isinstance(written, str) else None
        if level is None and isinstance(written, str) and factors[name].linked:
            labels = ", ".join(factors[name].labels)
            raise ValueError(f"unknown level '{written}' of {name}; expected one of {labels}, "
                             "or a mapping with the values of a new one")  # fmt: skip
        level = level or factors[name].read(written)
        if any(level.label == other.label and level != other for other in levels[name]):
            raise ValueError(f"another level is named '{level.label}' already; remove one or label it")
        levels[name].append(level)
        return level

    def read_line(line: Mapping[str, object]) -> Treatment:
        entries = {name: (name, written) for name, written in line.items()}
        found = read_each(entries, read_level, "factor", factors)
        missing = [name for name in factors if name not in found]
        if missing:
            raise ValueError(f"the line has no level for {', '.join(missing)}; give one for every factor")
        return {name: found[name] for name in factors}

    known = lines if "factors" in info.data else ()  # otherwise, the factors are invalid
    return tuple(read_each(dict(enumerate(known)), read_line).values())


Treatments = Annotated[tuple[Included, ...], AfterValidator(_read_include)]
