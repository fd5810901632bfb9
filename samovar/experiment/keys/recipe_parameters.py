"""Values of recipe parameters, read as the recipe's header says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from samovar import units
from samovar.experiment.expressions.formula import is_formula
from samovar.experiment.keys.field_types import parse_delay as parse_time
from samovar.experiment.keys.field_types import parse_packets, parse_rate, parse_share, parse_size
from samovar.experiment.nearest import nearest, unknown
from samovar.experiment.recipe_interface import ParameterInfo, RecipeCatalogue

_BY_TYPE: Mapping[str, Callable[[str], object]] = {
    "size": units.parse_size,
    "rate": units.parse_rate,
    "duration": lambda text: units.parse_duration(text, allow_zero=True),
    "packets": units.parse_packets,
    "share": units.parse_share,
    "integer": lambda text: units.parse_count(text),
    "number": units.parse_number,
    "switch": units.parse_switch,
}
_COMPUTED: Mapping[str, Callable[[str], object]] = {
    "size": parse_size,
    "rate": parse_rate,
    "duration": parse_time,
    "packets": parse_packets,
    "share": parse_share,
}
# What samovar itself hands to recipes: not for an experiment to set.
_GIVEN = frozenset(
    {"interface", "interval_s", "port", "to_address", "from_address", "start_s", "duration_s", "size_bytes"}
)
_GIVEN_TO: Mapping[str, frozenset[str]] = {
    "aqm": frozenset({"buffer_packets", "buffer_bytes", "rate_bps", "frame_bytes"}),
    "setting": frozenset(
        {"interfaces", "peers", "mtu_bytes", "txd", "algorithm", "parameters"}
        | {"from_interface", "to_interface", "directions"}  # of the path's own recipe, bottleneck
        | {"link", "keys"}  # of that for a link's adapters
        | {"buffer_bytes"}  # of that for receive windows, measured
        | {"buffer_kib"}  # of that for captures
    ),
}


def parse_type(text: str) -> str:
    """Read the name of a parameter's type, as recipes' headers give it; raises UnitError for one misspelt.

    What is no quantity is in the recipe's own words, such as list of interfaces.
    """
    if text not in _BY_TYPE and nearest(text, _BY_TYPE):
        raise units.UnitError(f"{unknown('type', text, _BY_TYPE)}, and other words for what stays text")
    return text


def parse_parameter(info: ParameterInfo, text: str) -> object:
    """Read a parameter's text as its type says (bytes, bit/s, seconds, fraction, 1 or 0).

    Other types stay text. Raises UnitError, also for a text that is none of the recipe's choices.
    """
    if info.choices and text not in info.choices:
        raise units.UnitError(f"'{text}' is none of its choices; expected one of {', '.join(info.choices)}")
    parse = _BY_TYPE.get(info.type)
    return parse(text) if parse else text


def read_parameter(info: ParameterInfo, text: str) -> object:
    """Read a parameter's text, or the formula that stands for it; raises UnitError."""
    parse = None if info.choices else _COMPUTED.get(info.type)
    return parse(text) if parse and is_formula(text) else parse_parameter(info, text)


def settable(catalogue: RecipeCatalogue, kind: str, name: str, os: str) -> dict[str, ParameterInfo]:
    """Return the parameters of a recipe that an experiment may set (none when there is no such recipe)."""
    given = _GIVEN | _GIVEN_TO.get(kind, frozenset())
    known = catalogue.parameters(kind, name, os) or {}
    return {parameter: info for parameter, info in known.items() if parameter not in given}


def refusal(parameter: str, text: str, known: Mapping[str, ParameterInfo], keys: Iterable[str]) -> str | None:
    """Say why a key beside a recipe's name cannot stand, or None when it can."""
    if parameter not in known:
        return unknown("key or parameter", parameter, [*known, *keys])
    try:
        read_parameter(known[parameter], text)
    except units.UnitError as error:
        return f"{parameter}: {error}"
    return None
