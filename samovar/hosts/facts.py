"""What a host is and has: each fact a command and a pure parser, all commands in one script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from samovar.errors import RecipeError, TestbedError
from samovar.hosts.fact_parsers import (
    Interface,
    Sudo,
    parse_cc_available,
    parse_cc_parameters,
    parse_clock,
    parse_clock_source,
    parse_disk_free_bytes,
    parse_dmesg_rings,
    parse_ifconfig,
    parse_interfaces,
    parse_number,
    parse_os_release,
    parse_pauses,
    parse_qdiscs,
    parse_rings,
    parse_sudo,
    parse_tools,
    parse_words,
)
from samovar.hosts.session import Session
from samovar.recipes import Catalogue, Recipe, SudoCommand, quote
from samovar.recipes.sudo_rules import inner_programs

DEADLINE_S = 60.0
CLOCK_READINGS = 3
# fmt: off
DEFAULT_PROGRAMS = (
    "awk", "chronyc", "ethtool", "grep", "gzip", "ip", "iperf", "iperf3", "modprobe", "ntpq", "nuttcp",
    "ping", "python3", "sed", "sha256sum", "ss", "sysctl", "tc", "tcpdump", "timeout",
)
"""The programs that are looked for unless others are named."""

# ip and ss come with tc; python3 takes longer to say than all others together.
_VERSION_FLAGS = {
    "ethtool": "--version",
    "iperf": "-v",
    "iperf3": "--version",
    "nuttcp": "-V",
    "tc": "-V",
    "tcpdump": "--version",
}
DEFAULT_QDISCS = (
    "bfifo", "cake", "codel", "fq", "fq_codel", "fq_pie", "htb", "netem", "pfifo", "pie", "red", "sfq", "tbf",
)
"""The queue disciplines that are tried unless others are named."""
# fmt: on

_QDISC_ARGUMENTS = {
    "choke": "limit 100 bandwidth 1mbit",
    "red": "limit 100000 avpkt 1000 burst 30 bandwidth 1mbit",
    "tbf": "rate 1mbit burst 10kb limit 10kb",
}
_HEAD = "=fact= "


@dataclass(frozen=True)
class HostFacts:
    """What a host is and has; what it does not tell is empty or zero.

    `tools` maps each program that is there to its version ("" where it is not asked). `cc_offered` are the
    congestion controls that the kernel has or can load, `cc_allowed` those that need no privilege. `qdiscs`
    are those that the host could set up when it was asked to, in a network namespace of its own. `rings` are
    the interfaces that have a transmit ring (a card's, or a TAP device's queue), `pauses` those with flow
    control to set. `cc_parameters` are those of the congestion controls whose modules are loaded. What steers
    the clock, chrony, ntp or timesyncd, is `clock_source`. `sudo` is what root does for the user who logs in;
    None where that is root. The host's clock minus the controller's is
    `clock_offset_s`, give or take `clock_error_s`.
    """

    host: str
    kernel: str = ""
    os_release: str = ""
    boot_id: str = ""
    cpu_count: int = 0
    tools: Mapping[str, str] = field(default_factory=dict)
    cc_offered: tuple[str, ...] = ()
    cc_allowed: tuple[str, ...] = ()
    qdiscs: tuple[str, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    rings: tuple[str, ...] = ()
    pauses: tuple[str, ...] = ()
    cc_parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tracepoints: tuple[str, ...] = ()
    clock_source: str = ""
    sudo: Sudo | None = None
    disk_free_bytes: int = 0
    clock_offset_s: float = 0.0
    clock_error_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the facts as a JSON value."""
        return asdict(self)


@dataclass(frozen=True)
class Fact:
    """A property of a host: the command that tells it, and how its output is understood."""

    name: str
    command: str
    parse: Callable[[str], Any]


FORMATS: Mapping[str, Callable[[str], Any]] = {
    "line": str.strip,
    "number": parse_number,
    "words": parse_words,
    "os-release": parse_os_release,
    "tools": parse_tools,
    "df": parse_disk_free_bytes,
    "tc-batch": parse_qdiscs,
    "ip-json": parse_interfaces,
    "ethtool-rings": parse_rings,
    "ethtool-pauses": parse_pauses,
    "ifconfig": parse_ifconfig,
    "dmesg-rings": parse_dmesg_rings,
    "cc-parameters": parse_cc_parameters,
    "clock-source": parse_clock_source,
    "cc-available": parse_cc_available,
    "sudo": parse_sudo,
}
"""How each form of output that a fact's recipe leaves is understood."""


def gather_facts(
    session: Session,
    catalogue: Catalogue,
    system: str,
    programs: Iterable[str] = DEFAULT_PROGRAMS,
    qdiscs: Iterable[str] = DEFAULT_QDISCS,
    commands: Sequence[SudoCommand] = (),
) -> HostFacts:
    """Ask a host for every fact, with one script and a few readings of its clock.

    The system, such as linux or freebsd-11, says which recipes ask; `commands` are what root must do for the
    user. Raises TestbedError, RecipeError.
    """
    facts = facts_of(catalogue, system, sorted(programs), sorted(qdiscs), commands)
    done = session.run(script_of(facts), step="facts", deadline_s=DEADLINE_S)
    clock = catalogue.recipe("step", "clock", system).render("script", {}) + "now_ns\n"
    readings = [
        parse_clock(session.run(clock, step="clock", deadline_s=DEADLINE_S)) for _ in range(CLOCK_READINGS)
    ]
    offset_s, error_s = min(readings, key=lambda reading: reading[1])
    return HostFacts(
        session.host, **parse_facts(facts, done.text), clock_offset_s=offset_s, clock_error_s=error_s
    )


def read_boot_id(session: Session, catalogue: Catalogue, system: str, deadline_s: float = DEADLINE_S) -> str:
    """Ask a host what tells its present boot from others. Raises TestbedError, RecipeError."""
    told: str = _ask(session, _fact(catalogue.recipe("fact", "boot_id", system), {}), "boot id", deadline_s)
    if not told:
        raise TestbedError(f"{session.host}: tells no boot id; accepted: one line by the fact boot_id")
    return told


def read_free_disk_bytes(session: Session, catalogue: Catalogue, system: str) -> int:
    """Ask a host how many bytes it has for what trials leave there. Raises TestbedError, RecipeError."""
    fact = _fact(catalogue.recipe("fact", "disk_free_bytes", system), {})
    free_bytes: int = _ask(session, fact, "free disk", DEADLINE_S)
    return free_bytes


def _ask(session: Session, fact: Fact, step: str, deadline_s: float) -> Any:
    done = session.run(script_of([fact]), step=step, deadline_s=deadline_s)
    return parse_facts([fact], done.text)[fact.name]


def facts_of(
    catalogue: Catalogue,
    system: str,
    programs: Sequence[str],
    qdiscs: Sequence[str],
    commands: Sequence[SudoCommand] = (),
) -> tuple[Fact, ...]:
    """List what is asked of a host; each is a field of HostFacts. Raises RecipeError."""
    values = {
        "programs": [(program, _VERSION_FLAGS.get(program, "")) for program in programs],
        "qdiscs": [(qdisc, _QDISC_ARGUMENTS.get(qdisc, "")) for qdisc in qdiscs],
        "commands": [(one.pattern, one.listed, one.words) for one in commands],
        "root_programs": sorted(
            {one.program for one in commands} | inner_programs(one.pattern for one in commands)
        ),
    }
    names = sorted(catalogue.names("fact", system))
    return tuple(_fact(catalogue.recipe("fact", name, system), values) for name in names)


def _fact(recipe: Recipe, values: Mapping[str, object]) -> Fact:
    form = "".join(recipe.header.leaves)
    if form not in FORMATS:
        raise RecipeError(f"{recipe.path}: leaves {form!r}; accepted: one of {', '.join(FORMATS)}")
    return Fact(recipe.name, recipe.render("command", values), FORMATS[form])


# `slurp` prints a file without starting a program, which is what costs time in a virtual lab.
_PRELUDE = """\
export LC_ALL=C PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
slurp() { while IFS= read -r line || [ -n "$line" ]; do printf '%s\\n' "$line"; done <"$1"; }
"""


def script_of(facts: Sequence[Fact]) -> str:
    """Return the script that runs each fact's command, whatever becomes of the others."""
    parts = (f"echo {quote(_HEAD + fact.name)}\n(\n{fact.command}\n) 2>/dev/null\n" for fact in facts)
    return _PRELUDE + "".join(parts) + "exit 0\n"


def parse_facts(facts: Sequence[Fact], text: str) -> dict[str, Any]:
    """Parse what the script printed, fact by fact."""
    told = dict.fromkeys((fact.name for fact in facts), "")
    for part in text.split(_HEAD)[1:]:
        name, _, output = part.partition("\n")
        told[name] = output
    return {fact.name: fact.parse(told[fact.name]) for fact in facts}
