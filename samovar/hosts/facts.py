"""Gather the facts of a host, such as its kernel, programs and interfaces, with one script; read its clock.

Each fact has a recipe with the command that prints it, and a parser in fact_parsers.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from samovar.errors import RecipeError, TestbedError
from samovar.hosts.fact_parsers import FORMATS, Interface, Sudo
from samovar.hosts.script_result import ScriptResult
from samovar.hosts.session import Session
from samovar.recipes import Catalogue, Recipe, SudoCommand, quote

DEADLINE_S = 60.0
CLOCK_READINGS = 3
# fmt: off
DEFAULT_PROGRAMS = (
    "awk", "chronyc", "ethtool", "grep", "gzip", "ip", "iperf", "iperf3", "modprobe", "ntpq", "nuttcp",
    "ping", "python3", "sed", "sha256sum", "ss", "sysctl", "tc", "tcpdump", "timeout",
)
"""The programs whose presence is checked by default."""

# The options with which programs print their version. The versions of other programs are not read: ip and ss
# are of the same package as tc, and python3 takes longer to start than all other programs together.
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
"""The queue disciplines that are tried by default."""
# fmt: on

QDISC_ARGUMENTS = {
    "choke": "limit 100 bandwidth 1mbit",
    "red": "limit 100000 avpkt 1000 burst 30 bandwidth 1mbit",
    "tbf": "rate 1mbit burst 10kb limit 10kb",
}
"""Arguments without which tc refuses to create a queue discipline."""
SHOWN_CHARACTERS = 300
"""An error message quotes at most this many characters of an unexpected output."""
_HEAD = "=fact= "


@dataclass(frozen=True)
class HostFacts:
    """The facts of one host; unknown facts are empty or zero.

    `tools` maps each installed program to its version ("" if the version was not read). `cc_offered` has the
    congestion controls that the kernel has or can load. `cc_allowed` has the congestion controls that any
    user may select. `cc_parameters` has the parameters of the congestion controls whose modules are loaded.
    `qdiscs` has the queue disciplines that the host can create; each was tried in a temporary network
    namespace. `rings` has the interfaces with a transmit ring (of a card) or transmit queue (of a TAP
    device), and `pauses` has the interfaces with flow control. `clock_source` is the program that disciplines
    the clock: chrony, ntp or timesyncd. `sudo` has what the user who logs in may run as root; it is None if
    that user is root. `clock_offset_s` is the host's clock minus the controller's, plus or minus
    `clock_error_s`.
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
        """Return the facts as values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Fact:
    """A property of a host: the command that prints it, and the parser of its output."""

    name: str
    command: str
    parse: Callable[[str], Any]


def gather_facts(
    session: Session,
    catalogue: Catalogue,
    system: str,
    programs: Iterable[str],
    qdiscs: Iterable[str],
    commands: Sequence[SudoCommand],
) -> HostFacts:
    """Return the facts of a host, gathered with one script and a few readings of its clock.

    `system`, such as linux or freebsd-11, selects the recipes. The script looks for `programs` and `qdiscs`
    (queue disciplines) besides the default ones, and checks which `commands` sudo allows. Raises
    TestbedError, RecipeError.
    """
    wanted = sorted({*DEFAULT_PROGRAMS, *programs}), sorted({*DEFAULT_QDISCS, *qdiscs})
    facts = facts_of(catalogue, system, *wanted, commands)
    done = session.run(script_of(facts), step="facts", deadline_s=DEADLINE_S)
    clock = catalogue.recipe("step", "clock", system).render("script", {}) + "now_ns\n"
    runs = (session.run(clock, step="clock", deadline_s=DEADLINE_S) for _ in range(CLOCK_READINGS))
    offset_s, error_s = min(map(clock_offset, runs), key=lambda reading: reading[1])
    values = parse_facts(session.host, facts, done.text)
    return HostFacts(session.host, **values, clock_offset_s=offset_s, clock_error_s=error_s)


def clock_offset(done: ScriptResult) -> tuple[float, float]:
    """Return a clock's offset (host's minus controller's) and the error of this offset, in seconds.

    `done` is the result of a script that read the host's clock at an unknown time during its run. The reading
    is therefore assigned to the middle of the run, with an error of half its duration. Raises TestbedError.
    """
    text, half_s = done.text.strip(), done.seconds / 2
    if not text.isdecimal():
        raise TestbedError(f"{done.host}: clock: {text!r}; expected nanoseconds since the epoch")
    return int(text) / 1e9 - (done.t_start_s + half_s), half_s


def read_boot_id(session: Session, catalogue: Catalogue, system: str, deadline_s: float = DEADLINE_S) -> str:
    """Return the identifier of a host's current boot. Raises TestbedError, RecipeError."""
    boot_id: str = _read_fact(session, catalogue, system, "boot_id", "boot id", deadline_s)
    if not boot_id:
        raise TestbedError(f"{session.host}: no boot id; the recipe fact/boot_id must print one line")
    return boot_id


def read_free_disk_bytes(session: Session, catalogue: Catalogue, system: str) -> int:
    """Return the free disk space of a host for files of trials, in bytes.

    Raises TestbedError, RecipeError.
    """
    free_bytes: int = _read_fact(session, catalogue, system, "disk_free_bytes", "free disk", DEADLINE_S)
    return free_bytes


def _read_fact(
    session: Session, catalogue: Catalogue, system: str, name: str, step: str, deadline_s: float
) -> Any:
    fact = _fact(catalogue.recipe("fact", name, system), {})
    done = session.run(script_of([fact]), step=step, deadline_s=deadline_s)
    return parse_facts(session.host, [fact], done.text)[name]


def facts_of(
    catalogue: Catalogue,
    system: str,
    programs: Sequence[str],
    qdiscs: Sequence[str],
    commands: Sequence[SudoCommand] = (),
) -> tuple[Fact, ...]:
    """Return the facts for which an operating system has recipes. Raises RecipeError.

    The name of each fact is the name of a field of HostFacts.
    """
    values = {
        "programs": [(program, _VERSION_FLAGS.get(program, "")) for program in programs],
        "qdiscs": [(qdisc, QDISC_ARGUMENTS.get(qdisc, "")) for qdisc in qdiscs],
        "commands": commands,
        "root_programs": sorted(
            {program for command in commands for program in (command.program, *command.inner)}
        ),
    }
    names = sorted(catalogue.names("fact", system))
    return tuple(_fact(catalogue.recipe("fact", name, system), values) for name in names)


def _fact(recipe: Recipe, values: Mapping[str, object]) -> Fact:
    form = "".join(recipe.header.leaves)
    if form not in FORMATS:
        raise RecipeError(f"{recipe.path}: key `leaves` is {form!r}; accepted: one of {', '.join(FORMATS)}")
    return Fact(recipe.name, recipe.render("command", values), FORMATS[form])


# `slurp` prints a file without starting a program, because starting one is slow in a virtual lab.
_PRELUDE = """\
export LC_ALL=C PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
slurp() { while IFS= read -r line || [ -n "$line" ]; do printf '%s\\n' "$line"; done <"$1"; }
"""


def script_of(facts: Sequence[Fact]) -> str:
    """Return the script that runs the commands of all facts. If a command fails, the script continues."""
    parts = (f"echo {quote(_HEAD + fact.name)}\n(\n{fact.command}\n) 2>/dev/null\n" for fact in facts)
    return _PRELUDE + "".join(parts) + "exit 0\n"


def parse_facts(host: str, facts: Sequence[Fact], text: str) -> dict[str, Any]:
    """Return the value of each fact by name, from the output of the script that script_of() returns.

    Raises TestbedError if an output does not have the expected format.
    """
    outputs = dict(part.split("\n", 1) for part in text.split(_HEAD)[1:] if "\n" in part)
    values = {}
    for fact in facts:
        output = outputs.get(fact.name, "")
        try:
            values[fact.name] = fact.parse(output)
        except (ValueError, LookupError, TypeError) as error:
            where = f"{host}: fact {fact.name}"
            raise TestbedError(
                f"{where}: unexpected output ({error!r}): {output[:SHOWN_CHARACTERS]!r}"
            ) from error
    return values
