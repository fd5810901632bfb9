"""The state of a campaign, derived from the events of its journal: trials, unrestored hosts, quarantine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from samovar.campaign.journal.journal_file import Entry
from samovar.errors import CampaignError

STARTS = ("campaign-started", "campaign-resumed")
TrialStatus = Literal["in flight", "completed", "failed", "interrupted"]


@dataclass(frozen=True)
class TrialState:
    """The state of one trial.

    `status` is that of the last attempt: "in flight" until it finishes, and for good if the controller
    crashed. `seconds` and `overhead_s` (the time beyond traffic) are None until then. `phases` maps phases to
    seconds. `testbed` is where the last attempt ran.
    """

    id: str
    attempts: int = 0
    status: TrialStatus = "in flight"
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    t_start_s: float = 0.0
    seconds: float | None = None
    overhead_s: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    set_aside: tuple[str, ...] = ()
    testbed: str = ""


def is_open(trial: TrialState | None) -> bool:
    """Return whether a trial still has to run: it never completed, or its verdict is invalid."""
    return trial is None or trial.status != "completed" or trial.verdict == "invalid"


@dataclass(frozen=True)
class SavedState:
    """The state of a host before trial `id` changed it; with `lasting`, before the first of several trials.

    `testbed` is empty if the campaign has only one.
    """

    id: str
    host: str
    state: Any
    lasting: bool = False
    testbed: str = ""


@dataclass(frozen=True)
class CampaignState:
    """The state of a campaign.

    `unrestored` maps each changed host to its saved states, oldest first: the newest is restored first, so
    that the oldest, from before any trial, is what remains. `blocked` maps trials to the reasons why the
    testbed could not run them when it was last asked. `quarantined` maps hosts to the reason why this run no
    longer uses them; `probation` are hosts quarantined by an earlier run on which no trial has completed
    since. `stopped` is what ended the last run early, `idle` the testbeds that had no trial left to run.
    Hosts are named HOST@TESTBED where several testbeds share the campaign.
    """

    trials: Mapping[str, TrialState]
    unrestored: Mapping[str, tuple[SavedState, ...]]
    controllers: int = 0
    last_event: str = ""
    t_last_s: float = 0.0
    blocked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quarantined: Mapping[str, str] = field(default_factory=dict)
    probation: frozenset[str] = frozenset()
    stopped: str = ""
    idle: frozenset[str] = frozenset()

    def on(self, testbed: str) -> CampaignState:
        """Return the state with only the hosts of one testbed, by their own names."""
        if not testbed:
            return self
        end = f"@{testbed}"
        return replace(
            self,
            unrestored={
                saved[0].host: saved for saved in self.unrestored.values() if saved[0].testbed == testbed
            },
            quarantined={h.removesuffix(end): why for h, why in self.quarantined.items() if h.endswith(end)},
            probation=frozenset(host.removesuffix(end) for host in self.probation if host.endswith(end)),
        )

    @property
    def clean(self) -> bool:
        """Whether every host is restored and every trial has ended."""
        return not self.unrestored and not self.with_status("in flight")

    def with_status(self, status: TrialStatus) -> tuple[TrialState, ...]:
        """Return the trials with a status, in the order in which they were first started."""
        return tuple(trial for trial in self.trials.values() if trial.status == status)


def fold(entries: Iterable[Entry]) -> CampaignState:
    """Derive a campaign's state from its events; unknown events are ignored.

    Raises CampaignError for an event that lacks one of its values.
    """
    state = _Fold()
    for number, entry in enumerate(entries, 1):
        handler = _HANDLERS.get(entry.event)
        try:
            if handler:
                handler(state, entry)
        except (KeyError, TypeError, ValueError) as error:
            raise CampaignError(
                f"journal, line {number}: {entry.event}: value missing or wrong: {error}"
            ) from error
        state.last = entry
    return CampaignState(
        trials=state.trials,
        unrestored=state.unrestored,
        controllers=state.controllers,
        last_event=state.last.event,
        t_last_s=state.last.t_s,
        blocked=state.blocked,
        quarantined=state.quarantined,
        probation=frozenset(state.probation),
        stopped=state.stopped,
        idle=frozenset(state.idle),
    )


def host_name(values: Mapping[str, Any]) -> str:
    """Return the name of an event's host, HOST@TESTBED if several testbeds share the campaign."""
    testbed = values.get("testbed")
    return f"{values['host']}@{testbed}" if testbed else str(values["host"])


class _Fold:
    """The state while events are applied to it, one method for each sort of event."""

    def __init__(self) -> None:
        self.trials: dict[str, TrialState] = {}
        self.unrestored: dict[str, tuple[SavedState, ...]] = {}
        self.blocked: dict[str, tuple[str, ...]] = {}
        self.quarantined: dict[str, str] = {}
        self.probation: set[str] = set()
        self.idle: set[str] = set()
        self.controllers, self.stopped, self.last = 0, "", Entry(0.0, "")

    def controller_starts(self, entry: Entry) -> None:
        """Begin anew what is found out in each run; hosts that were quarantined are tried again."""
        self.controllers += 1
        self.probation |= self.quarantined.keys()
        self.blocked, self.quarantined, self.idle, self.stopped = {}, {}, set(), ""

    def campaign_stopped(self, entry: Entry) -> None:
        self.stopped = str(entry.values.get("reason", ""))

    def testbed_idle(self, entry: Entry) -> None:
        self.idle.add(str(entry.values["testbed"]))

    def host_quarantined(self, entry: Entry) -> None:
        self.quarantined[host_name(entry.values)] = str(entry.values["reason"])

    def host_released(self, entry: Entry) -> None:
        self.probation.discard(host_name(entry.values))

    def trials_blocked(self, entry: Entry) -> None:
        groups = entry.values["blocked"]
        self.blocked = {id_: tuple(group["reasons"]) for group in groups for id_ in group["trials"]}

    def state_read(self, entry: Entry) -> None:
        values, host = entry.values, host_name(entry.values)
        testbed = str(values.get("testbed") or "")
        saved = SavedState(
            values["id"], values["host"], values["state"], bool(values.get("lasting")), testbed
        )
        self.unrestored[host] = (*self.unrestored.get(host, ()), saved)

    def state_restored(self, entry: Entry) -> None:
        """Drop the saved state that was restored and the newer ones; older ones remain to be restored."""
        host, restored = host_name(entry.values), (entry.values["id"], bool(entry.values.get("lasting")))
        saved = self.unrestored.pop(host, ())
        keys = [(one.id, one.lasting) for one in saved]
        left = saved[: keys.index(restored)] if restored in keys else saved
        if left:
            self.unrestored[host] = left

    def _update(self, entry: Entry, **changes: Any) -> None:
        id_ = entry.values["id"]
        self.trials[id_] = replace(self.trials.get(id_, TrialState(id_)), **changes)

    def trial_started(self, entry: Entry) -> None:
        id_, attempt = entry.values["id"], int(entry.values["attempt"])
        set_aside = self.trials.get(id_, TrialState(id_)).set_aside
        testbed = str(entry.values.get("testbed") or "")
        self.trials[id_] = TrialState(id_, attempt, t_start_s=entry.t_s, set_aside=set_aside, testbed=testbed)

    def phase(self, entry: Entry) -> None:
        id_, name, seconds = entry.values["id"], str(entry.values["phase"]), float(entry.values["seconds"])
        phases = self.trials.get(id_, TrialState(id_)).phases
        self._update(entry, phases={**phases, name: phases.get(name, 0.0) + seconds})

    def trial_finished(self, entry: Entry) -> None:
        values = entry.values
        if values["outcome"] not in ("completed", "failed", "interrupted"):
            raise ValueError(f"outcome {values['outcome']!r}")
        started = self.trials.get(values["id"], TrialState(values["id"]))
        self._update(
            entry,
            status=values["outcome"],
            verdict=str(values.get("verdict", "")),
            reasons=tuple(values.get("reasons", ())),
            seconds=entry.t_s - started.t_start_s,
            overhead_s=values.get("overhead_s"),
        )

    def trial_refused(self, entry: Entry) -> None:
        self._update(entry, status="failed", verdict="invalid", reasons=tuple(entry.values["reasons"]))

    def trial_set_aside(self, entry: Entry) -> None:
        trial = self.trials.get(entry.values["id"], TrialState(entry.values["id"]))
        status = "interrupted" if trial.status == "in flight" else trial.status
        self._update(entry, status=status, set_aside=(*trial.set_aside, str(entry.values["folder"])))


_HANDLERS: Mapping[str, Callable[[_Fold, Entry], None]] = {
    **dict.fromkeys(STARTS, _Fold.controller_starts),
    "campaign-stopped": _Fold.campaign_stopped,
    "testbed-idle": _Fold.testbed_idle,
    "host-quarantined": _Fold.host_quarantined,
    "host-released": _Fold.host_released,
    "trials-blocked": _Fold.trials_blocked,
    "state-read": _Fold.state_read,
    "state-restored": _Fold.state_restored,
    "trial-started": _Fold.trial_started,
    "phase": _Fold.phase,
    "trial-finished": _Fold.trial_finished,
    "trial-refused": _Fold.trial_refused,
    "trial-set-aside": _Fold.trial_set_aside,
}
