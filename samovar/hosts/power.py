"""Switching machines on and off: commands on the controller, each an argument list and never a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from samovar.errors import TestbedError
from samovar.experiment import Ipmi, Power, Testbed, redacted

Action = Literal["on", "off", "cycle", "status"]
POWER_ACTIONS: tuple[Action, ...] = ("on", "off", "cycle", "status")
COMMAND_DEADLINE_S = 60.0
DISCHARGE_S = 5.0
"""How long a machine stays off between `off` and `on`: a supply's capacitors carry it over less."""
MOST_SAID = 300


@dataclass(frozen=True)
class Machine:
    """One host as hardware: how long it may take to boot, and how it is switched when it does not."""

    host: str
    address: str
    boot_timeout_s: float = 300.0
    power: Power | None = None

    def switch(self, action: Action) -> str:
        """Switch the machine, or ask whether it is on; return what the command said.

        Raises TestbedError when there is no way to, or the command fails. No password is in what is said.
        """
        if self.power is None:
            raise TestbedError(f"{self.host}: no power in the testbed file; accepted: power: under the host")
        if self.power.ipmi is not None:
            return self._by_ipmi(self.power.ipmi, action)
        if action == "cycle" and self.power.cycle is None:
            said = self.switch("off")
            time.sleep(DISCHARGE_S)
            return said + self.switch("on")
        command: tuple[str, ...] | None = getattr(self.power, action)
        if command is None:
            known = ", ".join(name for name in POWER_ACTIONS if getattr(self.power, name) is not None)
            raise TestbedError(f"{self.host}: no command for power {action}; accepted: {known}")
        return self._run(action, [word.format_map(self._values()) for word in command])

    def switch_on(self) -> str:
        """Switch on a machine that does not answer, by a cycle where no other way is known.

        Raises TestbedError as `switch` does.
        """
        known = self.power is not None and (self.power.ipmi is not None or self.power.on is not None)
        return self.switch("on" if known else "cycle")

    def _by_ipmi(self, ipmi: Ipmi, action: Action) -> str:
        if action == "cycle" and self.switch("status").endswith("is off"):
            action = "on"  # a cycle of what is off is an error (IPMI 2.0, section 28.3)
        return self._run(action, _ipmitool(self.host, ipmi, action))

    def _values(self) -> Mapping[str, str]:
        outlet = self.power.outlet if self.power else None
        return {"host": self.host, "address": self.address, "outlet": outlet or ""}

    def _run(self, action: Action, command: list[str]) -> str:
        where = f"{self.host}: power {action}: {command[0]}"
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=COMMAND_DEADLINE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TestbedError(f"{where}: no end within {COMMAND_DEADLINE_S:g} s") from None
        except OSError as error:
            raise TestbedError(f"{where}: cannot be run: {error.strerror}") from None
        said = redacted(self._without_password(done.stdout.decode(errors="replace").strip()), os.environ)
        if done.returncode:
            raise TestbedError(
                f"{where}: exit code {done.returncode}: {said[-MOST_SAID:] or 'it said nothing'}"
            )
        return said

    def _without_password(self, text: str) -> str:
        if self.power is None or self.power.ipmi is None:
            return text
        password = _password_file(self.host, self.power.ipmi).read_text(errors="replace").strip()
        return text.replace(password, "…") if password else text


def machines_of(testbed: Testbed) -> dict[str, Machine]:
    """Return the hosts of a testbed as hardware."""
    return {
        name: Machine(name, host.address, host.boot_timeout_s, host.power)
        for name, host in testbed.hosts.items()
    }


def _ipmitool(host: str, ipmi: Ipmi, action: Action) -> list[str]:
    """Return the command; -f has ipmitool read the password itself, so that no process list shows it."""
    if shutil.which("ipmitool") is None:
        raise TestbedError(f"{host}: power {action}: no ipmitool here; apt install ipmitool")
    file = _password_file(host, ipmi)
    return [
        "ipmitool",
        "-I",
        "lanplus",
        "-H",
        ipmi.address,
        "-U",
        ipmi.user,
        "-f",
        str(file),
        *_words(action),
    ]


def _words(action: Action) -> tuple[str, str, str]:
    return "chassis", "power", action


def _password_file(host: str, ipmi: Ipmi) -> Path:
    file = Path(ipmi.password_file).expanduser()
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise TestbedError(f"{host}: ipmi: {file}: {error.strerror}; accepted: a file of mode 600") from None
    if mode & 0o077:
        raise TestbedError(f"{host}: ipmi: {file}: mode {mode & 0o777:o}, others may read it; accepted: 600")
    if not os.access(file, os.R_OK):
        raise TestbedError(f"{host}: ipmi: {file}: cannot be read; accepted: a file of yours, of mode 600")
    return file
