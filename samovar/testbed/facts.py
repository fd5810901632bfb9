"""What a host is and has: each fact a command and a pure parser, all commands in one script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from samovar.command.quote import quote
from samovar.testbed.parsers import (
    Interface,
    parse_clock,
    parse_disk_free_bytes,
    parse_interfaces,
    parse_number,
    parse_os_release,
    parse_qdiscs,
    parse_rings,
    parse_tools,
    parse_words,
)
from samovar.testbed.session import Session

DEADLINE_S = 60.0
CLOCK_READINGS = 3
# fmt: off
PROGRAMS = (
    "awk", "ethtool", "grep", "gzip", "ip", "iperf", "iperf3", "modprobe", "nuttcp", "ping", "python3", "sed",
    "sha256sum", "ss", "sysctl", "tc", "tcpdump", "timeout",
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
QDISCS = (
    "bfifo", "cake", "codel", "fq", "fq_codel", "fq_pie", "htb", "netem", "pfifo", "pie", "red", "sfq", "tbf",
)
"""The queue disciplines that are tried unless others are named."""
# fmt: on

_QDISC_ARGUMENTS = {
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
    the interfaces that have a transmit ring. The host's clock minus the controller's is `clock_offset_s`,
    give or take `clock_error_s`.
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


def gather_facts(
    session: Session, programs: Iterable[str] = PROGRAMS, qdiscs: Iterable[str] = QDISCS
) -> HostFacts:
    """Ask a host for every fact, with one script and a few readings of its clock. Raises TestbedError."""
    facts = facts_of(sorted(programs), sorted(qdiscs))
    done = session.run(script_of(facts), step="facts", deadline_s=DEADLINE_S)
    readings = [
        parse_clock(session.run("date +%s%N\n", step="clock", deadline_s=DEADLINE_S))
        for _ in range(CLOCK_READINGS)
    ]
    offset_s, error_s = min(readings, key=lambda reading: reading[1])
    return HostFacts(
        session.host, **parse_facts(facts, done.text), clock_offset_s=offset_s, clock_error_s=error_s
    )


def facts_of(programs: Sequence[str], qdiscs: Sequence[str]) -> tuple[Fact, ...]:
    """List what is asked of a host; each field of HostFacts but those of the clock."""
    return (
        Fact("kernel", "uname -srm", str.strip),
        Fact("os_release", "slurp /etc/os-release", parse_os_release),
        Fact("boot_id", "slurp /proc/sys/kernel/random/boot_id", str.strip),
        Fact("cpu_count", "getconf _NPROCESSORS_ONLN || getconf NPROCESSORS_ONLN", parse_number),
        Fact("tools", _tools_command(programs), parse_tools),
        Fact("cc_offered", _CC_COMMAND, parse_words),
        Fact("cc_allowed", "slurp /proc/sys/net/ipv4/tcp_allowed_congestion_control", parse_words),
        Fact("qdiscs", _qdiscs_command(qdiscs), lambda text: parse_qdiscs(qdiscs, text)),
        Fact("interfaces", _INTERFACES_COMMAND, parse_interfaces),
        Fact("rings", _RINGS_COMMAND, parse_rings),
        Fact("disk_free_bytes", "df -Pk /tmp", parse_disk_free_bytes),
    )


# `slurp` prints a file without starting a program, which is what costs time in a virtual lab.
_PRELUDE = """\
export LC_ALL=C PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH"
slurp() { while IFS= read -r line || [ -n "$line" ]; do printf '%s\\n' "$line"; done <"$1"; }
interfaces() {
  while read -r name _; do case $name in lo:*) ;; *:*) echo "${name%%:*}" ;; esac; done </proc/net/dev
}
"""

_CC_COMMAND = """\
slurp /proc/sys/net/ipv4/tcp_available_congestion_control
read -r release </proc/sys/kernel/osrelease
for file in /lib/modules/"$release"/kernel/net/ipv4/tcp_*.ko*; do
  file=${file##*/tcp_}
  case $file in '*'* | diag.*) ;; *) echo "${file%%.*}" ;; esac
done"""

_INTERFACES_COMMAND = """\
ip -j addr show
for name in $(interfaces); do echo "$name:"; ethtool -k "$name"; done"""

_RINGS_COMMAND = 'for name in $(interfaces); do echo "$name:"; ethtool -g "$name"; done'


def _tools_command(programs: Sequence[str]) -> str:
    # Each word of the list is `program` or `program=flag`, the flag that makes it tell its version.
    words = (f"{program}={_VERSION_FLAGS.get(program, '')}" for program in programs)
    return f"""\
for word in {" ".join(quote(word) for word in words)}; do
  name=${{word%%=*}} flag=${{word#*=}} version=
  command -v "$name" >/dev/null || continue
  if [ -n "$flag" ]; then version=$("$name" "$flag" 2>&1 </dev/null); fi
  printf '%s %s\\n' "$name" "${{version%%
*}}"
done"""


def _qdiscs_command(qdiscs: Sequence[str]) -> str:
    # In a network namespace that ends with the command, so nothing that is in use is touched.
    lines = "\n".join(f"qdisc replace dev lo root {name} {_QDISC_ARGUMENTS.get(name, '')}" for name in qdiscs)
    return f"unshare -n tc -force -batch - <<'END' 2>&1\n{lines}\nEND\necho \"exit $?\""


def script_of(facts: Sequence[Fact]) -> str:
    """Return the script that runs each fact's command, whatever becomes of the others."""
    parts = (f"echo {quote(_HEAD + fact.name)}\n{{\n{fact.command}\n}} 2>/dev/null\n" for fact in facts)
    return _PRELUDE + "".join(parts) + "exit 0\n"


def parse_facts(facts: Sequence[Fact], text: str) -> dict[str, Any]:
    """Parse what the script printed, fact by fact."""
    told = dict.fromkeys((fact.name for fact in facts), "")
    for part in text.split(_HEAD)[1:]:
        name, _, output = part.partition("\n")
        told[name] = output
    return {fact.name: fact.parse(told[fact.name]) for fact in facts}
