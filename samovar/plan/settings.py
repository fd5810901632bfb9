"""A treatment's levels laid over its part: typed values, nothing of the testbed yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from samovar.definition.experiment import Flow, Logger, NetworkPath, Part, WithParameters
from samovar.definition.factors import SETTINGS, read_target
from samovar.definition.values import Value
from samovar.errors import PlanError
from samovar.units import UnitError

W = TypeVar("W", bound=WithParameters)
_FLOW_FIELDS = {"start": "start_s", "size": "size_bytes", "duration": "duration_s", "generator": "generator"}
_PATH_FIELDS = {"rate": "rate_bps", "rtt": "rtt_s", "loss": "loss", "aqm": "aqm", "buffer": "buffer"}


@dataclass(frozen=True)
class Settings:
    """What one treatment asks for."""

    path: NetworkPath | None
    traffic: tuple[Flow, ...]
    loggers: tuple[Logger, ...]
    duration_s: float | None
    cc: str | None = None
    rwnd_bytes: int | None = None
    mtu_bytes: int | None = None
    txd: int | None = None
    cc_parameters: Mapping[str, str] = field(default_factory=dict)


def settings_of(part: Part, treatment: Mapping[str, str]) -> Settings:
    """Lay the levels of a treatment over its part; raises PlanError for a level that cannot be read."""
    values: dict[str, object] = {}
    for factor, label in treatment.items():
        level = part.factors[factor].level(label)
        for target, value in level.values.items() if level else ():
            values[target] = _typed(target, value, part)
    hosts = {factor: values.get(factor) for factor in SETTINGS}
    return Settings(
        path=_path(part.path, _below("path", values)),
        traffic=tuple(_flow(flow, _below(f"traffic.{flow.label}", values)) for flow in part.traffic),
        loggers=tuple(_with(one, {}, _below(f"loggers.{one.logger}", values)) for one in part.loggers),
        duration_s=cast("float | None", values.get("duration", part.duration_s)),
        cc=cast("str | None", hosts["cc"]),
        rwnd_bytes=cast("int | None", hosts["rwnd"]),
        mtu_bytes=cast("int | None", hosts["mtu"]),
        txd=cast("int | None", hosts["txd"]),
        cc_parameters={key: str(value) for key, value in _below("cc", values).items()},
    )


def _typed(target: str, value: Value, part: Part) -> object:
    try:
        return read_target(target, value, part)
    except UnitError as error:
        raise PlanError(f"factor {target}: {error}") from error


def _below(owner: str, values: Mapping[str, object]) -> dict[str, object]:
    """Return the factors `owner.key` by their key."""
    split = ((factor.rpartition("."), value) for factor, value in values.items())
    return {key: value for (before, _, key), value in split if before == owner}


def _path(path: NetworkPath | None, over: Mapping[str, object]) -> NetworkPath | None:
    if path is None and not over:
        return None
    return _with(path or NetworkPath(), _PATH_FIELDS, over)


def _flow(flow: Flow, over: Mapping[str, object]) -> Flow:
    changed = _with(flow, _FLOW_FIELDS, over)
    if "size" in over and "duration" not in over:
        return changed.model_copy(update={"duration_s": None})
    if "duration" in over and "size" not in over:
        return changed.model_copy(update={"size_bytes": None})
    return changed


def _with(model: W, fields: Mapping[str, str], over: Mapping[str, object]) -> W:
    """Return the model with other values; what is no field of it is a parameter of its recipe."""
    if not over:
        return model
    update: dict[str, Any] = {fields[key]: value for key, value in over.items() if key in fields}
    extra = {key: str(value) for key, value in over.items() if key not in fields}
    return model.model_copy(update=update | {"parameters": {**model.parameters, **extra}})
