"""Before a campaign runs: which hosts answer, whether that is enough, who is told how it ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from samovar.definition.notify import Notify
from samovar.errors import SamovarError, TestbedError
from samovar.events import Emit
from samovar.plan import Plan
from samovar.runner.notify import Notifier
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


def require(plan: Plan, gone: Mapping[str, str], fail_fast: bool) -> None:
    """Refuse to begin when no trial can do without the hosts that are gone, or none is to be given up.

    Raises TestbedError.
    """
    if gone and (fail_fast or not served(plan, gone)):
        raise TestbedError("\n".join(gone.values()))


def served(plan: Plan, gone: Collection[str]) -> bool:
    """Tell whether any trial of a plan can do without some hosts."""
    needs, away = needs_by_trial(plan), frozenset(gone)
    return any(not needs(trial) & away for trial in plan.trials)


@contextmanager
def notifying(notify: Notify | None, folder: Path, emit: Emit) -> Iterator[Notifier]:
    """Tell the user's command of trouble in a campaign, and of what ends it early."""
    notifier = Notifier(notify, folder, emit)
    try:
        yield notifier
    except SamovarError as error:
        notifier.tell("trouble", str(error), {})
        raise
