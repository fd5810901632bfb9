"""What the watch over a host's generators must know: shell text beside the recipe `watch`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samovar.command.flows import FlowEnds, Rule
from samovar.command.quote import quote

NEVER_NS = 2**62


def start_at(t0_ns: int, at_s: float, then: str) -> str:
    """Do something at an instant, in the background; `starters` holds who waits for it."""
    at_ns = t0_ns + round(at_s * 1e9)
    return f'( at {at_ns}\n{then}) </dev/null >/dev/null 2>&1 3>&- & echo "$!" >>starters\n'


def watch_text(flows: Sequence[FlowEnds], rules: Sequence[Rule], host: str, t0_ns: int) -> str:
    """Watch over the generators of a host until there is something to tell."""
    clients = [ends.name("client") for ends in flows if ends.client_host == host]
    servers = [ends.name("server") for ends in flows if ends.server_host == host]
    local = [rule for rule in rules if {*rule.when, *rule.finish} <= {*clients}]
    beyond = {name for rule in rules if rule not in local for name in rule.when}
    lists = (("clients", clients), ("servers", servers), ("named", sorted(beyond & {*clients})))
    names = "".join(f"{word}={quote(' '.join(known))}\n" for word, known in lists)
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


def _rule(rule: Rule) -> str:
    when = " && ".join(f"ended {quote(name)}" for name in sorted(rule.when))
    return f"  if {when}; then {'; '.join(f'finish {quote(name)}' for name in rule.finish)}; fi\n"
