"""What each host is set to by its layers and the levels: cc, rwnd, mtu and txd typed, all others as texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from samovar.errors import PlanError
from samovar.experiment import (
    NOT_OF_HOSTS,
    SETTINGS,
    Directional,
    DistributionText,
    Formula,
    PerHost,
    SettingsByHost,
)
from samovar.plan.places import Places
from samovar.plan.treatments import Reader


class Computing(Protocol):
    """What computes formulas."""

    def computed(self, amount: object, where: str) -> Any:
        """Return a formula's value, and anything else as it is; raises PlanError."""


class HostSettings:
    """The settings of every host in one treatment: levels override the settings resolved at load."""

    def __init__(self, reader: Reader, places: Places, settings: SettingsByHost, formulas: Computing) -> None:
        self.reader, self.testbed, self.settings, self.formulas = reader, places.testbed, settings, formulas

    def text(self, key: str, host: str) -> str | None:
        """Return what a host is set to, as written; None if it is not set."""
        level: str | None = self._at(host, key, self.reader.text(key))
        if level is not None or key not in self.settings[host]:
            return level
        return self.settings[host][key].text

    def typed(self, key: str, host: str) -> object:
        """Return cc, rwnd, mtu or txd of a host, formulas not evaluated; None if it is not set."""
        level = self._at(host, key, self.reader.get(key))
        if level is not None or key not in self.settings[host]:
            return level
        return self.settings[host][key].value

    def _at(self, host: str, key: str, level: Any) -> Any:
        """Return the value of a level at one host; None where it has none for this host."""
        if isinstance(level, Directional | DistributionText):
            raise PlanError(f"{key}: a host has no directions; expected one value, or one for each host")
        return self.testbed.value_at(host, level.hosts) if isinstance(level, PerHost) else level

    def names_host(self, key: str, host: str) -> bool:
        """Return whether a level names this host, which then is set whatever its part in the traffic."""
        if key not in self.reader.design.per_host:
            return False
        over = self.reader.get(key)
        return isinstance(over, PerHost) and self.testbed.value_at(host, over.hosts) is not None

    def value(self, key: str, host: str) -> Any:
        """Return cc, rwnd, mtu or txd of a host, computed."""
        return self.formulas.computed(self.typed(key, host), f"{key} of {host}")

    def common(self, key: str) -> object:
        """Return one value of a setting for formulas: the smallest of all hosts'; None when none has one."""
        if key not in SETTINGS:
            return None
        found = [value for host in self.testbed.hosts if (value := self.typed(key, host)) is not None]
        formulas = [value for value in found if isinstance(value, Formula)]
        return formulas[0] if formulas else min(found, default=None)  # type: ignore[type-var]

    def parameters(self, host: str) -> dict[str, dict[str, str]]:
        """Return the other settings of a host: recipe to parameters as written, cc's among them."""
        found: dict[str, dict[str, str]] = {}
        for key in sorted({*self._keys(), *self.settings[host]} - SETTINGS.keys()):
            recipe, _, parameter = key.rpartition(".")
            text = self.text(key, host)
            if text is not None:
                found.setdefault(recipe, {})[parameter] = text
        return found

    def _keys(self) -> Iterator[str]:
        for target in self.reader.design.setters:
            if target.partition(".")[0] not in (*NOT_OF_HOSTS, "duration"):
                yield target
