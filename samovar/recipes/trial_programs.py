"""The programs of a trial: generators at both ends of each flow, loggers and captures, and what ends when.

Shell text that starts generators at their time and watches them stands beside the recipe `step/watch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from samovar.plan import CapturePlan, FlowPlan, LoggerPlan, Resolved, StopPlan
from samovar.recipes.catalogue import Catalogue
from samovar.recipes.fill_settings import CAPTURE_RECIPE
from samovar.recipes.quoting import quote
from samovar.recipes.recipe import Recipe

End = Literal["client", "server"]
ENDS: tuple[End, ...] = ("client", "server")
EARLY_SHARE = 0.95
"""A flow that ends by itself before this share of its duration has failed."""
NEVER_NS = 2**62


@dataclass(frozen=True)
class Program:
    """One program that a trial starts on a host, and the file it writes.

    Output that grows fast is compressed while it is written (.gz), the rest when it is collected.
    """

    name: str
    kind: Literal["capture", "logger", "generator"]
    recipe: str
    output: str
    interface: str | None = None
    flow: str | None = None


@dataclass(frozen=True)
class StopRule:
    """Clients to end (`finish`) once all clients of `when` have ended."""

    when: frozenset[str]
    finish: tuple[str, ...]


@dataclass(frozen=True)
class FlowEnds:
    """A flow and its generator's recipe: where its server and its client run."""

    flow: FlowPlan
    recipe: Recipe

    @property
    def server_host(self) -> str | None:
        """The host of the flow's server; None for a generator without one."""
        if "server" not in self.recipe.blocks:
            return None
        return self.flow.to_host if self.recipe.header.listens == "to" else self.flow.from_host

    @property
    def client_host(self) -> str:
        """The host of the flow's client."""
        return self.flow.from_host if self.recipe.header.listens == "to" else self.flow.to_host

    @property
    def peer_address(self) -> str:
        """The address that the flow's client connects to."""
        flow = self.flow
        return flow.to_address if self.client_host == flow.from_host else flow.from_address

    def host(self, end: End) -> str | None:
        """Return the host of one end's program."""
        return self.client_host if end == "client" else self.server_host

    def name(self, end: End) -> str:
        """Return the name of one end's program, which files and verdicts use."""
        return f"{self.flow.label}-{end}"

    @property
    def earliest_end_s(self) -> float | None:
        """The earliest second of the trial at which the client may end by itself; None for any."""
        if self.flow.size_bytes is not None:
            return None
        if self.flow.duration_s is None:
            return float("inf")
        return self.flow.start_s + EARLY_SHARE * self.flow.duration_s


def trial_flows(resolved: Resolved, catalogue: Catalogue) -> tuple[FlowEnds, ...]:
    """Return each flow of a trial with its recipe. Raises RecipeError."""
    systems = {name: host.system for name, host in resolved.hosts.items()}
    return tuple(
        FlowEnds(flow, catalogue.recipe("generator", flow.generator, systems[flow.from_host]))
        for flow in resolved.flows
    )


def stop_rules(resolved: Resolved, flows: Sequence[FlowEnds]) -> tuple[StopRule, ...]:
    """Return the rules of flows with `until`, and of the trial's `stop: {when: ...}` for all flows."""

    def clients(label: str) -> frozenset[str]:
        # The label of a flow, or of all flows that one entry of the experiment made.
        return frozenset(e.name("client") for e in flows if label in (e.flow.label, e.flow.group))

    rules = [
        StopRule(clients(label), tuple(e.name("client") for e in flows if e.flow.until == label))
        for label in dict.fromkeys(ends.flow.until for ends in flows if ends.flow.until is not None)
    ]
    if resolved.stop is not None and resolved.stop.when is not None:
        when = clients(resolved.stop.when)
        rules.append(StopRule(when, tuple(e.name("client") for e in flows if e.name("client") not in when)))
    return tuple(rules)


def capture_program(capture: CapturePlan) -> Program:
    """Return the program of a capture."""
    name = f"{capture.host}-{capture.interface}"
    return Program(name, "capture", CAPTURE_RECIPE, f"{name}.pcap.gz", interface=capture.interface)


def logger_program(entry: LoggerPlan) -> Program:
    """Return the program of a logger."""
    name = f"{entry.host}-{entry.logger}"
    return Program(name, "logger", entry.logger, f"{name}.csv", interface=entry.interface)


def generator_program(ends: FlowEnds, end: End) -> Program:
    """Return the program of one end of a flow."""
    name = ends.name(end)
    return Program(name, "generator", ends.flow.generator, f"{name}.out", flow=ends.flow.label)


@dataclass(frozen=True)
class AbortLimits:
    """Limits that end a trial at once on any of its hosts: free disk space, and steps of the clock."""

    free_bytes: int = 0
    step_s: float = 1e9

    def as_values(self) -> dict[str, object]:
        """Return the values of the recipe `step/sentinel`."""
        return {"least_kib": -(-self.free_bytes // 1024), "step_ns": round(self.step_s * 1e9)}


NO_LIMITS = AbortLimits()


def start_text(t0_ns: int, at_s: float, then: str) -> str:
    """Return text that runs `then` at a second of the trial in a background process, listed in `starters`."""
    at_ns = t0_ns + round(at_s * 1e9)
    return f'( at {at_ns}\n{then}) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >>starters\n'


def starts_text(t0_ns: int, launches: Iterable[tuple[float, str]], stop: StopPlan | None) -> str:
    """Return shell text that starts clients at their second of the trial and stops all at `stop.after_s`."""
    ordered = sorted(launches, key=lambda launch: launch[0])
    groups = groupby(ordered, key=lambda launch: launch[0])
    starts = [start_text(t0_ns, at_s, "".join(text for _, text in group)) for at_s, group in groups]
    if ordered and stop is not None and stop.after_s is not None:
        starts.append(start_text(t0_ns, stop.after_s, ": >order-stop\nwake\n"))
    return "".join(starts)


def watch_text(
    flows: Sequence[FlowEnds], rules: Sequence[StopRule], host: str, t0_ns: int, loggers: Sequence[str] = ()
) -> str:
    """Return text that watches the generators and loggers of a host until it has an event to print.

    Rules about clients of this host alone are applied on the host; for all others, the ends of its clients
    are printed (`named`) for the controller to apply them.
    """
    clients = [ends.name("client") for ends in flows if ends.client_host == host]
    servers = [ends.name("server") for ends in flows if ends.server_host == host]
    local = [rule for rule in rules if {*rule.when, *rule.finish} <= {*clients}]
    elsewhere = {name for rule in rules if rule not in local for name in rule.when}
    named = sorted(elsewhere & {*clients})
    lists = {"clients": clients, "servers": servers, "named": named, "loggers": loggers}
    names = "".join(f"{word}={quote(' '.join(known))}\n" for word, known in lists.items())
    cases = ""
    for ends in flows:
        if ends.client_host == host and ends.earliest_end_s is not None:
            endless = ends.earliest_end_s == float("inf")
            due_ns = NEVER_NS if endless else t0_ns + round(ends.earliest_end_s * 1e9)
            cases += f"  {quote(ends.name('client'))}) due_ns={due_ns} ;;\n"
    return (
        f"{names}due_of() {{\n  case $1 in\n{cases}  *) due_ns=0 ;;\n  esac\n}}\n"
        f"rules() {{\n{''.join(map(_rule_text, local))}  :\n}}\nwatch\n"
    )


def _rule_text(rule: StopRule) -> str:
    when = " && ".join(f"ended {quote(name)}" for name in sorted(rule.when))
    return f"  if {when}; then {'; '.join(f'finish {quote(name)}' for name in rule.finish)}; fi\n"


def order_text(folder: str, word: str) -> str:
    """Return text that gives an order to the watch of the trial with this folder.

    The host's own shell runs it and must survive it: hence no special built-in with a redirection.
    """
    pipe, file = quote(f"{folder}/events"), quote(f"{folder}/{'order-' * (word == 'stop')}{word}")
    written = f"[ -d {quote(folder)} ] || mkdir -p {quote(folder)}; printf %s >{file}"
    return f"{written}; [ ! -p {pipe} ] || echo wake 1<>{pipe}\n"
