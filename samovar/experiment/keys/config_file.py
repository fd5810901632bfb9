"""Keys of the controller's configuration, config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr

from samovar.experiment.keys.experiment_file import Calibrate, Thresholds
from samovar.experiment.keys.key_table import Strict
from samovar.experiment.keys.levels import Settings
from samovar.experiment.keys.operating_systems import OPERATING_SYSTEMS
from samovar.experiment.keys.testbed_file import PROGRAM_SCHEMA, ProgramType
from samovar.experiment.keys.value_types import Duration, Name, Pause, Positive, Seed, Size, Word, choice
from samovar.experiment.yaml.tree import Map

Occasion = Literal["end", "trouble"]
OCCASIONS: tuple[Occasion, ...] = ("end", "trouble")
PROGRAM = ProgramType(
    "program",
    "a program with its arguments, as a list or as one text",
    ("mail -s campaign me@example.org", "[mail, -s, campaign, me@example.org]"),
    PROGRAM_SCHEMA,
    str,
)


class SshDefaults(Strict):
    """Time limits of SSH."""

    connect_timeout_s: Duration = Field(10.0, alias="connect_timeout", description="Longest time to connect.")
    keepalive_s: Duration = Field(15.0, alias="keepalive", description="Time between keepalive messages.")


class System(Strict):
    """Defaults of the hosts of one operating system."""

    settings: Settings = Field(
        default_factory=dict, description="Settings of its hosts, over those of every host."
    )


class Uml(Strict):
    """The user-mode kernel that labs boot; relative paths are below the checkout."""

    program: Word = Field(
        "linux.uml", description="Path of the kernel, or its name on PATH, such as .bin/uml/sid/linux.uml."
    )
    modules: Word = Field(
        "/usr/lib/uml/modules",
        description="Folder with a folder of modules for its release, such as .bin/uml/sid/modules.",
    )


class Labs(Strict):
    """Virtual labs on this machine."""

    uml: Uml = Field(Uml(), description="The user-mode kernel.")


class Notify(Strict):
    """A command that gets messages of a campaign: the text on its input, its parts in SAMOVAR_… variables."""

    command: Annotated[tuple[str, ...], PROGRAM] = Field(
        description="Program and arguments; it runs on the controller, without a shell."
    )
    on: tuple[Annotated[Occasion, choice("occasion", *OCCASIONS)], ...] = Field(
        OCCASIONS,
        description="When to send: at the end of each run, at trouble (failures, and what stops the run).",
    )
    timeout_s: Duration = Field(30.0, alias="timeout", description="Longest time that the command may take.")


class Config(Strict):
    """Defaults and limits of every experiment that this controller runs."""

    results: Word = Field("results", description="Folder of all campaigns.")
    testbed: Name = Field("lab", description="Testbed of commands that name none.")
    ssh: SshDefaults = Field(SshDefaults(), description="Time limits of SSH.")
    lab: Labs = Field(Labs(), description="Virtual labs on this machine.")
    step_timeout_s: Duration = Field(
        60.0, alias="step_timeout", description="Longest time of one remote step without traffic."
    )
    clock_tolerance_s: Duration = Field(
        1.0,
        alias="clock_tolerance",
        description="Largest difference between a host's clock and this machine's.",
    )
    calibrate: Calibrate = Field(
        "auto",
        description="Whether each path is measured before its first trial; auto: except in labs.",
    )
    retries: Seed = Field(2, description="How often a failed or invalid trial is repeated within one run.")
    backoff_s: Pause = Field(
        5.0,
        alias="backoff",
        description="Pause before a trial is repeated; it doubles each time, up to backoff_most.",
    )
    backoff_most_s: Pause = Field(
        300.0, alias="backoff_most", description="Longest pause before a trial is repeated."
    )
    quarantine: Positive = Field(
        3,
        description="Number of failed trials in a row, due to one host, after which it is no longer used; "
        "trials that need it do not run.",
    )
    host_wait_s: Duration = Field(
        120.0,
        alias="host_wait",
        description="How long to wait, before the next trial, for a host that was lost.",
    )
    free_space: Size = Field(
        200_000_000,
        description="Disk space kept free, here and on each host, beyond the need of the next trial.",
    )
    notify: Notify | None = Field(
        None, description="Command to run at the end of a campaign and at trouble in it."
    )
    verdict: Thresholds = Field(Thresholds(), description="Bounds of the verdict.")
    settings: Settings = Field(
        default_factory=dict,
        description="Settings of every host, which testbeds, hosts and experiments override.",
    )
    os: Mapping[Annotated[str, choice("os", *OPERATING_SYSTEMS)], System] = Field(
        default_factory=dict, description="Defaults of the hosts of one operating system, over settings."
    )

    _written: Map | None = PrivateAttr(None)

    @property
    def written(self) -> Map | None:
        """Return the file's own tree with its positions, from which origins of settings are known."""
        return self._written

    def with_source(self, tree: Map) -> Config:
        """Return this configuration with the tree it was read from."""
        copy = self.model_copy()
        copy._written = tree
        return copy
