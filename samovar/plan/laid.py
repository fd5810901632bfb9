"""A treatment's levels laid over its part: values as they stand, or computed; only what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samovar.errors import PlanError
from samovar.experiment import (
    ARRIVALS_FIELDS,
    FLOW_FIELDS,
    PATH_FIELDS,
    STOP_FIELDS,
    Directional,
    Flow,
    Logger,
    NetworkPath,
    Scope,
    SettingsByHost,
    computed_text,
    with_device,
)
from samovar.plan.places import Places
from samovar.plan.settings import HostSettings
from samovar.plan.treatments import Reader
from samovar.units import UnitError

QUEUE = ("buffer", "aqm")
"""Keys of the path whose plain value holds for both directions when the rate is given for both."""
ENDS = ("size", "duration", "until")
"""Keys of a flow of which one only can stand: a level's, or else the flow's own."""
EITHER = {"until": "count", "count": "until"}
"""Keys of arrivals of which a level's hides the flow's other one."""


class UncomputedError(PlanError):
    """A formula has no value in a treatment; carries its part, what it is of and its text."""

    def __init__(self, part: str, where: str, text: str, message: str) -> None:
        self.part, self.where, self.text = part, where, text
        super().__init__(message)


class Laid:
    """What one treatment asks for."""

    def __init__(self, reader: Reader, places: Places, settings: SettingsByHost, name: str) -> None:
        self.reader, self.places, self.name = reader, places, name
        self.part = reader.design.part
        self.settings = HostSettings(reader, places, settings, self)
        self._device = places.testbed.device
        self._path = with_device(self.part.path, self._device) or NetworkPath()
        self._scope = Scope(_Names(self))

    def computed(self, amount: object, where: str) -> Any:
        """Return a formula's value, and anything else as it is; raises PlanError."""
        try:
            return self._scope.value(amount)
        except UnitError as error:
            raise self._uncomputed(where, str(amount), error) from error

    @property
    def has_path(self) -> bool:
        """Whether anything is said of the path."""
        return (self.part.path is not None or self._device is not None) or any(
            owner.partition(".")[0] == "path" for owner in self.reader.design.targets
        )

    def of_path(self, key: str, way: str) -> object:
        """Return what is said of a direction of the path, `down` or `up`, not computed yet; or None."""
        over = self.reader.get(f"path.{key}")
        if isinstance(over, Directional) and getattr(over, way) is None:
            over = None
        return self._directed(getattr(self._path, PATH_FIELDS[key]) if over is None else over, key, way)

    def _directed(self, value: object, key: str, way: str) -> object:
        if isinstance(value, Directional):
            return getattr(value, way)
        if way == "down" or key == "loss_burst" or (self._device is not None and key in ("rate", "buffer")):
            return value
        return value if key in QUEUE and self._shapes_both() else None

    def _shapes_both(self) -> bool:
        over = self.reader.get("path.rate")
        return isinstance(over if over is not None else self._path.rate_bps, Directional)

    def delay(self, way: str) -> object:
        """Return the one-way delay, not computed yet; None where the RTT is given."""
        over = self.reader.get("path.delay")
        if over is None and self.reader.get("path.rtt") is not None:
            return None
        base = getattr(self._path.delay_s, way) if self._path.delay_s else None
        own = getattr(over, way) if isinstance(over, Directional) else over
        return base if own is None else own

    def rtt(self) -> object:
        """Return the RTT, not computed yet."""
        over = self.reader.get("path.rtt")
        return self._path.rtt_s if over is None else over

    def device_parameters(self) -> dict[str, str]:
        """Return what is said of the device that is the bottleneck, beside its rate, delay and buffer."""
        return self._parameters("path", PATH_FIELDS, self._path.parameters)

    def aqm_parameters(self) -> dict[str, str]:
        """Return the parameters of the queue discipline, formulas computed."""
        return self._parameters("path", PATH_FIELDS, self._path.parameters)

    def of_flow(self, flow: Flow, key: str) -> Any:
        """Return what is said of a flow, not computed yet; None for nothing."""
        over = self.reader.get(f"traffic.{flow.label}.{key}")
        if over is not None:
            return over
        others = (f"traffic.{flow.label}.{end}" for end in ENDS if end != key) if key in ENDS else ()
        hidden = any(self.reader.get(other) is not None for other in others)
        return None if hidden else getattr(flow, FLOW_FIELDS[key])

    def of_arrivals(self, flow: Flow, key: str) -> Any:
        """Return what is said of a flow's arrivals, computed; None for nothing."""
        owner = f"traffic.{flow.label}.arrivals"
        over = self.reader.get(f"{owner}.{key}")
        hidden = over is None and key in EITHER and self.reader.get(f"{owner}.{EITHER[key]}") is not None
        written = None if hidden else getattr(flow.arrivals, ARRIVALS_FIELDS[key])
        return self.computed(written if over is None else over, f"flow {flow.label}: arrivals: {key}")

    def of_stop(self, key: str) -> Any:
        """Return what is said of the end of all traffic, computed; None for nothing."""
        over = self.reader.get(f"stop.{key}")
        written = getattr(self.part.stop, STOP_FIELDS[key]) if self.part.stop is not None else None
        return self.computed(written if over is None else over, f"stop: {key}")

    def flow_parameters(self, flow: Flow) -> dict[str, str]:
        """Return the parameters of a flow's generator, formulas computed."""
        return self._parameters(f"traffic.{flow.label}", FLOW_FIELDS, flow.parameters)

    def flow(self, label: str) -> Flow | None:
        """Return the flow of the part with a label."""
        return next((flow for flow in self.part.traffic if flow.label == label), None)

    def interval_s(self, logger: Logger) -> float | None:
        """Return the time between a logger's samples, in seconds; None leaves it to the recipe."""
        over = self.reader.get(f"loggers.{logger.logger}.interval")
        written = logger.interval_s if over is None else over
        found: float | None = self.computed(written, f"loggers.{logger.logger}.interval")
        return found

    def logger_parameters(self, logger: Logger) -> dict[str, str]:
        """Return the parameters of a logger, formulas computed."""
        return self._parameters(f"loggers.{logger.logger}", {"interval": ""}, logger.parameters)

    def duration(self) -> object:
        """Return how long flows last that have no end of their own, not computed yet."""
        over = self.reader.get("duration")
        return self.part.duration_s if over is None else over

    def _parameters(self, owner: str, known: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
        keys = (key for key in self.reader.design.targets.get(owner, ()) if key not in known)
        over = ((key, self.reader.get(f"{owner}.{key}")) for key in keys)
        texts = {**base, **{key: str(value) for key, value in over if value is not None}}
        return {key: self._computed_text(text, f"{owner}.{key}") for key, text in texts.items()}

    def _computed_text(self, text: str, where: str) -> str:
        try:
            return computed_text(text, self._scope)
        except UnitError as error:
            raise self._uncomputed(where, text, error) from error

    def _uncomputed(self, where: str, text: str, why: UnitError) -> UncomputedError:
        said = f"{self.name}: {where}: {why}"
        levels = self.reader.labels()
        return UncomputedError(self.name, where, text, f"{said}, where {levels}" if levels else said)


class _Names:
    """The values that formulas may name, by their canonical names."""

    def __init__(self, laid: Laid) -> None:
        self._laid = laid

    def get(self, name: str, /) -> object:
        """Return a value, not computed yet; None where nothing is said."""
        owner, _, key = name.partition(".")
        if owner == "path":
            return self._of_path(key)
        if owner == "traffic":
            label, _, key = key.rpartition(".")
            flow = self._laid.flow(label)
            return self._laid.of_flow(flow, key) if flow else None
        return self._laid.duration() if name == "duration" else self._laid.settings.common(name)

    def _of_path(self, key: str) -> object:
        if not self._laid.has_path:
            return None
        if key == "rtt":
            return self._laid.rtt() if self._laid.delay("down") is None else None
        name, _, way = key.partition(".")
        return self._laid.delay(way) if name == "delay" else self._laid.of_path(name, way)
