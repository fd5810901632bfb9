"""Make the scripts that claim, show and release the lease of a host (lease.sh), and parse their output."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from samovar.errors import TestbedError
from samovar.hosts.remote_shell import ShellFolder

DEADLINE_S = 20.0
_SCRIPT = Path(__file__).with_name("lease.sh").read_text()
_TOKEN = re.compile(r"[0-9a-f]{32}")
_SHELL = re.compile(r"(/tmp/samovar-[A-Za-z0-9.-]+) (samovar-[0-9a-f]{16})")
_LONGEST = 200


class LeaseError(TestbedError):
    """The lease of a host is held by another campaign or user."""


@dataclass(frozen=True)
class Claim:
    """A controller's claim to a host.

    `values` maps keys of the lease file to texts that describe the controller; `token` is random.
    """

    token: str
    values: Mapping[str, str]

    @property
    def text(self) -> str:
        """The values as the lines of the lease file, one `KEY VALUE` per line."""
        return "".join(f"{key} {_one_line(value)}\n" for key, value in self.values.items())


@dataclass(frozen=True)
class Lease:
    """The lease file of a host. Its content is not trusted, because any user of the host may have written it.

    `shell` is the holder's shell on the host. `left` is the state in which this shell left the host after it
    lost its controller, or empty if unknown. `alive` is True if the shell still runs. `mine` is True if the
    file belongs to the user who logs in now. `age_s` is the time since the claim, and `silent_s` is the time
    since the last heartbeat, both by the host's clock.
    """

    token: str
    values: Mapping[str, str] = field(default_factory=dict)
    shell: ShellFolder | None = None
    left: Literal["", "restored", "changed"] = ""
    alive: bool = False
    mine: bool = False
    age_s: float = 0.0
    silent_s: float = 0.0


def lease_script(
    action: Literal["claim", "look", "release"], path: str, claim: Claim, folder: ShellFolder, over: str = ""
) -> str:
    """Return the script that claims a host, shows its lease, or releases it.

    The script prints `held` if the claim succeeded, `free` if nobody holds a lease, and otherwise the
    existing lease. `over` is the token of another holder's lease that the claim may replace. The lease of
    another holder is never released.
    """
    values = {"path": path, "token": claim.token, "text": claim.text, "over": over}
    values |= {"folder": folder.path, "name": folder.name}
    words = (f"{key}={shlex.quote(value)}\n" for key, value in values.items())
    return "".join(words) + _SCRIPT + f"{action}\n"


def parse_answer(host: str, text: str) -> Lease | None:
    """Return the lease in the output of lease_script(), or None if the output is `held` or `free`.

    Raises TestbedError.
    """
    if text.strip() in ("held", "free"):
        return None
    lines = (line.split(" ", 2)[1:] for line in text.splitlines() if line.startswith("lease "))
    pairs = [(line[0], _one_line(line[1])) for line in lines if len(line) == 2]
    values = dict(pairs)
    if not _TOKEN.fullmatch(values.get("token", "")):
        raise TestbedError(
            f"{host}: its lease file was not written by samovar; remove the file if no campaign uses the host"
        )
    left: Literal["", "restored", "changed"] = ""
    for key, value in pairs:
        if key == "shell":  # a later line `shell` means that another shell has taken the lease
            left = ""
        elif key == "left":
            left = "restored" if value == "restored" else "changed"
    shell = _SHELL.fullmatch(values.get("shell", ""))
    now_s, heard_s, since_s = (_number(values.get(key, "")) for key in ("now", "heard", "since"))
    return Lease(
        token=values["token"],
        values=values,
        shell=ShellFolder(shell[1], shell[2]) if shell else None,
        left=left,
        alive=values.get("alive") == "yes",
        mine=values.get("mine") == "yes",
        age_s=max(0.0, now_s - since_s),
        silent_s=max(0.0, now_s - heard_s),
    )


def _number(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _one_line(text: str) -> str:
    """Return a text with unprintable characters replaced by `?`, cut to 200 characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:_LONGEST]
