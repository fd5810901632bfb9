"""Before a campaign runs: which hosts answer, whether that is enough, who is told how it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from samovar.definition.notify import Notify
from samovar.errors import SamovarError, TestbedError
from samovar.events import Emit
from samovar.plan import Plan
from samovar.runner.notify import Notifier
from samovar.runner.preflight import Finding, blocked_trials, runnable
from samovar.runner.quarantine import blamed, needs_by_trial
from samovar.testbed import HostFacts, Session, Sessions

FactsOf = Callable[[Sequence[str]], Mapping[str, HostFacts]]


@dataclass(frozen=True)
class Known:
    """What the hosts of a testbed said; of those that did not answer, why."""

    facts: Mapping[str, HostFacts] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)

    @property
    def boots(self) -> Mapping[str, str]:
        """What tells the present boot of each host apart."""
        return {host: fact.boot_id for host, fact in self.facts.items()}


def ask(sessions: Sessions, facts_of: FactsOf) -> Known:
    """Connect to every host and ask what it is; note which do not answer, and why."""
    gone: dict[str, str] = {}
    while left := [host for host in sessions.hosts if host not in gone]:
        try:
            sessions.map(Session.open, left)
            return Known(facts_of(left), gone)
        except TestbedError as error:
            named = blamed(error)
            if not named:
                raise
            gone.update(named)
    return Known({}, gone)


def require(plans: Sequence[Plan], known: Sequence[Known], fail_fast: bool) -> None:
    """Refuse to begin when no trial on any testbed can do without the hosts that are gone there.

    With `fail_fast` none is to be given up. Raises TestbedError.
    """
    gone = [reason for one in known for reason in one.gone.values()]
    if gone and (fail_fast or not any(map(served, plans, (one.gone for one in known)))):
        raise TestbedError("\n".join(gone))


def served(plan: Plan, gone: Collection[str]) -> bool:
    """Tell whether any trial of a plan can do without some hosts."""
    needs, away = needs_by_trial(plan), frozenset(gone)
    return any(not needs(trial) & away for trial in plan.trials)


def runnable_together(
    plan: Plan, findings: Sequence[Sequence[Finding]], allow_partial: bool
) -> list[dict[str, list[str]]]:
    """Say by testbed which trials to leave out there, and why.

    Raises TestbedError, as runnable does, for what none of the testbeds can run.
    """
    blocked = [blocked_trials(one) for one in findings]
    nowhere = frozenset(blocked[0]).intersection(*blocked)
    every = [finding for one in findings for finding in one]
    limited = [
        replace(one, trials=tuple(id_ for id_ in one.trials if id_ in nowhere)) for one in every if one.trials
    ]
    whole = [one for one in every if not one.trials]
    runnable(plan, [*whole, *(one for one in limited if one.trials)], allow_partial)
    return blocked


@contextmanager
def notifying(notify: Notify | None, folder: Path, emit: Emit) -> Iterator[Notifier]:
    """Tell the user's command of trouble in a campaign, and of what ends it early."""
    notifier = Notifier(notify, folder, emit)
    try:
        yield notifier
    except SamovarError as error:
        notifier.tell("trouble", str(error), {})
        raise
