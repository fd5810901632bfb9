"""Start a lab on each kernel that this machine supports, and run single recipes on its hosts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from samovar import lab
from samovar.campaign.host_state import parse_state, unmet
from samovar.events import silent
from samovar.experiment import load_testbed
from samovar.recipes import Catalogue

ROOT = Path(__file__).parents[2]
CATALOGUE = Catalogue(ROOT / "templates")
KERNELS = ("uml", "native")
MARK = "-- next --"
CONTROLS = frozenset({"cdg", "vegas"})


@dataclass(frozen=True)
class Hosts:
    """The hosts of one running lab."""

    access: lab.Access

    @property
    def kernel(self) -> str:
        """The kernel: uml or native."""
        return self.access.kernel

    def ask(self, host: str, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script on a host, with the shell functions that every script of a trial has."""
        known = "".join(
            CATALOGUE.recipe("step", step, "linux").render("script", values)
            for step, values in (
                ("prelude", {"folder": "/tmp/samovar/test/trial", "campaign": "test"}),
                ("listening", {}),
            )
        )
        command = [*lab.shell_command(self.access, host), "/bin/sh -s"]
        return subprocess.run(
            command, input=known + script, capture_output=True, text=True, timeout=120, check=False
        )

    def run(self, host: str, script: str) -> str:
        """Run a script, which must succeed; return its output."""
        done = self.ask(host, script)
        assert done.returncode == 0, f"{host}: {done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def running(kernel: str, folder: Path) -> Iterator[Hosts]:
    """Run a lab of three hosts on a kernel. Raises LabError if this machine cannot run it."""
    file = folder / "lab.yaml"
    file.write_text((ROOT / "hosts" / "lab.yaml").read_text().replace("kernel: auto", f"kernel: {kernel}"))
    needs = lab.KernelNeeds(CONTROLS if kernel == "uml" else frozenset(), frozenset())
    access = lab.up(load_testbed(file), folder / ".lab", needs, silent)
    try:
        yield Hosts(access)
    finally:
        lab.down(folder / ".lab", silent)


@dataclass(frozen=True)
class SettingStates:
    """The state of a host before a setting, while it was in force, and after the old value was restored.

    `output` is what the command `look` printed while the setting was in force.
    """

    before: Mapping[str, str]
    while_set: Mapping[str, str]
    after: Mapping[str, str]
    unmet: tuple[str, ...]
    output: str


def apply(hosts: Hosts, host: str, name: str, values: Mapping[str, object], look: str = "") -> SettingStates:
    """Read, set and read a setting as a trial does, run the command `look`, then restore and read the setting."""
    recipe = CATALOGUE.recipe("setting", name, "linux")
    read = recipe.render("read", values)
    before = parse_state(hosts.run(host, read))
    was = {**values, "was": before}
    parts = ("", recipe.render("set", was) + read, look + "\n", recipe.render("restore", was) + read)
    said = hosts.run(host, f"echo {MARK}\n".join(parts)).split(f"{MARK}\n")
    wanted = [line.strip() for line in recipe.render("wanted", values).splitlines() if line.strip()]
    while_set = parse_state(said[1])
    return SettingStates(
        before, while_set, parse_state(said[3]), tuple(map(str, unmet(wanted, while_set))), said[2]
    )


def refusal(hosts: Hosts, host: str, name: str, values: Mapping[str, object]) -> str:
    """Try a setting that a host does not support; return the last line of the error message."""
    recipe = CATALOGUE.recipe("setting", name, "linux")
    read = recipe.render("read", values)
    before = parse_state(hosts.run(host, read))
    done = hosts.ask(host, recipe.render("set", {**values, "was": before}))
    assert done.returncode != 0, f"{host}: {name} accepted {values}"
    assert parse_state(hosts.run(host, read)) == before
    return done.stderr.strip().splitlines()[-1]
