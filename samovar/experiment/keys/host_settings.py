"""The settings of hosts as they stand in a file: one value, or one per host or role."""

from __future__ import annotations

from collections.abc import Mapping

from samovar.experiment.keys.field_types import Word
from samovar.experiment.keys.levels import Setting

Settings = Mapping[Word, Setting]
