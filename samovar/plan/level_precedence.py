"""Look up the values of one treatment: a factor's level takes precedence over the part's value.

Formulas are evaluated on demand. The factors whose levels were used are recorded, so that a component that
depends on few factors is resolved once for each combination of their levels, not once for each treatment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from samovar.errors import PlanError
from samovar.experiment import (
    Directional,
    Distribution,
    Formula,
    PerHost,
    Scope,
    SettingsByHost,
    formula_text,
    keys,
    recorder_of,
)
from samovar.plan.model import FlowPlan
from samovar.plan.placement import Placement
from samovar.units import UnitError, format_duration

Row = tuple[int, ...]
"""A treatment: for each factor, the index of its level."""
OFF = "off"  # a parameter that is off may be left out for a recipe without this parameter
CONTRADICT_RWND = {
    "linux": ("tcp.autotuning", "buffers.receive_default", "buffers.receive_max"),
    "freebsd": ("tcp.autotuning",),
}
"""The settings, by operating system, whose values the recipe `rwnd` overrides unless they are off."""
QUEUE = ("buffer", "aqm")
"""Keys of the path whose single value applies to both directions if the rate is given for both."""
DELAYS = ("delay", "rtt")
ARRIVALS_ENDS = ("until", "count")
"""Mutually exclusive keys: a path has one key of DELAYS, and `arrivals` has one key of ARRIVALS_ENDS."""


class TreatmentError(PlanError):
    """A treatment has an impossible value.

    `where` (the words of the key) and `text` (the value's text) help to find the value in the file.
    """

    def __init__(self, part: str, where: str, text: str, message: str) -> None:
        self.part, self.where, self.text = part, where, text
        super().__init__(message)


def with_device(path: keys.NetworkPath, device: keys.Adapter) -> keys.NetworkPath:
    """Complete a path with the bottleneck device's values, and apply single values to both directions."""
    changes: dict[str, Any] = {
        "rate_bps": _both(path.rate_bps, device.rate_bps),
        "buffer": _both(path.buffer, device.buffer),
    }
    if "rtt_s" not in path.model_fields_set and path.delay_s is None:
        changes["rtt_s"] = 2 * device.delay_s
    return path.model_copy(update=changes)


def _both(value: object, of_device: object) -> Directional[object]:
    """Return the value of each direction; a direction without a value gets the device's value."""
    both = value if isinstance(value, Directional) else Directional(value, value)
    return Directional(*(of_device if one is None else one for one in (both.down, both.up)))


@dataclass(frozen=True)
class PartContext:
    """The values that all treatments of a part share.

    `factors` also contain the levels that occur only in `include`.
    """

    name: str
    part: keys.Part
    factors: tuple[keys.Factor, ...]
    placement: Placement
    settings: SettingsByHost
    seed: int
    catalogue: keys.RecipeCatalogue

    @cached_property
    def path(self) -> keys.NetworkPath | None:
        """The part's path, completed by the testbed's device; None if neither file nor level sets a path."""
        device = self.placement.testbed.device
        path = with_device(self.part.path or keys.NetworkPath(), device) if device else self.part.path
        varied = any(target.startswith("path.") for target in self.setters)
        return path or (keys.NetworkPath() if varied else None)

    @cached_property
    def setters(self) -> Mapping[str, Collection[int]]:
        """Maps each target, such as `path.rate`, to the indices of the factors that set it."""
        found: dict[str, dict[int, None]] = {}
        for number, factor in enumerate(self.factors):
            for target in (target for level in factor.levels for target in level.texts):
                found.setdefault(target, {})[number] = None
        return found


class TreatmentValues:
    """The values of a part's keys and of its hosts' settings in one treatment and replicate.

    `read` has the indices of the factors whose levels were used. `random` becomes true when `replicate` is
    read, because random values depend on the replicate. Methods whose name ends in `_amount` return formulas
    unevaluated; all others evaluate them. PlanError is raised for a formula that has no value in the
    treatment.
    """

    def __init__(self, context: PartContext, row: Row, replicate: int = 1) -> None:
        self.context, self._row, self._replicate = context, row, replicate
        self.part, self.placement = context.part, context.placement
        self.testbed = self.placement.testbed
        self.read: set[int] = set()
        self.random = False
        self._scope = Scope(self.get)

    @property
    def replicate(self) -> int:
        """The replicate. Reading this property sets `random`: the values then depend on the replicate."""
        self.random = True
        return self._replicate

    def _level(self, target: str, own: object = None, exclusive: Collection[str] = ()) -> Any:
        """Return the value that a level gives a target, or `own` if no level does.

        Return None if a level sets another of the `exclusive` keys instead of the target.
        """
        for number in self.context.setters.get(target, ()):
            self.read.add(number)
            values = self.context.factors[number].levels[self._row[number]].values
            if target in values:
                return values[target]
        owner, _, key = target.rpartition(".")
        others = (self._level(f"{owner}.{other}") for other in exclusive if key in exclusive)
        return own if all(other is None for other in others) else None

    def labels(self) -> str:
        """Return the levels that were used, for messages: `where path.rtt is 0ms, mtu is 600`."""
        factors = ((self.context.factors[one], self._row[one]) for one in sorted(self.read))
        words = ", ".join(f"{factor.name} is {factor.labels[level]}" for factor, level in factors)
        return words and f"where {words}"

    def evaluate(self, amount: object, where: str) -> Any:
        """Return the value of a formula, or any other quantity unchanged."""
        try:
            return self._scope.value(amount)
        except UnitError as error:
            amounts = amount.amounts if isinstance(amount, Distribution) else (amount,)
            formula = next((one for one in amounts if isinstance(one, Formula)), amount)
            raise self._formula_error(where, str(formula), error) from error

    def _formula_error(self, where: str, text: str, error: UnitError) -> TreatmentError:
        message = ", ".join(filter(None, (f"{self.context.name}: {where}: {error}", self.labels())))
        return TreatmentError(self.context.name, where, text, message)

    def flow_error(self, flow: FlowPlan | keys.Member, message: str) -> TreatmentError:
        """Return an error about a flow, placed at its entry in `traffic`."""
        message = ", ".join(filter(None, (f"flow {flow.label}: {message}", self.labels())))
        return TreatmentError(self.context.name, "traffic flow", flow.group, message)

    def not_taken(self, kind: str, recipe: str, key: str, host: str) -> str:
        """Return the message for a parameter that a recipe does not have, with the recipes that have it."""
        system = self.testbed.hosts[host].system
        known = sorted(self.context.catalogue.names(kind, system))
        able = ", ".join(name for name in known if key in self._declared(kind, name, host)) or "none"
        return f"{kind} {recipe} does not take {key}; {kind}s that take it: {able}"

    def get(self, name: str, /) -> object:
        """Return the value of a name in a formula, which may itself be a Formula; None if it is not set."""
        owner, _, key = name.partition(".")
        if owner == "path":
            key, _, direction = key.partition(".")
            if key == "rtt" and self.path_amount("delay", "down") is not None:
                return None
            return self.path_amount(key, direction)
        if owner == "traffic":
            label, _, key = key.rpartition(".")
            flow = next((flow for flow in self.part.traffic if flow.label == label), None)
            return self.flow_amount(flow, key) if flow else None
        return self.duration_amount() if name == "duration" else self._smallest_setting(name)

    # The path

    def path(self, key: str, direction: str = "") -> Any:
        """Return a path key's value in direction `down` or `up` (`rtt` has no direction).

        The result is None if the key is not set.
        """
        return self.evaluate(self.path_amount(key, direction), f"path.{key}.{direction}".rstrip("."))

    def path_amount(self, key: str, direction: str = "") -> object:
        """Return what path() returns, with formulas unevaluated.

        A delay is None if a level gives the RTT instead.
        """
        own = self.context.path.value(key) if self.context.path else None
        value = self._level(f"path.{key}", own, DELAYS if key == "delay" else ())
        if isinstance(value, Directional) and getattr(value, direction) is None:
            value = own
        if isinstance(value, Directional):
            return getattr(value, direction)
        both = key == "loss_burst" or (self.testbed.device is not None and key in ("rate", "buffer"))
        return value if direction != "up" or both or (key in QUEUE and self._shapes_both()) else None

    def path_class(self, one: keys.PathClass, key: str) -> Any:
        """Return the value of a key of a path class, single or per direction; None if the key is not set."""
        own, exclusive = one.value(key), DELAYS if key in DELAYS else ()
        amount = self._level(f"path.classes.{one.label}.{key}", own, exclusive)
        where = f"path.classes: {key}"
        if isinstance(amount, Directional):
            return Directional(*(self.evaluate(each, where) for each in (amount.down, amount.up)))
        return self.evaluate(amount, where)

    def _shapes_both(self) -> bool:
        path = self.context.path
        return isinstance(self._level("path.rate", path and path.rate_bps), Directional)

    def aqm_parameters(self, aqm: str, router: str) -> dict[str, str]:
        """Return the parameters of queue discipline `aqm` on a router, as text."""
        return self._path_parameters(self._declared("aqm", aqm, router), ("aqm", aqm, router))

    def device_parameters(self) -> dict[str, object]:
        """Return the parameters of the bottleneck device, converted from text to their types."""
        texts = self._path_parameters(keys.DEVICE_PARAMETERS, None)
        return {key: keys.parse_parameter(keys.DEVICE_PARAMETERS[key], text) for key, text in texts.items()}

    def _path_parameters(
        self, declared: Mapping[str, keys.ParameterInfo], recipe: tuple[str, str, str] | None
    ) -> dict[str, str]:
        own = self.context.path.parameters if self.context.path else {}
        return self._parameters("path", own, declared, recipe)

    # Traffic and loggers

    def flow(self, flow: keys.Flow, key: str) -> Any:
        """Return the value of a flow's key; None if it is not set."""
        return self.evaluate(self.flow_amount(flow, key), f"flow {flow.label}: {key}")

    def flow_amount(self, flow: keys.Flow, key: str) -> Any:
        """Return what flow() returns, with formulas unevaluated."""
        return self._level(f"traffic.{flow.label}.{key}", flow.value(key), keys.FLOW_ENDS)

    def arrivals(self, flow: keys.Flow, key: str) -> Any:
        """Return the value of a key of a flow's arrivals; None if it is not set."""
        own = flow.arrivals.value(key) if flow.arrivals else None
        amount = self._level(f"traffic.{flow.label}.arrivals.{key}", own, ARRIVALS_ENDS)
        return self.evaluate(amount, f"flow {flow.label}: arrivals: {key}")

    def flow_parameters(self, flow: keys.Flow, host: str) -> dict[str, str]:
        """Return the parameters of a flow's generator; `host` is the host that sends."""
        recipe = ("generator", self.flow_amount(flow, "generator"), host)
        return self._parameters(f"traffic.{flow.label}", flow.parameters, self._declared(*recipe), recipe)

    def declares(self, flow: keys.Flow, key: str, host: str) -> bool:
        """Return whether a flow's generator has the parameter `key`; `host` is the host that sends."""
        return key in self._declared("generator", self.flow_amount(flow, "generator"), host)

    def transport(self, flow: FlowPlan) -> str:
        """Return the transport of a flow: tcp, udp or icmp."""
        return self.context.catalogue.transport(flow.generator, self.testbed.hosts[flow.from_host].system)

    def ports(self, flow: FlowPlan) -> tuple[int, ...]:
        """Return the ports that a flow's generator uses."""
        system = self.testbed.hosts[flow.from_host].system
        return tuple(flow.port + one for one in self.context.catalogue.ports(flow.generator, system) or (0,))

    def stop(self, key: str) -> Any:
        """Return the value of a key of `stop`; None if it is not set."""
        own = self.part.stop.value(key) if self.part.stop else None
        return self.evaluate(self._level(f"stop.{key}", own), f"stop: {key}")

    def duration_amount(self) -> object:
        """Return the duration of flows that have no end of their own."""
        return self._level("duration", self.part.duration_s)

    def recorder(self, logger: keys.Logger, host: str) -> str:
        """Return the recipe that a logger runs at a host."""
        system = self.testbed.hosts[host].system
        return recorder_of(self.context.catalogue, logger, system) or logger.logger

    def interval_s(self, logger: keys.Logger, host: str) -> float | None:
        """Return the time between a logger's samples in seconds, or None for the recipe's default.

        The result is also None if this host's recipe records each packet; the interval is then meant for
        other hosts.
        """
        recipe, target = self.recorder(logger, host), f"loggers.{logger.logger}.interval"
        if recipe != logger.logger and "interval_s" not in self._declared("logger", recipe, host):
            return None
        amount = self._level(target, logger.interval_s)
        interval_s: float | None = self.evaluate(amount, target)
        info = self._declared("logger", recipe, host).get("interval_s")
        if info is not None and interval_s is not None and keys.below_least(info, interval_s):
            text = str(amount) if isinstance(amount, Formula) else format_duration(interval_s)
            error = UnitError(f"{text} is less than {info.least}, the shortest interval of {recipe}")
            raise self._formula_error(target, text, error)
        return interval_s

    def logger_parameters(self, logger: keys.Logger, host: str) -> dict[str, str]:
        """Return the parameters of a logger's recipe at a host."""
        recipe = self.recorder(logger, host)
        declared = self._declared("logger", recipe, host)
        texts = self._parameters(f"loggers.{logger.logger}", logger.parameters, declared, None)
        if recipe == logger.logger:
            return texts
        return {name: text for name, text in texts.items() if name in declared}

    # Parameters of recipes

    def _declared(self, kind: str, recipe: str, host: str) -> Mapping[str, keys.ParameterInfo]:
        return self.context.catalogue.parameters(kind, recipe, self.testbed.hosts[host].system) or {}

    def _parameters(
        self,
        owner: str,
        own: Mapping[str, str],
        declared: Mapping[str, keys.ParameterInfo],
        recipe: tuple[str, str, str] | None,
    ) -> dict[str, str]:
        """Return a recipe's parameters as text: `own`, overridden by levels that set keys of `owner`.

        A formula is replaced by its value if the recipe declares the parameter as a quantity. A parameter
        that is `off` is left out for a recipe that does not have it. `recipe` has the recipe's kind, its name
        and its host; a parameter that this recipe does not have and that is not `off` is an error.
        """
        texts, reserved = dict(own), keys.varied_keys(owner)
        for target in self.context.setters:
            own_name, _, key = target.rpartition(".")
            level = self._level(target) if own_name == owner and key not in reserved else None
            if level is not None:
                texts[key] = level
        for key, text in texts.items():
            try:
                known = declared.get(key)
                if known is None and recipe is not None and text != OFF:
                    advice = f"; choose another {recipe[0]}, or exclude the combination"
                    raise UnitError(self.not_taken(*recipe[:2], key, recipe[2]) + advice)
                texts[key] = self._evaluated(known, text)
            except UnitError as error:
                raise self._formula_error(f"{owner}.{key}", text, error) from error
        return {key: text for key, text in texts.items() if key in declared or text != OFF}

    def _evaluated(self, info: keys.ParameterInfo | None, text: str) -> str:
        """Return a parameter's text, or the value of a formula as text. Raises UnitError."""
        amount = keys.parse_parameter(info, text, formulas=True) if info else text
        return formula_text(amount, self._scope) if isinstance(amount, Formula) else text

    # Settings of hosts

    def setting(self, key: str, host: str) -> Any:
        """Return cc, rwnd, mtu or txd of a host; None means that the trial does not change it."""
        return self.evaluate(self._setting_amount(key, host), f"{key} of {host}")

    def _setting_amount(self, key: str, host: str) -> Any:
        level = self._level(key)
        if isinstance(level, PerHost):
            level = self.testbed.value_at(host, level.hosts)
        own = self.context.settings[host].get(key)
        return own.value if level is None and own is not None else level

    def names_host(self, key: str, host: str) -> bool:
        """Return whether the level of a setting names this host, by name or role.

        A named host gets the setting even if no flow uses the host.
        """
        factors = (self.context.factors[one] for one in self.context.setters.get(key, ()))
        if not any(isinstance(level.values.get(key), PerHost) for one in factors for level in one.levels):
            return False  # without _level(), which would make the host depend on the factor
        level = self._level(key)
        return isinstance(level, PerHost) and self.testbed.value_at(host, level.hosts) is not None

    def _smallest_setting(self, key: str) -> object:
        """Return the smallest value of a setting on any host, with formulas evaluated."""
        if key not in keys.SETTINGS:
            return None
        values: list[Any] = [
            self._scope.value(self._setting_amount(key, host)) for host in self.testbed.hosts
        ]
        return min((value for value in values if value is not None), default=None)

    def setting_parameters(self, host: str) -> dict[str, dict[str, str]]:
        """Return the parameters of a host's setting recipes as text; `cc` has those of congestion control.

        A formula is replaced by its value.
        """
        levels = (key for key in self.context.setters if key.partition(".")[0] not in keys.NOT_OF_HOSTS)
        found: dict[str, dict[str, str]] = {}
        for key in sorted({*levels, *self.context.settings[host]} - {*keys.SETTINGS, "duration"}):
            recipe, _, parameter = key.rpartition(".")
            text = self._setting_amount(key, host)
            if text is not None:
                try:
                    info = self._declared("setting", recipe, host).get(parameter)
                    found.setdefault(recipe, {})[parameter] = self._evaluated(info, text)
                except UnitError as error:
                    raise self._formula_error(key, text, error) from error
        return found

    def check_settings(self, host: str, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Raise PlanError for a parameter of a setting that the recipes for this host do not have."""
        for recipe, texts in settings.items():
            for parameter in sorted(texts.keys() - self._declared("setting", recipe, host).keys()):
                text, system = texts[parameter], self.testbed.hosts[host].system
                message = f"no setting on {system}, the system of {host}"
                error = UnitError(f"{message}; name the hosts that get it, as in {{sender: {text}}}")
                raise self._formula_error(f"{recipe}.{parameter}", text, error)

    def check_windows(self, flows: Sequence[FlowPlan]) -> None:
        """Raise PlanError if `rwnd` at the receiver of a flow overrides a setting that has another value."""
        for host in sorted({flow.to_host for flow in flows}):
            settings = self.setting_parameters(host)
            for key in CONTRADICT_RWND.get(self.testbed.hosts[host].os, ()):
                recipe, _, parameter = key.partition(".")
                text = settings.get(recipe, {}).get(parameter, OFF)
                windows = (flow.rwnd_bytes for flow in flows if flow.to_host == host)
                if text != OFF and (self.setting("rwnd", host) is not None or any(windows)):
                    message = f"the rwnd of {host} gives this setting another value than {text}"
                    error = UnitError(f"{message}; remove one of the two, or exclude the combination")
                    raise self._formula_error(key, text, error)


def parameters_of_type(
    type_: str, declared: Mapping[str, keys.ParameterInfo], texts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values of a recipe's parameters of type `type_`, by name: in bytes, bit/s or seconds.

    A parameter that is not in `texts` has its default.
    """
    known = {name: info for name, info in declared.items() if info.type == type_}
    used = {name: texts.get(name, info.default) for name, info in known.items()}
    return {name: keys.parse_parameter(known[name], text) for name, text in used.items() if text is not None}
