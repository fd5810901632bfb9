"""Factors with their levels as an experiment writes them: lists, ranges, levels of several values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field, PlainValidator

from samovar.experiment.expressions.distribution import distribution_text, is_distribution
from samovar.experiment.expressions.values import Directional, DistributionText, LevelText, Mistakes, PerHost
from samovar.experiment.keys.factors import read_target
from samovar.experiment.keys.field_types import Word, parse_name, parse_places
from samovar.experiment.keys.ranges import MOST_LEVELS, is_range, read_range
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import plain
from samovar.units import UnitError

PLAIN_FACTORS = ("cc", "rwnd", "mtu", "txd", "duration")
SPEC_KEYS = ("levels", "sets", "recipe", "parameter", "at")
A_LEVEL = "expected a level such as cdg, {down: 100Mbit, up: 40Mbit} or {sender: cubic, sender2: cdg}"


@dataclass(frozen=True)
class Level:
    """One level of a factor.

    `label` is its text in tables, ids and figures. `texts` holds what it sets as written, by target
    (path.rate, cc); `values` holds the same typed. A target whose text cannot be read is missing from
    `values`: the checks report it.
    """

    label: str
    texts: Mapping[str, LevelText]
    values: Mapping[str, object] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, label: str, texts: Mapping[str, LevelText]) -> Level:
        """Return a level with its values typed."""
        values: dict[str, object] = {}
        for target, text in texts.items():
            with suppress(UnitError):
                values[target] = read_target(target, text)
        return cls(label, texts, values)


@dataclass(frozen=True)
class Factor:
    """One factor with its levels; sets, recipe, parameter and at are those it names itself."""

    name: str
    levels: tuple[Level, ...]
    recipe: str | None = None
    parameter: str | None = None
    at: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The texts of its levels."""
        return tuple(level.label for level in self.levels)

    @property
    def linked(self) -> bool:
        """Whether its name is a free word, so that a mapping is a level of several factors together."""
        return self.recipe is None and not self.sets and is_free(self.name)

    @property
    def targets(self) -> tuple[str, ...]:
        """What its levels set when they do not say so: its name, RECIPE.PARAMETER, or all of sets."""
        if self.recipe is None:
            return self.sets or (self.name,)
        return (f"{self.recipe}.{self.parameter}" if self.parameter else self.recipe,)

    def level(self, label: str) -> Level | None:
        """Return the level with a label."""
        return next((level for level in self.levels if level.label == label), None)

    def read(self, written: object) -> Level:
        """Return the level that is written; raises ValueError or pydantic's ValidationError with places."""
        if isinstance(written, str):
            return Level.of(str(written), dict.fromkeys(self.targets, self._placed(str(written))))
        if not isinstance(written, Mapping):
            raise ValueError(f"{A_LEVEL}, not a list")
        if not self.linked and written.keys() == {"value", "label"} and isinstance(written["value"], str):
            return replace(self.read(written["value"]), label=_label(written["label"]))
        values = self._values({key: value for key, value in written.items() if key != "label"})
        return Level.of(_label(written.get("label", "-".join(self._texts(values)))), values)

    def _values(self, written: Mapping[str, object]) -> dict[str, LevelText]:
        if not written:
            raise ValueError(A_LEVEL)
        if not self.linked:
            return dict.fromkeys(self.targets, _value(written))
        mistakes = Mistakes()
        values = {key: mistakes.within((key,), _value, value) for key, value in written.items()}
        mistakes.raise_any()
        return values

    def _texts(self, values: Mapping[str, LevelText]) -> Iterator[str]:
        """Yield the texts that make a label; what sets several keys at once says them once."""
        for value in list(values.values())[: None if self.linked else 1]:
            yield from texts_of(value)

    def _placed(self, text: str) -> LevelText:
        return PerHost(dict.fromkeys(self.at, text)) if self.at else text


def _label(written: object) -> str:
    if not isinstance(written, str) or not written.strip():
        raise ValueError("label: expected one word")
    return str(written)


def is_free(name: str) -> bool:
    """Say whether a factor's name is none that says itself what it sets."""
    return "." not in name and name not in PLAIN_FACTORS


def texts_of(value: LevelText) -> Iterator[str]:
    """Yield the texts of a value, those of all directions or hosts, or of all that a law says."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, DistributionText):
        for key, said in value.keys.items():
            yield from (key, *((said,) if isinstance(said, str) else said))
    elif isinstance(value, Directional):
        yield from (one for one in (value.down, value.up) if one is not None)
    else:
        yield from value.hosts.values()


def read_value(written: object) -> LevelText:
    """Read a value: a text, or a mapping of directions or hosts to texts."""
    return _value(written)


def _value(written: object) -> LevelText:
    if isinstance(written, str):
        return str(written)
    if not isinstance(written, Mapping) or not written:
        raise ValueError(f"{A_LEVEL}, not {'a list' if isinstance(written, list) else 'nothing'}")
    if is_distribution(written):
        return distribution_text(written)
    if is_range(written):
        raise ValueError("a range stands in place of a list; expected it alone, or its levels one by one")
    mistakes = Mistakes()
    for key, value in written.items():
        if not isinstance(value, str):
            mistakes.add((key,), "expected one value")
    mistakes.raise_any()
    found = {str(key): str(value) for key, value in written.items()}
    if found.keys() <= {"down", "up"}:
        return Directional(found.get("down"), found.get("up"))
    return PerHost(found)


def _read_factors(written: object) -> Mapping[str, Factor]:
    if not isinstance(written, Mapping):
        raise ValueError("expected a mapping such as {cc: [cubic, cdg], rwnd: [50KB, 1MB]}")
    mistakes = Mistakes()
    factors = {str(name): mistakes.within((name,), read_factor, str(name), written[name])
               for name in written}  # fmt: skip
    mistakes.raise_any()
    return factors


def read_factor(name: str, written: object) -> Factor:
    """Read one factor; raises ValueError or pydantic's ValidationError, with the places of the mistakes."""
    mistakes = Mistakes()
    bare = _with_recipe(name, written, mistakes) if _is_spec(written) else Factor(name, ())
    spec, loc = (written["levels"], ("levels",)) if _is_spec(written) else (written, ())  # type: ignore[index]
    levels: list[Level] = []
    for at, one in mistakes.within(loc, _items, spec) or ():
        level = mistakes.within((*loc, *at), bare.read, one)
        levels += [level] if level is not None else []
    mistakes.raise_any()
    return replace(bare, levels=tuple(levels))


def _is_spec(written: object) -> bool:
    return isinstance(written, Mapping) and "levels" in written


def _items(spec: object) -> list[tuple[tuple[int, ...], object]]:
    """Return the written levels with their places."""
    if isinstance(spec, str):
        return [((), spec)]
    if isinstance(spec, list) and len(spec) > MOST_LEVELS:
        raise ValueError(f"{len(spec)} levels; expected at most {MOST_LEVELS}")
    if isinstance(spec, list):
        return [((index,), one) for index, one in enumerate(spec)]
    if isinstance(spec, Mapping) and is_range(spec):
        return [((), text) for text in read_range(spec)]
    raise ValueError("expected a level, a list such as [50KB, 1MB], {from: ..., to: ..., step: ...} "
                     "or {levels: ...}; one level that is a mapping stands in a list")  # fmt: skip


def _with_recipe(name: str, written: object, mistakes: Mistakes) -> Factor:
    assert isinstance(written, Mapping)
    for key in written:
        if key not in SPEC_KEYS:
            mistakes.add((key,), unknown("key of a factor", key, SPEC_KEYS), key=True)
    found = {key: mistakes.within((key,), _name, written[key])
             for key in ("recipe", "parameter") if key in written}  # fmt: skip
    if "parameter" in found and "recipe" not in found:
        mistakes.add(("parameter",), "a parameter without a recipe; expected recipe beside it", key=True)
    if "sets" in written and "recipe" in written:
        mistakes.add(("sets",), "sets beside a recipe; expected one of them", key=True)
    at = mistakes.within(("at",), parse_places, written["at"]) if "at" in written else ()
    sets = mistakes.within(("sets",), _keys, written["sets"]) if "sets" in written else ()
    return Factor(name, (), found.get("recipe"), found.get("parameter"), at or (), sets or ())


def _name(written: object) -> str:
    if not isinstance(written, str):
        raise ValueError("expected one name")
    return parse_name(written)


def _keys(written: object) -> tuple[str, ...]:
    """Read what a factor sets at once."""
    keys = written if isinstance(written, list) and all(isinstance(one, str) for one in written) else []
    if not keys or len(set(keys)) < len(keys):
        raise ValueError(
            "expected a list of keys, each once, such as [traffic.there.rate, traffic.back.rate]"
        )
    return tuple(str(one) for one in keys)


def _levels(value: object) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list) and value and all(isinstance(level, str) for level in value):
        return tuple(str(level) for level in value)
    raise ValueError("expected a level or a list of levels, such as cdg or [newreno, cubic]")


def _read_setting(written: object) -> str | PerHost[str]:
    if isinstance(written, list):
        raise ValueError(
            "expected one value, or one per host such as {sender: cubic, sender2: cdg}, not a list"
        )
    value = _value(written)
    if isinstance(value, Directional | DistributionText):
        raise ValueError("a host has no directions; expected one value, or one per host or role")
    return value


def _read_include(written: object) -> Mapping[str, object]:
    if not isinstance(written, Mapping) or not written:
        raise ValueError("expected a mapping such as {cc: bbr, rwnd: 9999KB}, a level for every factor")
    return {str(name): plain(value) for name, value in written.items()}


SettingValue = str | PerHost[str]
_PerHost = str | dict[str, str]
Setting = Annotated[SettingValue, PlainValidator(_read_setting, json_schema_input_type=_PerHost)]
Levels = Annotated[
    str | tuple[str, ...], PlainValidator(_levels, json_schema_input_type=str | tuple[str, ...])
]
Excluded = Annotated[Mapping[Word, Levels], Field(min_length=1)]
Factors = Annotated[
    Mapping[str, Factor], PlainValidator(_read_factors, json_schema_input_type=dict[str, object])
]
Included = Annotated[
    Mapping[str, object], PlainValidator(_read_include, json_schema_input_type=dict[str, object])
]
