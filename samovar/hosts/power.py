"""Switch the power of machines: run ipmitool, or commands of the testbed file, on the controller."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, TimeoutExpired, run
from typing import Literal

from samovar.errors import TestbedError
from samovar.experiment import Ipmi, Power, Testbed
from samovar.secrets import redacted

Action = Literal["on", "off", "cycle", "status"]
POWER_ACTIONS: tuple[Action, ...] = ("on", "off", "cycle", "status")
COMMAND_DEADLINE_S = 60.0
DISCHARGE_S = 5.0
"""The pause between `off` and `on` in a power cycle, during which the machine's power supply discharges."""
OUTPUT_CHARACTERS = 300
"""An error message quotes at most this many characters of a failed command's output."""


@dataclass(frozen=True)
class Machine:
    """The machine of a host: how long it may take to boot, and the commands that switch its power.

    `system` is the operating system, whose recipes read the machine's boot id and free disk space.
    """

    host: str
    address: str
    boot_timeout_s: float = 300.0
    power: Power | None = None
    system: str = "linux"

    def switch(self, action: Action) -> str:
        """Switch the power of the machine, or query its state; return the output, with passwords removed.

        Raises TestbedError if the testbed file has no command for the action, or if the command fails.
        """
        power = self.power
        if power is None:
            raise TestbedError(
                f"{self.host}: no `power:` for this host in the testbed file; add it to switch its power"
            )
        if power.ipmi is not None:
            if action == "cycle" and self.switch("status").endswith("is off"):
                action = "on"  # IPMI refuses to cycle a machine that is off (IPMI 2.0, section 28.3)
            return self._run(action, _ipmitool(self.host, power.ipmi, action))
        if action == "cycle" and power.cycle is None:
            output = self.switch("off")
            time.sleep(DISCHARGE_S)
            return output + self.switch("on")
        command: tuple[str, ...] | None = getattr(power, action)
        if command is None:
            known = ", ".join(name for name in POWER_ACTIONS if getattr(power, name) is not None)
            raise TestbedError(f"{self.host}: no command for power {action}; accepted: {known}")
        values = {"host": self.host, "address": self.address, "outlet": power.outlet or ""}
        return self._run(action, [word.format_map(values) for word in command])

    def switch_on(self) -> str:
        """Switch on the machine, or cycle its power if it has no command `on`. Raises TestbedError."""
        known = self.power is not None and (self.power.ipmi is not None or self.power.on is not None)
        return self.switch("on" if known else "cycle")

    def _run(self, action: Action, command: list[str]) -> str:
        where = f"{self.host}: power {action}: {command[0]}"
        try:
            done = run(
                command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, timeout=COMMAND_DEADLINE_S, check=False
            )
        except TimeoutExpired:
            raise TestbedError(f"{where}: did not end within {COMMAND_DEADLINE_S:g} s") from None
        except OSError as error:
            raise TestbedError(f"{where}: cannot be run: {error.strerror}") from None
        output = done.stdout.decode(errors="replace").strip()
        if self.power is not None and self.power.ipmi is not None:
            password = _password_file(self.host, self.power.ipmi).read_text(errors="replace").strip()
            output = output.replace(password, "…") if password else output
        output = redacted(output, os.environ)
        if done.returncode:
            quoted = output[-OUTPUT_CHARACTERS:] or "no output"
            raise TestbedError(f"{where}: exit code {done.returncode}: {quoted}")
        return output


def machines_of(testbed: Testbed) -> dict[str, Machine]:
    """Return the machine of each host of a testbed."""
    return {
        name: Machine(name, host.address, host.boot_timeout_s, host.power, host.system)
        for name, host in testbed.hosts.items()
    }


def _ipmitool(host: str, ipmi: Ipmi, action: Action) -> list[str]:
    """Return the command line of ipmitool for an action on a host's power.

    With -f, ipmitool reads the password from a file, so that lists of processes do not show it.
    """
    if shutil.which("ipmitool") is None:
        raise TestbedError(f"{host}: power {action}: ipmitool is not installed; apt install ipmitool")
    file = str(_password_file(host, ipmi))
    login = ["-H", ipmi.address, "-U", ipmi.user, "-f", file]
    return ["ipmitool", "-I", "lanplus", *login, "chassis", "power", action]


def _password_file(host: str, ipmi: Ipmi) -> Path:
    file = Path(ipmi.password_file).expanduser()
    try:
        mode = file.stat().st_mode
    except OSError as error:
        raise TestbedError(f"{host}: ipmi: {file}: {error.strerror}; give a file of mode 600") from None
    if mode & 0o077:
        raise TestbedError(
            f"{host}: ipmi: {file}: mode {mode & 0o777:o} gives other users access; set it to 600"
        )
    if not os.access(file, os.R_OK):
        raise TestbedError(
            f"{host}: ipmi: {file}: cannot be read; it must belong to the user who runs samovar"
        )
    return file
