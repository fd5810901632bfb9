"""This controller's configuration, config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, PrivateAttr

from samovar.definition.fields import Duration, Name, Strict, Word, choice
from samovar.definition.settings import Settings
from samovar.definition.testbed import OSES
from samovar.definition.yamltext import Map


class SshDefaults(Strict):
    """How long SSH may take."""

    connect_timeout_s: Duration = Field(10.0, alias="connect_timeout")
    keepalive_s: Duration = Field(15.0, alias="keepalive")


class System(Strict):
    """What holds for every host of one operating system."""

    settings: Settings = Field(default_factory=dict)


class Config(Strict):
    """What holds for every experiment that this controller runs."""

    results: Word = "results"
    testbed: Name = "lab"
    ssh: SshDefaults = SshDefaults()
    step_timeout_s: Duration = Field(60.0, alias="step_timeout")
    clock_tolerance_s: Duration = Field(1.0, alias="clock_tolerance")
    settings: Settings = Field(default_factory=dict)
    os: Mapping[Annotated[str, choice("os", *OSES)], System] = Field(default_factory=dict)

    _written: Map | None = PrivateAttr(None)

    @property
    def written(self) -> Map | None:
        """Return the file's own tree with its places: origins of settings start from it."""
        return self._written

    def with_source(self, tree: Map) -> Config:
        """Return this configuration remembering the tree it was read from."""
        copy = self.model_copy()
        copy._written = tree
        return copy
