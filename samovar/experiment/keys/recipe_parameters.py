"""Parameters of recipes, read with the types in the recipe's header. samovar.recipes has the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Protocol

from pydantic import AfterValidator

from samovar.errors import nearest, unknown
from samovar.experiment.keys import value_types as types
from samovar.experiment.keys.key_table import Strict
from samovar.experiment.keys.value_types import Sentence, Word
from samovar.units import UnitError

PARAMETER_TYPES: Mapping[str, types.ValueType] = {
    "size": types.SIZE_OR_FORMULA,
    "rate": types.RATE_OR_FORMULA,
    "duration": types.DELAY_OR_FORMULA,
    "packets": types.PACKETS_OR_FORMULA,
    "share": types.SHARE_OR_FORMULA,
    "integer": types.INTEGER,
    "number": types.NUMBER,
    "switch": types.SWITCH,
}
"""The types of parameters by their names in headers of recipes. Any other name means text."""
# Parameters that samovar itself gives recipes: an experiment cannot set them.
_INTERNAL = frozenset(
    {"interface", "interval_s", "port", "to_address", "from_address", "start_s", "duration_s", "size_bytes"}
)
_INTERNAL_OF: Mapping[str, frozenset[str]] = {
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
    """Read the type of a parameter in a recipe's header. Raises UnitError for a misspelt type.

    Types that are not listed are the recipe's own words for text, such as list of interfaces.
    """
    if text not in PARAMETER_TYPES and nearest(text, PARAMETER_TYPES):
        raise UnitError(f"{unknown('type', text, PARAMETER_TYPES)}, or other words for a text")
    return text


class ParameterInfo(Strict):
    """A parameter that a recipe or a device takes."""

    type: Annotated[Word, AfterValidator(parse_type)]
    description: Sentence
    unit: Word | None = None  # of the value that is passed to the recipe
    default: Word | None = None
    least: Word | None = None  # the smallest value that the recipe can keep
    choices: tuple[Word, ...] = ()  # the accepted texts; empty if every text of the type is


class RecipeCatalogue(Protocol):
    """The recipes of every operating system; kinds are setting, aqm, generator and logger."""

    def names(self, kind: str, os: str) -> frozenset[str]:
        """Return the names of the recipes of a kind for a system."""

    def parameters(self, kind: str, name: str, os: str) -> Mapping[str, ParameterInfo] | None:
        """Return the parameters of a recipe, or None if there is no such recipe."""

    def duration_step_s(self, kind: str, name: str, os: str) -> float | None:
        """Return the step in seconds of which durations must be multiples, None if there is none."""

    def transport(self, generator: str, os: str) -> str:
        """Return the transport of a generator's data, tcp, udp or icmp; tcp for an unknown generator."""

    def ports(self, generator: str, os: str) -> tuple[int, ...]:
        """Return the ports of a generator as offsets from its flow's port; () for an unknown generator."""

    def change(self, name: str, os: str) -> str:
        """Return what a change of a setting needs: none (also if unknown), interface-reset or reboot."""

    def quantities(self, os: str) -> Mapping[str, tuple[str, ...]]:
        """Return the loggers of a system by the quantity that they record, the default logger first."""


def parse_parameter(info: ParameterInfo, text: str, *, formulas: bool = False) -> object:
    """Read a parameter's text by its type: bytes, bit/s, seconds, fraction, 1 or 0. Other types stay text.

    With `formulas`, the text may be a formula, which is returned. Raises UnitError, also for a text that is
    not one of the recipe's choices.
    """
    if info.choices and text not in info.choices:
        raise UnitError(f"'{text}' is not one of its choices; expected one of {', '.join(info.choices)}")
    known = PARAMETER_TYPES.get(info.type)
    if known is None:
        return text
    value = (known if formulas else known.plain or known).parse(text)
    if below_least(info, value):
        raise UnitError(f"{text} is below {info.least}, the least that is possible")
    return value


def below_least(info: ParameterInfo, value: object) -> bool:
    """Return whether a value is a number below the least that a recipe can keep."""
    if info.least is None or not isinstance(value, int | float):
        return False
    least = PARAMETER_TYPES[info.type].parse(info.least)
    return isinstance(least, int | float) and value < least


def is_off(text: object) -> bool:
    """Return whether the text of a parameter says `off`, which is true for a recipe without such a switch."""
    return text == "off"


def settable(catalogue: RecipeCatalogue, kind: str, name: str, os: str) -> dict[str, ParameterInfo]:
    """Return the parameters of a recipe that an experiment may set; empty if there is no such recipe."""
    internal = _INTERNAL | _INTERNAL_OF.get(kind, frozenset())
    known = catalogue.parameters(kind, name, os) or {}
    return {parameter: info for parameter, info in known.items() if parameter not in internal}
