"""This controller's configuration, config.yaml."""

from __future__ import annotations

from pydantic import Field

from samovar.definition.fields import Duration, Name, Strict, Word


class SshDefaults(Strict):
    """How long SSH may take."""

    connect_timeout_s: Duration = Field(10.0, alias="connect_timeout")
    keepalive_s: Duration = Field(15.0, alias="keepalive")


class Config(Strict):
    """What holds for every experiment that this controller runs."""

    results: Word = "results"
    testbed: Name = "lab"
    ssh: SshDefaults = SshDefaults()
    step_timeout_s: Duration = Field(60.0, alias="step_timeout")
    clock_tolerance_s: Duration = Field(1.0, alias="clock_tolerance")
