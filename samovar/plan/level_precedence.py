"""Values of one treatment: a factor's level takes precedence over the part, formulas are evaluated on demand.

The levels that are read are recorded (`LevelReader.read`), so that a component which depends on few factors
is resolved once for each combination of their levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samovar.errors import PlanError
from samovar.experiment import (
    ARRIVALS_FIELDS,
    FLOW_ENDS,
    FLOW_FIELDS,
    NOT_OF_HOSTS,
    PATH_FIELDS,
    SETTINGS,
    STOP_FIELDS,
    Directional,
    Distribution,
    DistributionText,
    Flow,
    Formula,
    Level,
    LevelText,
    Logger,
    NetworkPath,
    PerHost,
    Scope,
    SettingsByHost,
    computed_text,
    with_device,
)
from samovar.plan.matrix import Matrix, Row
from samovar.plan.placement import Placement
from samovar.units import UnitError

QUEUE = ("buffer", "aqm")
"""Keys of the path of which one value holds for both directions if the rate is given for both."""
EXCLUSIVE_ARRIVALS = {"until": "count", "count": "until"}
"""Keys of arrivals that exclude each other."""


class FormulaError(PlanError):
    """A formula has no value in a treatment; carries the part, the key and the formula's text."""

    def __init__(self, part: str, where: str, text: str, message: str) -> None:
        self.part, self.where, self.text = part, where, text
        super().__init__(message)


class Levels:
    """The levels of a part's factors, by what they set (their targets, such as `path.rate`)."""

    def __init__(self, matrix: Matrix) -> None:
        self.part, self.factors = matrix.part, matrix.factors
        self.setters: dict[str, list[int]] = {}
        """The numbers of the factors that set each target."""
        self.keys: dict[str, list[str]] = {}
        """The keys that levels set of each owner, such as `path` or `traffic.bulk`."""
        self.per_host: set[str] = set()
        """The targets that some level sets for single hosts."""
        for number, factor in enumerate(self.factors):
            for level in factor.levels:
                if unread := level.texts.keys() - level.values.keys():
                    raise PlanError(
                        f"factor {factor.name}: level '{level.label}' is not a value of {min(unread)}"
                    )
                self.per_host |= {key for key, value in level.values.items() if isinstance(value, PerHost)}
            for target in dict.fromkeys(target for level in factor.levels for target in level.texts):
                self.setters.setdefault(target, []).append(number)
        for target in self.setters:
            owner, _, key = target.rpartition(".")
            self.keys.setdefault(owner, []).append(key)


class LevelReader:
    """The levels of one treatment in one replicate.

    Records the factors that were read, and whether the replicate was: random values depend on it.
    """

    def __init__(self, levels: Levels, row: Row, replicate: int = 1) -> None:
        self.levels, self._row, self._replicate = levels, row, replicate
        self.read: set[int] = set()
        self.random = False

    @property
    def replicate(self) -> int:
        """The replicate, for random values."""
        self.random = True
        return self._replicate

    def typed(self, target: str) -> object:
        """Return the value of the level that sets a target, typed; None if no level does."""
        level = self._level(target)
        return level.values[target] if level else None

    def text(self, target: str) -> LevelText | None:
        """Return the value of the level that sets a target, as written; None if no level does."""
        level = self._level(target)
        return level.texts[target] if level else None

    def _level(self, target: str) -> Level | None:
        for factor in self.levels.setters.get(target, ()):
            self.read.add(factor)
            level = self.levels.factors[factor].levels[self._row[factor]]
            if target in level.texts:
                return level
        return None

    def labels(self) -> str:
        """Return the levels that were read, for messages: `path.rtt is 0ms, mtu is 600`."""
        factors = ((self.levels.factors[one], self._row[one]) for one in sorted(self.read))
        return ", ".join(f"{factor.name} is {factor.levels[level].label}" for factor, level in factors)


class TreatmentValues:
    """The values of a part's keys and of its hosts' settings in one treatment.

    Methods whose name ends in `_amount` return a formula as it is; all others evaluate it. PlanError is
    raised for a formula that has no value in the treatment.
    """

    def __init__(
        self, reader: LevelReader, placement: Placement, settings: SettingsByHost, name: str
    ) -> None:
        self.reader, self.placement, self.name = reader, placement, name
        self.part, self.testbed = reader.levels.part, placement.testbed
        self._settings = settings
        self._path = with_device(self.part.path, self.testbed.device) or NetworkPath()
        self._scope = Scope(_FormulaNames(self))

    def evaluate(self, amount: object, where: str) -> Any:
        """Return the value of a formula, and any other amount as it is."""
        try:
            return self._scope.value(amount)
        except UnitError as error:
            raise self._formula_error(where, str(amount), error) from error

    def _formula_error(self, where: str, text: str, error: UnitError) -> FormulaError:
        message, levels = f"{self.name}: {where}: {error}", self.reader.labels()
        return FormulaError(self.name, where, text, f"{message}, where {levels}" if levels else message)

    def _level_or(self, target: str, own: object) -> Any:
        level = self.reader.typed(target)
        return own if level is None else level

    def _parameters(self, owner: str, fields: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
        """Return the parameters of a recipe: its owner's keys that are not `fields` of the language."""
        texts = dict(own)
        for key in self.reader.levels.keys.get(owner, ()):
            level = self.reader.typed(f"{owner}.{key}") if key not in fields else None
            if level is not None:
                texts[key] = str(level)
        return {key: self._evaluate_text(text, f"{owner}.{key}") for key, text in texts.items()}

    def _evaluate_text(self, text: str, where: str) -> str:
        try:
            return computed_text(text, self._scope)
        except UnitError as error:
            raise self._formula_error(where, text, error) from error

    # The path

    @property
    def has_path(self) -> bool:
        """Whether the part, a level or the testbed's device sets a path."""
        return (self.part.path is not None or self.testbed.device is not None) or any(
            owner.partition(".")[0] == "path" for owner in self.reader.levels.keys
        )

    def path(self, key: str, direction: str) -> Any:
        """Return the value of a key in a direction of the path, `down` or `up`; None if it is not set."""
        return self.evaluate(self.path_amount(key, direction), f"path.{key}.{direction}")

    def path_amount(self, key: str, direction: str) -> object:
        """Return the same with formulas as they are."""
        level = self.reader.typed(f"path.{key}")
        if isinstance(level, Directional) and getattr(level, direction) is None:
            level = None
        value = getattr(self._path, PATH_FIELDS[key]) if level is None else level
        if isinstance(value, Directional):
            return getattr(value, direction)
        both = key == "loss_burst" or (self.testbed.device is not None and key in ("rate", "buffer"))
        if direction == "down" or both or (key in QUEUE and self._shapes_both()):
            return value
        return None

    def _shapes_both(self) -> bool:
        return isinstance(self._level_or("path.rate", self._path.rate_bps), Directional)

    def delay_amount(self, direction: str) -> object:
        """Return the one-way delay; None if the RTT is given in its place."""
        level = self.reader.typed("path.delay")
        if level is None and self.reader.typed("path.rtt") is not None:
            return None
        own = getattr(self._path.delay_s, direction) if self._path.delay_s else None
        over = getattr(level, direction) if isinstance(level, Directional) else level
        return own if over is None else over

    def rtt_amount(self) -> object:
        """Return the RTT that the path adds."""
        return self._level_or("path.rtt", self._path.rtt_s)

    def path_parameters(self) -> dict[str, str]:
        """Return the parameters of the queue discipline, or of the device that is the bottleneck."""
        return self._parameters("path", PATH_FIELDS, self._path.parameters)

    # Traffic

    def flow(self, flow: Flow, key: str) -> Any:
        """Return the value of a flow's key; None if it is not set."""
        return self.evaluate(self.flow_amount(flow, key), f"flow {flow.label}: {key}")

    def flow_amount(self, flow: Flow, key: str) -> Any:
        """Return the same with formulas as they are."""
        level = self.reader.typed(f"traffic.{flow.label}.{key}")
        if level is not None:
            return level
        others = [end for end in FLOW_ENDS if end != key] if key in FLOW_ENDS else []
        hidden = any(self.reader.typed(f"traffic.{flow.label}.{end}") is not None for end in others)
        return None if hidden else getattr(flow, FLOW_FIELDS[key])

    def arrivals(self, flow: Flow, key: str) -> Any:
        """Return the value of a key of a flow's arrivals; None if it is not set."""
        owner = f"traffic.{flow.label}.arrivals"
        amount: object = self.reader.typed(f"{owner}.{key}")
        other = EXCLUSIVE_ARRIVALS.get(key)
        if amount is None and (other is None or self.reader.typed(f"{owner}.{other}") is None):
            amount = getattr(flow.arrivals, ARRIVALS_FIELDS[key])
        return self.evaluate(amount, f"flow {flow.label}: arrivals: {key}")

    def flow_parameters(self, flow: Flow) -> dict[str, str]:
        """Return the parameters of a flow's generator."""
        return self._parameters(f"traffic.{flow.label}", FLOW_FIELDS, flow.parameters)

    def stop(self, key: str) -> Any:
        """Return the value of a key of `stop`; None if it is not set."""
        own = getattr(self.part.stop, STOP_FIELDS[key]) if self.part.stop is not None else None
        return self.evaluate(self._level_or(f"stop.{key}", own), f"stop: {key}")

    def duration_amount(self) -> object:
        """Return how long flows last that have no end of their own."""
        return self._level_or("duration", self.part.duration_s)

    # Loggers

    def interval_s(self, logger: Logger) -> float | None:
        """Return the time between a logger's samples in seconds; None leaves it to the recipe."""
        target = f"loggers.{logger.logger}.interval"
        interval_s: float | None = self.evaluate(self._level_or(target, logger.interval_s), target)
        return interval_s

    def logger_parameters(self, logger: Logger) -> dict[str, str]:
        """Return the parameters of a logger's recipe."""
        return self._parameters(f"loggers.{logger.logger}", {"interval": ""}, logger.parameters)

    # Settings of hosts

    def setting(self, key: str, host: str) -> Any:
        """Return cc, rwnd, mtu or txd of a host; None leaves it as it was found."""
        return self.evaluate(self._setting_amount(key, host), f"{key} of {host}")

    def _setting_amount(self, key: str, host: str) -> object:
        level = self._at_host(key, self.reader.typed(key), host)
        own = self._settings[host].get(key)
        return own.value if level is None and own is not None else level

    def _setting_text(self, key: str, host: str) -> str | None:
        level: str | None = self._at_host(key, self.reader.text(key), host)
        own = self._settings[host].get(key)
        return own.text if level is None and own is not None else level

    def _at_host(self, key: str, level: Any, host: str) -> Any:
        """Return the value of a level for one host; None if it has none for this host."""
        if isinstance(level, Directional | Distribution | DistributionText):
            raise PlanError(f"{key}: a host has no directions; use one value, or one for each host")
        return self.testbed.value_at(host, level.hosts) if isinstance(level, PerHost) else level

    def names_host(self, key: str, host: str) -> bool:
        """Return whether a level names this host, which is then set even without a part in the traffic."""
        if key not in self.reader.levels.per_host:
            return False
        level = self.reader.typed(key)
        return isinstance(level, PerHost) and self.testbed.value_at(host, level.hosts) is not None

    def common_setting_amount(self, key: str) -> object:
        """Return the value of a setting for formulas: the smallest of all hosts; None if no host has one."""
        if key not in SETTINGS:
            return None
        amounts = [self._setting_amount(key, host) for host in self.testbed.hosts]
        known: list[Any] = [amount for amount in amounts if amount is not None]
        formulas = [amount for amount in known if isinstance(amount, Formula)]
        return formulas[0] if formulas else min(known, default=None)

    def setting_parameters(self, host: str) -> dict[str, dict[str, str]]:
        """Return the other settings of a host, those of cc included: recipe to parameters as written."""
        of_levels = {
            target
            for target in self.reader.levels.setters
            if target.partition(".")[0] not in (*NOT_OF_HOSTS, "duration")
        }
        found: dict[str, dict[str, str]] = {}
        for key in sorted({*of_levels, *self._settings[host]} - SETTINGS.keys()):
            recipe, _, parameter = key.rpartition(".")
            text = self._setting_text(key, host)
            if text is not None:
                found.setdefault(recipe, {})[parameter] = text
        return found


class _FormulaNames:
    """The values that formulas may name."""

    def __init__(self, values: TreatmentValues) -> None:
        self._values = values

    def get(self, name: str, /) -> object:
        """Return the value of a canonical name, formulas as they are; None if it is not set."""
        values, (owner, _, key) = self._values, name.partition(".")
        if owner == "path":
            return self._of_path(key)
        if owner == "traffic":
            label, _, key = key.rpartition(".")
            flow = next((flow for flow in values.part.traffic if flow.label == label), None)
            return values.flow_amount(flow, key) if flow else None
        return values.duration_amount() if name == "duration" else values.common_setting_amount(name)

    def _of_path(self, key: str) -> object:
        values, (name, _, direction) = self._values, key.partition(".")
        if not values.has_path:
            return None
        if key == "rtt":
            return values.rtt_amount() if values.delay_amount("down") is None else None
        return values.delay_amount(direction) if name == "delay" else values.path_amount(name, direction)
