"""Read parameters of recipes with the types in recipe headers; find those that an experiment may set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Protocol

from pydantic import AfterValidator

from samovar.errors import nearest, unknown
from samovar.experiment.keys import value_types as types
from samovar.experiment.keys.key_table import Key, Strict
from samovar.experiment.keys.value_types import Sentence, Word
from samovar.units import UnitError

PARAMETER_TYPES: Mapping[str, types.ValueType] = {
    "size": types.SIZE_OR_FORMULA,
    "size or zero": types.SIZE_OR_ZERO_OR_FORMULA,
    "rate": types.RATE_OR_FORMULA,
    "duration": types.DELAY_OR_FORMULA,
    "packets": types.PACKETS_OR_FORMULA,
    "share": types.SHARE_OR_FORMULA,
    "integer": types.INTEGER,
    "number": types.NUMBER,
    "switch": types.SWITCH,
}
"""The types of parameters by their names in recipe headers. Any other name means text."""
# Parameters that samovar sets itself; an experiment cannot set them.
_INTERNAL = frozenset(
    {"interface", "interval_s", "port", "to_address", "from_address", "start_s", "duration_s", "size_bytes"}
)
_INTERNAL_OF: Mapping[str, frozenset[str]] = {
    "aqm": frozenset({"buffer_packets", "buffer_bytes", "rate_bps", "frame_bytes"}),
    "setting": frozenset(
        {"interfaces", "peers", "mtu_bytes", "txd", "algorithm", "parameters"}
        | {"directions"}  # of recipe bottleneck, for the path
        | {"link", "keys"}  # of the recipe for adapters of a link
        | {"buffer_bytes"}  # of the recipe for receive windows, from calibration
        | {"buffer_kib"}  # of the recipe for captures
    ),
}


def parse_type(text: str) -> str:
    """Read the type of a parameter in a recipe's header. Raises UnitError for a misspelt type.

    A type unlike any known one, such as `list of interfaces`, is accepted as the description of a text.
    """
    if text not in PARAMETER_TYPES and nearest(text, PARAMETER_TYPES):
        raise UnitError(f"{unknown('type', text, PARAMETER_TYPES)}, or a description of a text")
    return text


class ParameterInfo(Strict):
    """The declaration of a parameter of a recipe or device."""

    type: Annotated[Word, AfterValidator(parse_type)]
    description: Sentence
    unit: Word | None = None  # of the number in the recipe
    default: Word | None = None
    least: Word | None = None  # the smallest value that the recipe accepts
    choices: tuple[Word, ...] = ()  # the accepted texts; empty if all texts of the type are accepted


def as_parameter(key: Key) -> ParameterInfo:
    """Convert a model's key to a recipe parameter. Its type is text if recipes do not have the key's type."""
    types_by_name = {(one.plain or one).name: name for name, one in PARAMETER_TYPES.items()}
    type_ = types_by_name.get(key.type.name) if key.type else None
    choices = key.type.choices if key.type and not type_ else ()
    return ParameterInfo.model_construct(
        type=type_ or "text", description=key.description.removesuffix("."), choices=choices
    )


class RecipeCatalogue(Protocol):
    """Interface of samovar.recipes.Catalogue. Kinds of recipes are setting, aqm, generator and logger."""

    def names(self, kind: str, os: str) -> frozenset[str]:
        """Return the names of the recipes of a kind for a system."""

    def parameters(self, kind: str, name: str, os: str) -> Mapping[str, ParameterInfo] | None:
        """Return the parameters of a recipe, or None for an unknown recipe."""

    def transport(self, generator: str, os: str) -> str:
        """Return the transport of a generator's data, tcp, udp or icmp; tcp for an unknown generator."""

    def ports(self, generator: str, os: str) -> tuple[int, ...]:
        """Return the ports of a generator as offsets from its flow's port; () for an unknown generator."""

    def change(self, name: str, os: str) -> str:
        """Return what a host needs after a setting changes: none (the default), interface-reset or reboot."""

    def quantities(self, os: str) -> Mapping[str, tuple[str, ...]]:
        """Return, for each quantity, the logger recipes that record it on a system, the default first."""


def parse_parameter(info: ParameterInfo, text: str, *, formulas: bool = False) -> object:
    """Convert a parameter's text to the type in its header: bytes, bit/s, seconds, a fraction, 1 or 0, text.

    With `formulas`, the text may be a formula; it is returned as a Formula, not evaluated. Raises UnitError
    for a text of the wrong type, below `least` or not in `choices`.
    """
    if info.choices and text not in info.choices:
        raise UnitError(f"'{text}' is not a choice here; expected one of {', '.join(info.choices)}")
    known = PARAMETER_TYPES.get(info.type)
    if known is None:
        return text
    value = (known if formulas else known.plain or known).parse(text)
    if below_least(info, value):
        raise UnitError(f"{text} is below {info.least}, the smallest possible value")
    return value


def below_least(info: ParameterInfo, value: object) -> bool:
    """Return whether a value is a number below the smallest that the recipe accepts."""
    if info.least is None or not isinstance(value, int | float):
        return False
    least = PARAMETER_TYPES[info.type].parse(info.least)
    return isinstance(least, int | float) and value < least


def settable(catalogue: RecipeCatalogue, kind: str, name: str, os: str) -> dict[str, ParameterInfo]:
    """Return those parameters of a recipe that an experiment may set; empty for an unknown recipe."""
    internal = _INTERNAL | _INTERNAL_OF.get(kind, frozenset())
    known = catalogue.parameters(kind, name, os) or {}
    return {parameter: info for parameter, info in known.items() if parameter not in internal}
