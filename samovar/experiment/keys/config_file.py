"""Keys of the controller's configuration, config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

from samovar.experiment.keys.experiment_file import Calibrate
from samovar.experiment.keys.key_table import SourceFile, Strict, entry
from samovar.experiment.keys.levels import Settings
from samovar.experiment.keys.operating_systems import OPERATING_SYSTEMS
from samovar.experiment.keys.testbed_file import COMMAND
from samovar.experiment.keys.thresholds import Thresholds
from samovar.experiment.keys.value_types import Duration, Name, Pause, Positive, Seed, Size, Word, choice

Occasion = Literal["end", "trouble"]
OCCASIONS: tuple[Occasion, ...] = ("end", "trouble")
PROGRAM = replace(
    COMMAND,
    name="program",
    meaning="a program with its arguments, as a list or as one text",
    examples=("mail -s campaign me@example.org", "[mail, -s, campaign, me@example.org]"),
    parse=str,
)


class SshDefaults(Strict):
    """Time limits of SSH."""

    connect_timeout_s: Duration = entry("Longest time to connect.", 10.0)
    keepalive_s: Duration = entry("Time between keepalive messages.", 15.0)


class System(Strict):
    """Default settings of hosts that run one operating system."""

    settings: Settings = entry("Settings of hosts with this system.", {})


class Uml(Strict):
    """The user-mode kernel that labs boot."""

    program: Word = entry(
        "Kernel: a name on PATH, or a path such as .bin/uml/sid/linux.uml; relative paths are below the "
        "checkout.",
        "linux.uml",
    )
    modules: Word = entry(
        "Folder with a subfolder of modules for each kernel release; relative paths are below the checkout.",
        "/usr/lib/uml/modules",
    )


class Labs(Strict):
    """Virtual labs on this machine."""

    uml: Uml = entry("The user-mode kernel.", Uml.model_construct())


class Notify(Strict):
    """A command that gets a campaign's messages."""

    command: Annotated[tuple[str, ...], PROGRAM] = entry(
        "Program with arguments, run without a shell, such as [mail, -s, campaign, me@example.org]. The "
        "program gets the messages on standard input and in variables named SAMOVAR_*."
    )
    on: tuple[Annotated[Occasion, choice("occasion", *OCCASIONS)], ...] = entry(
        "When the command runs. `end`: when a run ends; `trouble`: at failures, and when a run stops early.",
        OCCASIONS,
    )
    timeout_s: Duration = entry("Longest time that the command may take.", 30.0)


class Config(SourceFile):
    """Defaults and limits of every experiment that this controller runs."""

    results: Word = entry("Folder of all campaigns.", "results")
    testbed: Name = entry("Testbed for commands that do not name a testbed.", "lab")
    ssh: SshDefaults = entry("Time limits of SSH.", SshDefaults.model_construct())
    lab: Labs = entry("Virtual labs on this machine.", Labs.model_construct())
    step_timeout_s: Duration = entry(
        "Longest time of a step on a host, apart from traffic and the collection of files.", 60.0
    )
    clock_tolerance_s: Duration = entry("Largest difference between a host's clock and this machine's.", 1.0)
    calibrate: Calibrate = entry(
        "Whether to measure each path before its first trial; `auto` means `on`, except in labs.", "auto"
    )
    retries: Seed = entry("How many times a failed or invalid trial is repeated within one run.", 2)
    backoff_s: Pause = entry(
        "Pause before a trial is repeated; it doubles each time, up to `backoff_most`.", 5.0
    )
    backoff_most_s: Pause = entry("Longest pause before a trial is repeated.", 300.0)
    quarantine: Positive = entry(
        "A host is quarantined when this many trials with different levels fail in a row because of it.", 3
    )
    host_wait_s: Duration = entry("How long to wait for a lost host before the next trial.", 120.0)
    free_space: Size = entry(
        "Disk space that must stay free during the next trial, on this machine and on hosts.", 200_000_000
    )
    notify: Notify | None = entry("Command that gets a campaign's messages.", None)
    verdict: Thresholds = entry("Limits of the verdict.", Thresholds.model_construct())
    settings: Settings = entry("Settings of every host.", {})
    os: Mapping[Annotated[str, choice("os", *OPERATING_SYSTEMS)], System] = entry(
        "Settings of hosts by operating system, which override those of every host.", {}
    )
