"""Before a campaign runs: which hosts answer, whether that is enough, who is told how it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from samovar.campaign.availability.quarantine import blamed, needs_by_trial
from samovar.campaign.availability.requirements import HERE, Finding, blocked_trials
from samovar.campaign.notifier import Notifier
from samovar.errors import SamovarError, TestbedError
from samovar.events import Emit
from samovar.experiment import Notify
from samovar.hosts import HostFacts, Session, Sessions
from samovar.plan import Plan

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


def between(found: Mapping[str, Sequence[Finding]]) -> Sequence[Finding]:
    """Put together what each testbed lacks, by its name: what one of several lacks, the others run."""
    if len(found) == 1:
        return next(iter(found.values()))
    blocked = [blocked_trials(one) for one in found.values()]
    nowhere = frozenset(blocked[0]).intersection(*blocked)
    split = [
        own for testbed, one in found.items() for finding in one for own in _split(testbed, finding, nowhere)
    ]
    return sorted(dict.fromkeys(split), key=lambda finding: not finding.stops)


def _split(testbed: str, finding: Finding, nowhere: Collection[str]) -> Iterator[Finding]:
    """Tell what a finding of one testbed stops everywhere from what it stops there only."""
    named = finding if finding.host == HERE else replace(finding, host=f"{testbed}: {finding.host}")
    elsewhere = tuple(id_ for id_ in finding.trials if id_ not in nowhere)
    if not finding.stops or not elsewhere:
        yield named
        return
    if len(elsewhere) < len(finding.trials):
        yield replace(named, trials=tuple(id_ for id_ in finding.trials if id_ in nowhere))
    yield replace(named, trials=elsewhere, stops=False, remedy=f"they run elsewhere; {finding.remedy}")


def runnable(plan: Plan, findings: Sequence[Finding], allow_partial: bool) -> dict[str, list[str]]:
    """Say which trials to leave out, and why; raises TestbedError when that was not allowed, or all are."""
    blocked = blocked_trials(findings)
    stops = [finding for finding in findings if finding.stops]
    whole = [finding for finding in stops if not finding.trials]
    left = len(plan.trials) - len(blocked)
    if not stops or (allow_partial and left and not whole):
        return blocked
    words = [f"{plan.testbed} cannot run {plan.experiment}:", *map(str, stops)]
    if left and not whole:
        words.append(f"the other {left} of {len(plan.trials)} trials can run: --allow-partial runs them")
    raise TestbedError("\n".join(words))


def runnable_together(
    plan: Plan, found: Mapping[str, Sequence[Finding]], allow_partial: bool
) -> list[dict[str, list[str]]]:
    """Say of each testbed which trials to leave out there, and why.

    Raises TestbedError, as runnable does, for what none of the testbeds can run.
    """
    runnable(plan, between(found), allow_partial)
    return [blocked_trials(one) for one in found.values()]


@contextmanager
def notifying(notify: Notify | None, folder: Path, emit: Emit) -> Iterator[Notifier]:
    """Tell the user's command of trouble in a campaign, and of what ends it early."""
    notifier = Notifier(notify, folder, emit)
    try:
        yield notifier
    except SamovarError as error:
        notifier.tell("trouble", str(error), {})
        raise
