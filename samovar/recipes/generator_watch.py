"""What the watch over a host's generators must know: shell text beside the recipe `watch`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from samovar.plan import StopPlan
from samovar.recipes.flow_ends import FlowEnds, StopRule
from samovar.recipes.quoting import quote

NEVER_NS = 2**62


@dataclass(frozen=True)
class AbortLimits:
    """What ends a trial at once on any of its hosts: too little room to write, a clock that steps."""

    free_bytes: int = 0
    step_s: float = 1e9

    def as_values(self) -> dict[str, object]:
        """Return the values of the recipe `sentinel`."""
        return {"least_kib": -(-self.free_bytes // 1024), "step_ns": round(self.step_s * 1e9)}


NO_LIMITS = AbortLimits()


def start_at(t0_ns: int, at_s: float, then: str) -> str:
    """Do something at an instant, in the background; `starters` holds who waits for it."""
    at_ns = t0_ns + round(at_s * 1e9)
    return f'( at {at_ns}\n{then}) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >>starters\n'


def starts_text(t0_ns: int, launches: Iterable[tuple[float, str]], stop: StopPlan | None) -> str:
    """Start clients at their seconds of the trial, and have all stop at theirs where that is by time."""
    ours = sorted(launches, key=lambda one: one[0])
    groups = groupby(ours, key=lambda one: one[0])
    starts = [start_at(t0_ns, at_s, "".join(text for _, text in group)) for at_s, group in groups]
    if ours and stop is not None and stop.after_s is not None:
        starts.append(start_at(t0_ns, stop.after_s, ": >order-stop\nwake\n"))
    return "".join(starts)


def watch_text(
    flows: Sequence[FlowEnds], rules: Sequence[StopRule], host: str, t0_ns: int, loggers: Sequence[str] = ()
) -> str:
    """Watch over the generators and loggers of a host until there is something to tell."""
    clients = [ends.name("client") for ends in flows if ends.client_host == host]
    servers = [ends.name("server") for ends in flows if ends.server_host == host]
    local = [rule for rule in rules if {*rule.when, *rule.finish} <= {*clients}]
    beyond = {name for rule in rules if rule not in local for name in rule.when}
    named = sorted(beyond & {*clients})
    lists = {"clients": clients, "servers": servers, "named": named, "loggers": loggers}
    names = "".join(f"{word}={quote(' '.join(known))}\n" for word, known in lists.items())
    dues = "".join(_dues(flows, host, t0_ns))
    return (
        f"{names}due_of() {{\n  case $1 in\n{dues}  *) due_ns=0 ;;\n  esac\n}}\n"
        f"rules() {{\n{''.join(map(_rule, local))}  :\n}}\nwatch\n"
    )


def _dues(flows: Sequence[FlowEnds], host: str, t0_ns: int) -> Iterator[str]:
    for ends in flows:
        if ends.client_host == host and ends.due_s is not None:
            due_ns = NEVER_NS if ends.due_s == float("inf") else t0_ns + round(ends.due_s * 1e9)
            yield f"  {quote(ends.name('client'))}) due_ns={due_ns} ;;\n"


def _rule(rule: StopRule) -> str:
    when = " && ".join(f"ended {quote(name)}" for name in sorted(rule.when))
    return f"  if {when}; then {'; '.join(f'finish {quote(name)}' for name in rule.finish)}; fi\n"


def order_text(folder: str, word: str) -> str:
    """Give an order to the watch of the trial that has this folder.

    For the host's own shell, which must not end by it: hence no special built-in with a redirection.
    """
    pipe, file = quote(f"{folder}/events"), quote(f"{folder}/{'order-' * (word == 'stop')}{word}")
    written = f"[ -d {quote(folder)} ] || mkdir -p {quote(folder)}; printf %s >{file}"
    return f"{written}; [ ! -p {pipe} ] || echo wake 1<>{pipe}\n"
