"""The lease of a host: who holds it, how it is asked for and given back; lease.sh does it there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from samovar.errors import TestbedError
from samovar.hosts.shell_protocol import ShellFolder

DEADLINE_S = 20.0
_SCRIPT = Path(__file__).with_name("lease.sh").read_text()
_TOKEN = re.compile(r"[0-9a-f]{32}")
_SHELL = re.compile(r"(/tmp/samovar-[A-Za-z0-9.-]+) (samovar-[0-9a-f]{16})")
_LONGEST = 200


class LeaseError(TestbedError):
    """A host is held by somebody else."""


@dataclass(frozen=True)
class Claim:
    """What a controller says of itself to hold a host; `values` are words of one line each."""

    token: str
    values: Mapping[str, str]

    @property
    def text(self) -> str:
        """The lines of the lease."""
        return "".join(f"{key} {_line(value)}\n" for key, value in self.values.items())


@dataclass(frozen=True)
class Lease:
    """A lease as it was found on a host; whoever can write there may have written it.

    `left` says how the holder's shell left the host when it lost its controller, empty where it did not say.
    `alive` is whether that shell is still there, `mine` whether the file belongs to the user that asks.
    Times are the host's.
    """

    token: str
    values: Mapping[str, str] = field(default_factory=dict)
    shell: ShellFolder | None = None
    left: Literal["", "restored", "changed"] = ""
    alive: bool = False
    mine: bool = False
    age_s: float = 0.0
    silent_s: float = 0.0


def claim_script(path: str, claim: Claim, folder: ShellFolder, over: str = "") -> str:
    """Return the script that asks for a host: it prints `held`, or what it knows of the lease there.

    `over` is the token of a lease that may be taken over.
    """
    return _script(path, claim, folder, over) + "claim\n"


def release_script(path: str, claim: Claim, folder: ShellFolder) -> str:
    """Return the script that gives a host back; another's lease it leaves alone."""
    return _script(path, claim, folder) + "release\n"


def look_script(path: str) -> str:
    """Return the script that changes nothing: it prints `free`, or what it knows of the lease there."""
    return f"path={shlex.quote(path)} token=\n{_SCRIPT}look\n"


def _script(path: str, claim: Claim, folder: ShellFolder, over: str = "") -> str:
    values = {"path": path, "token": claim.token, "text": claim.text, "over": over}
    shell = {"folder": folder.path, "name": folder.name}
    words = (f"{key}={shlex.quote(value)}\n" for key, value in {**values, **shell}.items())
    return "".join(words) + _SCRIPT


def parse_answer(host: str, text: str) -> Lease | None:
    """Understand what claim_script or look_script printed: who holds the host, None when nobody else does.

    Raises TestbedError for a file that is no lease.
    """
    if text.strip() in ("held", "free"):
        return None
    pairs = [line.split(" ", 2)[1:] for line in text.splitlines() if line.startswith("lease ")]
    told = {pair[0]: _line(pair[1]) for pair in pairs if len(pair) == 2}
    if not _TOKEN.fullmatch(told.get("token", "")):
        raise TestbedError(f"{host}: its lease cannot be read; accepted: one that samovar wrote, or none")
    now_s, heard_s, since_s = (_number(told.get(key, "")) for key in ("now", "heard", "since"))
    return Lease(
        token=told["token"],
        values=told,
        shell=_shell(told.get("shell", "")),
        left=_left([pair for pair in pairs if len(pair) == 2]),
        alive=told.get("alive") == "yes",
        mine=told.get("mine") == "yes",
        age_s=max(0.0, now_s - since_s),
        silent_s=max(0.0, now_s - heard_s),
    )


def _left(pairs: list[list[str]]) -> Literal["", "restored", "changed"]:
    """Take the last word on how the host was left, unless another shell has held it since."""
    left: Literal["", "restored", "changed"] = ""
    for key, value in pairs:
        if key == "shell":
            left = ""
        elif key == "left":
            left = "restored" if value == "restored" else "changed"
    return left


def _shell(text: str) -> ShellFolder | None:
    found = _SHELL.fullmatch(text)
    return ShellFolder(found[1], found[2]) if found else None


def _number(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _line(text: str) -> str:
    """Make a text one short line of what can be printed."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:_LONGEST]
