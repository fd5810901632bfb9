"""This controller's configuration, config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr

from samovar.experiment.keys.field_types import (
    Duration,
    Name,
    Pause,
    Positive,
    Seed,
    Size,
    Strict,
    Word,
    choice,
)
from samovar.experiment.keys.host_settings import Settings
from samovar.experiment.keys.notify import Notify
from samovar.experiment.keys.testbed_file import OSES
from samovar.experiment.keys.verdict_thresholds import Calibrate, Thresholds
from samovar.experiment.yaml.tree import Map


class SshDefaults(Strict):
    """How long SSH may take."""

    connect_timeout_s: Duration = Field(
        10.0, alias="connect_timeout", description="Longest time that a connection may take to stand."
    )
    keepalive_s: Duration = Field(
        15.0, alias="keepalive", description="Time between messages that keep a connection alive."
    )


class System(Strict):
    """What holds for every host of one operating system."""

    settings: Settings = Field(
        default_factory=dict, description="What its hosts are set to where nothing else is said."
    )


class Uml(Strict):
    """The user-mode kernel that labs boot; paths are of this machine, relative ones below the checkout."""

    program: Word = Field(
        "linux.uml", description="The kernel, by a path or a name on PATH, such as .bin/uml/sid/linux.uml."
    )
    modules: Word = Field(
        "/usr/lib/uml/modules",
        description="Folder that holds a folder of modules for its release, such as .bin/uml/sid/modules.",
    )


class Labs(Strict):
    """What virtual labs are made of on this machine."""

    uml: Uml = Field(Uml(), description="The user-mode kernel.")


class Config(Strict):
    """What holds for every experiment that this controller runs."""

    results: Word = Field("results", description="Folder of all campaigns.")
    testbed: Name = Field("lab", description="Testbed for commands that name none.")
    ssh: SshDefaults = Field(SshDefaults(), description="How long SSH may take.")
    lab: Labs = Field(Labs(), description="What virtual labs are made of on this machine.")
    step_timeout_s: Duration = Field(
        60.0, alias="step_timeout", description="Longest time that one remote step without traffic may take."
    )
    clock_tolerance_s: Duration = Field(
        1.0,
        alias="clock_tolerance",
        description="Largest difference between a host's clock and this machine's.",
    )
    calibrate: Calibrate = Field(
        "auto",
        description="Whether each path is measured before its first trial; auto: on real testbeds, not in "
        "a lab.",
    )
    retries: Seed = Field(
        2, description="How often a trial that failed or is invalid is run again within one run."
    )
    backoff_s: Pause = Field(
        5.0,
        alias="backoff",
        description="Pause before a trial is run again; it doubles each time, up to backoff_most.",
    )
    backoff_most_s: Pause = Field(
        300.0, alias="backoff_most", description="Longest pause before a trial is run again."
    )
    quarantine: Positive = Field(
        3,
        description="After so many trials in a row that failed naming a host, it is not used any more, nor "
        "are trials run that need it.",
    )
    host_wait_s: Duration = Field(
        120.0,
        alias="host_wait",
        description="How long a host that was lost in a trial is waited for before the next one.",
    )
    free_space: Size = Field(
        200_000_000,
        description="Disk that stays free, here and on each host, beyond what the next trial needs.",
    )
    notify: Notify | None = Field(
        None, description="Command that is told of the end of a campaign and of trouble in it."
    )
    verdict: Thresholds = Field(Thresholds(), description="When a trial is suspect or invalid.")
    settings: Settings = Field(
        default_factory=dict,
        description="What every host is set to where no testbed, host or experiment says otherwise.",
    )
    os: Mapping[Annotated[Literal["linux", "freebsd"], choice("os", *OSES)], System] = Field(
        default_factory=dict, description="What hosts of one operating system are set to, over settings."
    )

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
