"""The settings of hosts as they stand in a file: one value, or one per host or role."""

from __future__ import annotations

from collections.abc import Mapping

from samovar.definition.factor_levels import Setting
from samovar.definition.fields import Word

Settings = Mapping[Word, Setting]
