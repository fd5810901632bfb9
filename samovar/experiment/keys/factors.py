"""What may vary: the factors, and how their levels are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from samovar import units
from samovar.experiment.expressions.distribution import parse_distribution
from samovar.experiment.expressions.values import Directional, DistributionText, LevelText, PerHost
from samovar.experiment.keys.dscp import parse_dscp
from samovar.experiment.keys.field_types import (
    Strict,
    parse_algorithm,
    parse_buffer_amount,
    parse_delay,
    parse_duration,
    parse_flow_count,
    parse_frequency,
    parse_name,
    parse_packets,
    parse_rate,
    parse_share,
    parse_size,
)
from samovar.experiment.keys.path_keys import NetworkPath
from samovar.experiment.keys.traffic_keys import Arrivals, Flow, Logger, Stop
from samovar.experiment.keys.with_parameters import WithParameters, own_keys
from samovar.units import UnitError

if TYPE_CHECKING:
    from samovar.experiment.keys.experiment_file import Part

Parser = Callable[[str], object]


def _descriptors(text: str) -> int:
    return units.parse_count(text, least=1, most=65536, what="number of descriptors")


SETTINGS: Mapping[str, Parser] = {
    "cc": parse_algorithm,
    "rwnd": parse_size,
    "mtu": units.parse_mtu,
    "txd": _descriptors,
}
"""Factors that set a host; each is also the name of the setting recipe that does it."""

OF_PATH: Mapping[str, Parser] = {
    "rate": parse_rate,
    "rtt": parse_delay,
    "delay": parse_delay,
    "jitter": parse_delay,
    "loss": parse_share,
    "loss_burst": parse_packets,
    "reorder": parse_share,
    "duplicate": parse_share,
    "aqm": parse_name,
    "buffer": parse_buffer_amount,
}
OF_FLOW: Mapping[str, Parser] = {
    "generator": parse_name,
    "from": parse_name,
    "to": parse_name,
    "start": parse_delay,
    "size": parse_size,
    "duration": parse_duration,
    "until": parse_name,
    "cc": parse_algorithm,
    "rwnd": parse_size,
    "dscp": parse_dscp,
    "count": parse_flow_count,
    "every": parse_delay,
}
OF_ARRIVALS: Mapping[str, Parser] = {
    "poisson": parse_frequency,
    "until": parse_duration,
    "count": parse_flow_count,
}
OF_STOP: Mapping[str, Parser] = {"after": parse_duration, "when": parse_name}
RANDOM = frozenset({"start", "size", "duration"})
"""Keys of a flow that may be random, drawn for each flow."""
OF_LOGGER: Mapping[str, Parser] = {"interval": parse_duration}
DIRECTED = frozenset(f"path.{key}" for key in OF_PATH if key != "rtt")
NOT_OF_HOSTS = ("path", "traffic", "loggers", "stop")
"""What stands before the dot in factors that are no settings of hosts."""
UNDIRECTED = ("rtt",)  # keys of the path that have no directions
ONE_PER_DIRECTION = ("delay",)  # keys of the path that have nothing else


def is_directed(target: str) -> bool:
    """Say whether a target may have a value for each direction; a plain one is of the way down."""
    return target in DIRECTED


def may_be_random(target: str) -> bool:
    """Return whether a target may be given as a distribution."""
    owner, _, key = target.rpartition(".")
    return owner.startswith("traffic.") and key in RANDOM


def known_factors(part: Part) -> dict[str, Parser]:
    """Return the factors that a part can have, without the parameters of recipes, and their parsers."""
    known = dict(SETTINGS) | {"duration": parse_duration}
    known |= {f"path.{key}": parse for key, parse in OF_PATH.items()}
    known |= {f"stop.{key}": parse for key, parse in OF_STOP.items()}
    for flow in part.traffic:
        known |= {f"traffic.{flow.label}.{key}": parse for key, parse in OF_FLOW.items()}
        arrivals = OF_ARRIVALS if flow.arrivals is not None else {}
        known |= {f"traffic.{flow.label}.arrivals.{key}": parse for key, parse in arrivals.items()}
    for logger in part.loggers:
        known |= {f"loggers.{logger.logger}.{key}": parse for key, parse in OF_LOGGER.items()}
    return known


def is_target(target: str, part: Part) -> bool:
    """Return whether a level of the part may set a target: its key is known and its flow or logger exists."""
    owner = target.rpartition(".")[0]
    if parser_of(target) is None or owner.partition(".")[0] not in ("traffic", "loggers"):
        return parser_of(target) is not None
    arrivals = (f"traffic.{flow.label}.arrivals" for flow in part.traffic if flow.arrivals is not None)
    return owner in {*parameter_owners(part), *arrivals}


def parser_of(target: str) -> Parser | None:
    """Return the parser of a target's values; None when no key has this name.

    Values of recipe parameters stay text here: the recipe's header has their types.
    """
    owner, _, key = target.rpartition(".")
    if not owner:
        return SETTINGS.get(key) or (parse_duration if key == "duration" else None)
    if _is_setting_parameter(owner, key):
        return _parameter_value
    own, model = _keys_of(owner)
    if model is None or not key:
        return None
    is_parameter = issubclass(model, WithParameters) and key not in own_keys(model)
    return own.get(key) or (_parameter_value if is_parameter else None)


def _keys_of(owner: str) -> tuple[Mapping[str, Parser], type[Strict] | None]:
    """Return the keys that may vary below an owner such as traffic.bulk, with their model."""
    group, _, name = owner.partition(".")
    if owner in ("path", "stop"):
        return (OF_PATH, NetworkPath) if owner == "path" else (OF_STOP, Stop)
    if group == "traffic" and name:
        return (OF_ARRIVALS, Arrivals) if name.endswith(".arrivals") else (OF_FLOW, Flow)
    return (OF_LOGGER, Logger) if group == "loggers" and name else ({}, None)


def read_target(target: str, value: LevelText) -> object:
    """Read a level's value for a target: typed, a Formula, a Distribution, a Directional or a PerHost.

    Raises UnitError, also for an unknown target.
    """
    parse = parser_of(target)
    if parse is None:
        raise UnitError(f"unknown factor {target}")
    if isinstance(value, Directional):
        return Directional(*(None if one is None else parse(one) for one in (value.down, value.up)))
    if isinstance(value, DistributionText):
        if not may_be_random(target):
            raise UnitError(f"{target}: cannot be random")
        return parse_distribution(value, parse)
    if isinstance(value, PerHost):
        return PerHost({host: parse(one) for host, one in value.hosts.items()})
    return parse(value)


def parameter_owners(part: Part) -> Iterator[str]:
    """Yield what stands before the dot in a factor that is a parameter of a recipe that the part names."""
    yield from ("cc", "path")
    yield from (f"traffic.{flow.label}" for flow in part.traffic)
    yield from (f"loggers.{logger.logger}" for logger in part.loggers)


def _is_setting_parameter(owner: str, parameter: str) -> bool:
    """Say whether a target may be RECIPE.PARAMETER of a setting recipe; the catalogue knows which are."""
    return bool(parameter) and "." not in owner and owner not in ("", *NOT_OF_HOSTS)


def _parameter_value(text: str) -> str:
    if not text:
        raise UnitError("is empty; expected a value")
    return text
