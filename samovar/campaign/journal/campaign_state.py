"""What a journal means for a campaign: a pure function of its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from samovar.campaign.journal.journal_file import Entry
from samovar.errors import CampaignError

STARTS = ("campaign-started", "campaign-resumed")
Standing = Literal["in flight", "completed", "failed", "interrupted"]


@dataclass(frozen=True)
class TrialState:
    """What the journal says of one trial.

    `standing` is of the last attempt: in flight until it finished, which after a crash it never did.
    `seconds` and `overhead_s` (the part of it that was not traffic) are None until then. `phases` are seconds
    by phase. `testbed` is where the last attempt ran.
    """

    id: str
    attempts: int = 0
    standing: Standing = "in flight"
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    t_start_s: float = 0.0
    seconds: float | None = None
    overhead_s: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    set_aside: tuple[str, ...] = ()
    testbed: str = ""


def is_open(trial: TrialState | None) -> bool:
    """Tell whether a trial is still to be run: never completed, or completed with an invalid verdict."""
    return trial is None or trial.standing != "completed" or trial.verdict == "invalid"


@dataclass(frozen=True)
class StateRead:
    """What a host was like before a trial changed it; what lasts, before the first trial of several.

    `testbed` is empty where the campaign has only one.
    """

    id: str
    host: str
    state: Any
    lasting: bool = False
    testbed: str = ""


@dataclass(frozen=True)
class CampaignState:
    """What the journal says of a campaign.

    `unrestored` has, by host, what was read and not restored since, oldest first: restore the newest first,
    so that the oldest, which no trial had touched, has the last word. `blocked` has, by trial, why the
    testbed could not run it when it was last asked. `quarantined` has, by host, why it is not used any more,
    `probation` the hosts of which that holds since an earlier run and that have served no trial since.
    `stopped` says what ended the last run before its time, `idle` which testbeds it had nothing more for.
    Hosts of a campaign on several testbeds are named HOST@TESTBED.
    """

    trials: Mapping[str, TrialState]
    unrestored: Mapping[str, tuple[StateRead, ...]]
    controllers: int = 0
    last_event: str = ""
    t_last_s: float = 0.0
    blocked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quarantined: Mapping[str, str] = field(default_factory=dict)
    probation: frozenset[str] = frozenset()
    stopped: str = ""
    idle: frozenset[str] = frozenset()

    def on(self, testbed: str) -> CampaignState:
        """Return the state with the hosts of one testbed alone, by their own names."""
        if not testbed:
            return self
        end = f"@{testbed}"
        return replace(
            self,
            unrestored={
                reads[0].host: reads for reads in self.unrestored.values() if reads[0].testbed == testbed
            },
            quarantined={h.removesuffix(end): why for h, why in self.quarantined.items() if h.endswith(end)},
            probation=frozenset(host.removesuffix(end) for host in self.probation if host.endswith(end)),
        )

    @property
    def clean(self) -> bool:
        """Whether no host waits to be put back and no trial was cut off."""
        return not self.unrestored and not self.standing("in flight")

    def standing(self, standing: Standing) -> tuple[TrialState, ...]:
        """Return the trials that stand so, in the order in which they were first started."""
        return tuple(trial for trial in self.trials.values() if trial.standing == standing)


def fold(entries: Iterable[Entry]) -> CampaignState:
    """Derive a campaign's state from its events; unknown events change nothing.

    Raises CampaignError for an event that lacks one of its values.
    """
    trials: dict[str, TrialState] = {}
    unrestored: dict[str, tuple[StateRead, ...]] = {}
    blocked: Mapping[str, tuple[str, ...]] = {}
    hosts, stopped = _Hosts(), ""
    controllers, last = 0, Entry(0.0, "")
    for number, last in enumerate(entries, 1):
        try:
            _fold_one(trials, unrestored, last)
            blocked = _blocked(blocked, last)
            hosts.take(last)
        except (KeyError, TypeError, ValueError) as error:
            raise CampaignError(
                f"journal, line {number}: {last.event}: value missing or wrong: {error}"
            ) from error
        controllers += last.event in STARTS
        stopped = _stopped(stopped, last)
    seen = (trials, unrestored, controllers, last.event, last.t_s, blocked)
    return CampaignState(*seen, hosts.quarantined, frozenset(hosts.probation), stopped, frozenset(hosts.idle))


def _stopped(before: str, entry: Entry) -> str:
    if entry.event == "campaign-stopped":
        return str(entry.values.get("reason", ""))
    return "" if entry.event in STARTS else before


@dataclass
class _Hosts:
    """Which hosts are in quarantine, which testbeds idle: each run tries those of the run before again."""

    quarantined: dict[str, str] = field(default_factory=dict)
    probation: set[str] = field(default_factory=set)
    idle: set[str] = field(default_factory=set)

    def take(self, entry: Entry) -> None:
        if entry.event in STARTS:
            self.probation |= self.quarantined.keys()
            self.quarantined, self.idle = {}, set()
        elif entry.event == "testbed-idle":
            self.idle.add(str(entry.values["testbed"]))
        elif entry.event == "host-quarantined":
            self.quarantined[place_of(entry.values)] = str(entry.values["reason"])
        elif entry.event == "host-released":
            self.probation.discard(place_of(entry.values))


def place_of(values: Mapping[str, Any]) -> str:
    """Name the host of an event, with its testbed where the campaign has several."""
    testbed = values.get("testbed")
    return f"{values['host']}@{testbed}" if testbed else str(values["host"])


def _blocked(before: Mapping[str, tuple[str, ...]], entry: Entry) -> Mapping[str, tuple[str, ...]]:
    """Take what the testbed was last found unable to run; each controller that starts asks anew."""
    if entry.event == "trials-blocked":
        groups = entry.values["blocked"]
        return {id_: tuple(group["reasons"]) for group in groups for id_ in group["trials"]}
    return {} if entry.event in STARTS else before


def _fold_one(
    trials: dict[str, TrialState], unrestored: dict[str, tuple[StateRead, ...]], entry: Entry
) -> None:
    values = entry.values
    if entry.event in _TRIAL_STEPS:
        trial = trials.get(values["id"], TrialState(values["id"]))
        trials[trial.id] = _TRIAL_STEPS[entry.event](trial, entry)
    elif entry.event == "state-read":
        place, lasting = place_of(values), bool(values.get("lasting"))
        testbed = str(values.get("testbed") or "")
        read = StateRead(values["id"], values["host"], values["state"], lasting, testbed)
        unrestored[place] = (*unrestored.get(place, ()), read)
    elif entry.event == "state-restored":
        place = place_of(values)
        reads = _before(unrestored.pop(place, ()), values["id"], bool(values.get("lasting")))
        unrestored.update({place: reads} if reads else {})


def _before(reads: tuple[StateRead, ...], id_: str, lasting: bool) -> tuple[StateRead, ...]:
    """Return the reads that restoring a trial's leaves open: those that are older."""
    known = [(read.id, read.lasting) for read in reads]
    return reads[: known.index((id_, lasting))] if (id_, lasting) in known else reads


def _started(trial: TrialState, entry: Entry) -> TrialState:
    attempt = int(entry.values["attempt"])
    testbed = str(entry.values.get("testbed") or "")
    return TrialState(trial.id, attempt, t_start_s=entry.t_s, set_aside=trial.set_aside, testbed=testbed)


def _phase(trial: TrialState, entry: Entry) -> TrialState:
    name, seconds = str(entry.values["phase"]), float(entry.values["seconds"])
    return replace(trial, phases={**trial.phases, name: trial.phases.get(name, 0.0) + seconds})


def _finished(trial: TrialState, entry: Entry) -> TrialState:
    values = entry.values
    if values["outcome"] not in ("completed", "failed", "interrupted"):
        raise ValueError(f"outcome {values['outcome']!r}")
    return replace(
        trial,
        standing=values["outcome"],
        verdict=str(values.get("verdict", "")),
        reasons=tuple(values.get("reasons", ())),
        seconds=entry.t_s - trial.t_start_s,
        overhead_s=values.get("overhead_s"),
    )


def _refused(trial: TrialState, entry: Entry) -> TrialState:
    return replace(trial, standing="failed", verdict="invalid", reasons=tuple(entry.values["reasons"]))


def _set_aside(trial: TrialState, entry: Entry) -> TrialState:
    standing: Standing = "interrupted" if trial.standing == "in flight" else trial.standing
    return replace(trial, standing=standing, set_aside=(*trial.set_aside, str(entry.values["folder"])))


_TRIAL_STEPS: Mapping[str, Callable[[TrialState, Entry], TrialState]] = {
    "trial-started": _started,
    "phase": _phase,
    "trial-finished": _finished,
    "trial-refused": _refused,
    "trial-set-aside": _set_aside,
}
