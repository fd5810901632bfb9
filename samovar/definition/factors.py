"""What may vary: the factors, and how their levels are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from samovar import units
from samovar.definition.experiment import Flow, Logger, NetworkPath, Part, own_keys
from samovar.definition.fields import parse_algorithm, parse_buffer, parse_name
from samovar.units import UnitError

Parser = Callable[[str], object]


def _or_zero(text: str) -> float:
    return units.parse_duration(text, allow_zero=True)


def _descriptors(text: str) -> int:
    return units.parse_count(text, least=1, most=65536, what="number of descriptors")


SETTINGS: Mapping[str, Parser] = {
    "cc": parse_algorithm,
    "rwnd": units.parse_size,
    "mtu": units.parse_mtu,
    "txd": _descriptors,
}
"""Factors that set a host; each is also the name of the setting recipe that does it."""

_OF_PATH: Mapping[str, Parser] = {
    "rate": units.parse_rate,
    "rtt": _or_zero,
    "loss": units.parse_share,
    "aqm": parse_name,
    "buffer": parse_buffer,
}
_OF_FLOW: Mapping[str, Parser] = {
    "generator": parse_name,
    "start": _or_zero,
    "size": units.parse_size,
    "duration": units.parse_duration,
}


def known_factors(part: Part) -> dict[str, Parser]:
    """Return the factors that a part can have, without the parameters of recipes, and their parsers."""
    known = dict(SETTINGS) | {"duration": units.parse_duration}
    known |= {f"path.{key}": parse for key, parse in _OF_PATH.items()}
    for flow in part.traffic:
        known |= {f"traffic.{flow.label}.{key}": parse for key, parse in _OF_FLOW.items()}
    return known


def parser_of(factor: str, part: Part) -> Parser | None:
    """Return how a factor's levels are read; None when there is no such factor.

    Levels of recipe parameters are text here: the recipe's header says more.
    """
    known = known_factors(part).get(factor)
    if known is not None:
        return known
    owner, _, parameter = factor.rpartition(".")
    if owner in set(parameter_owners(part)) and parameter and parameter not in _reserved(owner):
        return _parameter_value
    return None


def parameter_owners(part: Part) -> Iterator[str]:
    """Yield what stands before the dot in a factor that is a recipe's parameter."""
    yield from ("cc", "path")
    yield from (f"traffic.{flow.label}" for flow in part.traffic)
    yield from (f"loggers.{logger.logger}" for logger in part.loggers)


def _reserved(owner: str) -> frozenset[str]:
    return {"path": own_keys(NetworkPath), "cc": frozenset[str]()}.get(
        owner, own_keys(Flow) if owner.startswith("traffic.") else own_keys(Logger)
    )


def _parameter_value(text: str) -> str:
    if not text:
        raise UnitError("is empty; expected a value")
    return text
