"""Gather the evidence for the verdict of a trial: states, counters, exit codes, clocks and captures."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from samovar.campaign.clocks import ClockOffset
from samovar.campaign.collection import collected_path
from samovar.campaign.host_state import parse_named
from samovar.campaign.policy import DEFAULT_POLICY, Policy
from samovar.campaign.verdict.check_result import Check
from samovar.campaign.verdict.pcap_reader import CaptureSummary, read_capture
from samovar.campaign.verdict.traces import UNREADABLE, read_text
from samovar.hosts import ScriptResult
from samovar.plan import CapturePlan, Resolved
from samovar.recipes import ByteCounts, FlowEnds, Program, TrialScripts

State = Mapping[str, str]
"""The state of a host: keys and values that a script printed."""
STARTED = re.compile(r"^(\S+)\.pid (\d+\.\d+)$", re.MULTILINE)
TRAFFIC_OVER = re.compile(r"^order-stop (\d+\.\d+)$", re.MULTILINE)
QUEUE, STAGE = "queue.", "stage."
"""Prefixes of a router's counters: QUEUE for queue disciplines, STAGE for the delay stages before them."""
NETWORK, SHAPING = "network.", "shaping."
"""Prefixes of values that are read together with the counters: NETWORK for MTUs and routes, SHAPING for queue
disciplines, filters and firewall rules that shape packets."""
UNKNOWN, UNSEEN = "unknown", "unseen"
"""Keys after the prefixes NETWORK and SHAPING: `unknown` means that the program that reads the values failed,
`unseen` that the host does not have the program."""
MTU_AND_ROUTES = ("network.mtu.", "network.route.")
"""Prefixes of keys whose values must not change between trials, on hosts whose MTU the trials do not set."""
NOT_OVERHEAD = frozenset({"traffic", "reboot", "calibrate", "windows"})
"""Phases whose time does not count as overhead, because the experiment itself requests them."""


@dataclass(frozen=True)
class TrafficFailure:
    """A failure that ended the traffic early: its keyword (see trial/traffic.py), its host, and details."""

    word: str
    host: str
    text: str


class QueueCounters(NamedTuple):
    """Increase of a queue discipline's counters during the traffic.

    `waiting_packets` is the number of packets in the queue after the traffic.
    """

    sent_bytes: int
    sent_packets: int
    drops: int
    waiting_packets: int = 0


def with_prefix(state: State, prefix: str | tuple[str, ...]) -> dict[str, str]:
    """Return the entries of a state whose keys start with one of the prefixes."""
    return {key: value for key, value in state.items() if key.startswith(prefix)}


@dataclass(frozen=True)
class CounterSpan:
    """The counters of one host before and after the traffic."""

    before: State
    after: State

    def increase(self, key: str) -> tuple[int, ...]:
        """Return the increase of each number in a counter's value; empty if the counter is missing."""
        pairs = zip(self.before.get(key, "").split(), self.after.get(key, "").split(), strict=False)
        return tuple(int(late) - int(early) for early, late in pairs)

    def queue(self, key: str) -> QueueCounters | None:
        """Return the counters of a queue discipline, or None if the host did not report them."""
        counted, after = self.increase(key), self.after.get(key, "").split()
        return QueueCounters(*counted[:3], *map(int, after[3:4])) if len(counted) >= 3 else None

    def state(self, prefix: str) -> tuple[State, State]:
        """Return the entries whose keys have the given prefix, as read before the traffic and after it."""
        return with_prefix(self.before, prefix), with_prefix(self.after, prefix)

    def packets_dropped(self) -> int:
        """Return the total number of packets dropped by all queue disciplines of a router."""
        queues = (self.queue(key) for key in self.before if key.startswith((QUEUE, STAGE)))
        return sum(queue.drops for queue in queues if queue is not None)


@dataclass
class Evidence:
    """Everything that the checks of one trial need. Each phase of the trial adds its findings.

    Each host's states are in `before` (before any change), `as_set` (after the settings were applied),
    `found` (after the traffic) and `restored` (after the host was restored). `counters` were read before and
    after the traffic. `network` has the MTUs and routes from before the first trial of this run, for hosts
    whose MTU the trial does not set. `halted` has the clients that were stopped, or not even started, because
    of a stop rule. `started` has the start of each client, and `traffic_over` has the end of the traffic on
    each host. Both are in seconds since the epoch by the host's clock. `checks` has the results of all checks
    that were run.
    """

    scripts: TrialScripts
    folder: Path
    policy: Policy = DEFAULT_POLICY
    phases: list[tuple[str, float]] = field(default_factory=list)
    calibration: Sequence[Check] = ()
    before: dict[str, State] = field(default_factory=dict)
    as_set: dict[str, State] = field(default_factory=dict)
    found: dict[str, State] = field(default_factory=dict)
    restored: dict[str, State] = field(default_factory=dict)
    counters: dict[str, CounterSpan] = field(default_factory=dict)
    network: dict[str, State] = field(default_factory=dict)
    exit_codes: dict[str, str] = field(default_factory=dict)
    messages: dict[str, list[str]] = field(default_factory=dict)
    halted: set[str] = field(default_factory=set)
    started: dict[str, float] = field(default_factory=dict)
    traffic_over: dict[str, float] = field(default_factory=dict)
    clocks: Mapping[str, ClockOffset] = field(default_factory=dict)
    failures: Sequence[TrafficFailure] = ()
    files: list[Mapping[str, object]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    t_start_s: float = 0.0
    t_end_s: float = 0.0

    def add_program_endings(self, results: Mapping[str, ScriptResult]) -> None:
        """Add what the stop script of each host printed: exit codes, standard error and times of programs."""
        for host, result in results.items():
            self.exit_codes |= parse_named(result.text, "exit")
            for line in result.text.splitlines():
                if line.startswith("err "):
                    name, _, message = line.removeprefix("err ").partition(" ")
                    self.messages.setdefault(name, []).append(message)
            self.halted |= parse_named(result.text, "finished").keys()
            self.started |= {name: float(t_s) for name, t_s in STARTED.findall(result.text)}
            if over := TRAFFIC_OVER.search(result.text):
                t_s = float(over[1])
                self.traffic_over[host] = t_s + t_s.is_integer()  # some file systems store whole seconds

    def earliest_end_s(self, host: str) -> float | None:
        """Return the earliest time at which the traffic may have ended by a host's clock; None if unknown.

        add_program_endings() has rounded whole seconds up, so the traffic may have ended a second earlier.
        """
        over_s = self.traffic_over.get(host)
        return None if over_s is None else over_s - over_s.is_integer()

    def seconds(self, phases: Collection[str]) -> float:
        """Return the total duration of the phases with these names, in seconds."""
        return sum(seconds for name, seconds in self.phases if name in phases)

    @property
    def resolved(self) -> Resolved:
        """The resolved trial: all settings, flows, captures and loggers."""
        return self.scripts.resolved

    @property
    def started_flows(self) -> list[FlowEnds]:
        """The flows whose client was started."""
        return [ends for ends in self.scripts.flows if ends.name("client") in self.started]

    @property
    def completed_flows(self) -> list[FlowEnds]:
        """The flows whose client was started and was not stopped by a stop rule."""
        return [ends for ends in self.started_flows if ends.name("client") not in self.halted]

    def programs(self, kind: str, recipe: str = "") -> Iterator[tuple[str, Program]]:
        """Yield the programs of one kind (generator, logger or capture), each with its host.

        If `recipe` is not empty, programs of other recipes are left out.
        """
        for host in self.resolved.hosts:
            for program in self.scripts.processes(host):
                if program.kind == kind and (not recipe or program.recipe == recipe):
                    yield host, program

    def trace(self, program: Program) -> Path:
        """Return the path of the compressed trace of a logger or capture in the trial's folder."""
        return self.folder / collected_path(program)

    @property
    def is_ipv4(self) -> bool:
        """Whether all flows are IPv4. Captures are read for IPv4 only."""
        return not any(":" in flow.from_address for flow in self.resolved.flows)

    @property
    def uses_offloads(self) -> bool:
        """Whether the trial enables an offload on any host, so that captured frames may exceed the MTU."""
        hosts = self.resolved.hosts.values()
        return any("on" in plan.settings.get("offloads", {}).values() for plan in hosts)

    def client_output(self, ends: FlowEnds) -> str:
        """Return the output of a flow's client; empty if its file cannot be read."""
        try:
            return read_text(self.folder / "logs" / f"{ends.name('client')}.out.gz")
        except UNREADABLE:
            return ""

    def counted_bytes(self, ends: FlowEnds) -> ByteCounts | None:
        """Return the bytes that a flow's generator counted, or None if it printed no count."""
        counts = ends.recipe.header.counts
        return counts.read(self.client_output(ends), ends.parameters) if counts is not None else None

    @cached_property
    def captures(self) -> tuple[tuple[CapturePlan, CaptureSummary], ...]:
        """Every planned capture, with a summary of its first packets (at most `capture_packets` of them)."""
        return tuple((plan, self._read(plan)) for plan in self.resolved.captures)

    def capture_file(self, plan: CapturePlan) -> Path:
        """Return the path of the compressed file of a capture."""
        return self.folder / "traces" / f"{plan.host}-{plan.interface}.pcap.gz"

    def _read(self, plan: CapturePlan) -> CaptureSummary:
        try:
            return read_capture(self.capture_file(plan), self.policy.thresholds.capture_packets)
        except UNREADABLE as error:
            return CaptureSummary(error=f"{type(error).__name__}: {error}")

    def captures_at(self, host: str, *, whole: bool = False) -> list[CaptureSummary]:
        """Return the readable captures of a host.

        With `whole`, returns an empty list if one of the captures was not read to its end.
        """
        captures = [one for plan, one in self.captures if plan.host == host and not one.error]
        return captures if not whole or all(one.whole for one in captures) else []
