"""Preflight findings: what hosts lack for a plan, and which trials cannot run because of that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from samovar.errors import TestbedError
from samovar.plan import Plan
from samovar.units import counted

HERE = "this machine"
"""The value of `host` in findings about the controller."""


@dataclass(frozen=True)
class Finding:
    """Something that a host lacks or does differently than needed, and how to remedy it.

    `trials` has the ids of the trials concerned; if it is empty, the finding concerns all trials. `stops` is
    True if the finding prevents these trials from running.
    """

    host: str
    what: str
    remedy: str
    stops: bool
    trials: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the finding as one line."""
        many = f" ({counted(len(self.trials), 'trial')})" if self.trials else ""
        return f"{self.host}: {self.what}{many}; {self.remedy}"


def blocked_trials(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """Return the ids of the trials that cannot run, each with the reasons.

    Findings that concern all trials are ignored.
    """
    blocked: dict[str, list[str]] = {}
    for finding in findings:
        if finding.stops:
            for trial in finding.trials:
                blocked.setdefault(trial, []).append(f"{finding.host}: {finding.what}")
    return blocked


def findings_of(findings: Iterable[Finding], ids: Collection[str]) -> list[Finding]:
    """Return the findings that concern trials in `ids`, without the ids of other trials."""
    wanted = set(ids)
    found = []
    for finding in findings:
        trials = tuple(id_ for id_ in finding.trials if id_ in wanted)
        if trials or not finding.trials:
            found.append(replace(finding, trials=trials))
    return found


def combine_findings(by_testbed: Mapping[str, Sequence[Finding]]) -> Sequence[Finding]:
    """Combine the findings of several testbeds: a finding stops only the trials that no testbed can run."""
    if len(by_testbed) == 1:
        return next(iter(by_testbed.values()))
    blocked = [blocked_trials(findings) for findings in by_testbed.values()]
    nowhere = frozenset(blocked[0]).intersection(*blocked)
    split = [
        part
        for testbed, findings in by_testbed.items()
        for finding in findings
        for part in _split(testbed, finding, nowhere)
    ]
    return sorted(dict.fromkeys(split), key=lambda finding: not finding.stops)


def _split(testbed: str, finding: Finding, nowhere: Collection[str]) -> Iterator[Finding]:
    """Split a finding into one that stops the trials that no testbed can run, and one about the other trials.

    The other trials are not stopped, because another testbed runs them.
    """
    named = finding if finding.host == HERE else replace(finding, host=f"{testbed}: {finding.host}")
    elsewhere = tuple(id_ for id_ in finding.trials if id_ not in nowhere)
    if not finding.stops or not elsewhere:
        yield named
        return
    if len(elsewhere) < len(finding.trials):
        yield replace(named, trials=tuple(id_ for id_ in finding.trials if id_ in nowhere))
    yield replace(
        named, trials=elsewhere, stops=False, remedy=f"these trials run on another testbed; {finding.remedy}"
    )


def require_runnable(
    plan: Plan, by_testbed: Mapping[str, Sequence[Finding]], allow_partial: bool, ids: Collection[str]
) -> list[dict[str, list[str]]]:
    """Return, for each testbed, the trials that it cannot run, with reasons.

    `ids` has the trials of the run, including those that are complete. Raises TestbedError if some trials can
    run on no testbed, unless `allow_partial` is True and at least one trial is complete or can run.
    """
    findings = combine_findings(by_testbed)
    stops = [finding for finding in findings if finding.stops]
    stops_all = any(not finding.trials for finding in stops)
    left = len(ids) - len(blocked_trials(findings))
    if stops and (stops_all or not left or not allow_partial):
        lines = [f"{plan.testbed} cannot run {plan.experiment}:", *map(str, stops)]
        if left and not stops_all:
            lines.append(f"the other {left} of {len(ids)} trials can run: --allow-partial runs them")
        raise TestbedError("\n".join(lines))
    return [blocked_trials(one) for one in by_testbed.values()]
