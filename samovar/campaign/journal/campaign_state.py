"""Derive the state of a campaign from the events of its journal: trials, unrestored and quarantined hosts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from samovar.campaign.journal.journal_file import Entry
from samovar.errors import CampaignError
from samovar.units import counted

STARTS = ("campaign-started", "campaign-resumed")
ENDS = ("campaign-finished", "campaign-interrupted")
TRIAL_EVENTS = (
    *("trial-started", "phase", "trial-finished", "trial-refused", "trial-reopened"),
    "trial-set-aside",
)
SET_ASIDE = re.compile(r"set-aside/[A-Za-z0-9][^/]*")
"""The folder of an attempt that was set aside. A merge copies it, so a journal must name no other folder."""
CONTROLLER_KILLED = "its controller was killed"
"""The reason that the next run records for a trial whose controller was killed."""
TrialStatus = Literal["in flight", "completed", "failed", "interrupted"]


@dataclass(frozen=True)
class TrialState:
    """The state of one trial.

    Values are of the last attempt, except `set_aside` and `earlier`. `status` is "in flight" until the
    attempt finishes, and stays "in flight" if the controller crashes. `seconds` and `overhead_s` (time not
    spent on traffic) are None until the attempt finishes. If the controller was killed, `seconds` is the
    total of the phases that it recorded. `phases` maps each phase to its duration in seconds. `testbed` is
    where the attempt ran, and `node` is the computer that controlled it. `set_aside` lists the folders of all
    attempts that were set aside, perhaps the last one too. If the last attempt is in flight or was
    interrupted, `earlier` is the result of the last attempt before it that was not interrupted.
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
    earlier: str = ""
    node: str = ""

    @property
    def result(self) -> str:
        """The verdict if the trial completed, otherwise how its last attempt ended."""
        return (self.verdict or "valid") if self.status == "completed" else self.status

    @property
    def last_result(self) -> str:
        """The result of the last attempt that was not interrupted; empty if all were interrupted."""
        return self.earlier if self.status in ("in flight", "interrupted") else self.result


def is_open(trial: TrialState | None) -> bool:
    """Return whether a trial still has to run: it never completed, or its verdict is invalid."""
    return trial is None or trial.status != "completed" or trial.verdict == "invalid"


@dataclass(frozen=True)
class SavedState:
    """The state of a host before trial `id` changed it.

    `lasting` is True for a change that later trials keep, because it needs a reboot. `testbed` is empty if
    the campaign has only one testbed.
    """

    id: str
    host: str
    state: Any
    lasting: bool = False
    testbed: str = ""


@dataclass(frozen=True)
class KernelChange:
    """From `t_s` on, a host ran another kernel than during the trials before."""

    t_s: float
    host: str
    before: str
    now: str


@dataclass
class CampaignState:
    """The state of a campaign as fold() derives it from the journal's events.

    `unrestored` maps each changed host to its saved states, oldest first. These states are restored newest
    first; the oldest one is from before any trial. `blocked` maps trials to the reasons why no testbed could
    run them at the last preflight. `quarantined` maps hosts to the reason why the last run stopped using
    them. `ended` is True if the last run recorded its end, so that it was not killed. `probation` has hosts
    that an earlier run quarantined and on which no trial has completed since. `stopped` is the reason why the
    last run ended early. `idle` has the testbeds that have no trial left to run. `picks` describes the parts
    of the plan to which runs were limited, and `picked` has the trials of these parts; both are empty after a
    run of the whole plan. `nodes` has the computers on which controllers ran, each with its kernel and the
    version of samovar; `node` is the computer of the last run. `kernel_changes` has the hosts whose kernels
    changed between runs. If several testbeds share the campaign, hosts are named HOST@TESTBED.
    """

    trials: dict[str, TrialState] = field(default_factory=dict)
    unrestored: dict[str, tuple[SavedState, ...]] = field(default_factory=dict)
    controllers: int = 0
    last_event: str = ""
    t_last_s: float = 0.0
    blocked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    quarantined: dict[str, str] = field(default_factory=dict)
    probation: frozenset[str] = frozenset()
    ended: bool = False
    stopped: str = ""
    idle: frozenset[str] = frozenset()
    picks: tuple[str, ...] = ()
    picked: frozenset[str] = frozenset()
    nodes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    node: str = ""
    kernel_changes: tuple[KernelChange, ...] = ()

    def pick(self, text: str, trials: Collection[str]) -> None:
        """Note the part of the plan to which a run is limited; an empty text means the whole plan."""
        if text:
            self.picks = tuple(dict.fromkeys((*self.picks, text)))
            self.picked |= frozenset(trials)
        else:
            self.picks, self.picked = (), frozenset()

    def is_left_for_later(self, id_: str) -> bool:
        """Return whether a trial has not run because all runs were limited to other parts of the plan."""
        return bool(self.picks) and id_ not in self.picked and id_ not in self.trials

    def part_text(self, ids: Collection[str]) -> str:
        """Return a text that says how many trials of a plan have run; empty if none are left for a later run.

        For example: `2 of 6 trials were run (picked: cc=cubic)`.
        """
        if not any(map(self.is_left_for_later, ids)):
            return ""
        number = sum(id_ in self.trials for id_ in ids)
        return f"{number} of {counted(len(ids), 'trial')} were run (picked: {'; '.join(self.picks)})"

    def number_done(self, ids: Iterable[str]) -> int:
        """Return how many of the trials in `ids` are complete, with a verdict other than invalid."""
        return sum(not is_open(self.trials.get(id_)) for id_ in ids)

    def on(self, testbed: str) -> CampaignState:
        """Return the state with only the hosts of one testbed, named without `@TESTBED`.

        If `testbed` is empty, the state is returned unchanged.
        """
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
        """Return the trials with the given status, in the order in which they were first started."""
        return tuple(trial for trial in self.trials.values() if trial.status == status)


def fold(entries: Iterable[Entry]) -> CampaignState:
    """Derive a campaign's state from its events. Unknown events are ignored. Raises CampaignError."""
    state = CampaignState()
    for number, entry in enumerate(entries, 1):
        try:
            _apply_campaign_event(state, entry)
            _apply_host_event(state, entry)
            _apply_trial_event(state, entry)
        except (KeyError, TypeError, ValueError) as error:
            raise CampaignError(f"journal, {entry.value_problem(number, error)}") from error
        state.last_event, state.t_last_s = entry.event, entry.t_s
    return state


def _apply_campaign_event(state: CampaignState, entry: Entry) -> None:
    values = entry.values
    if "node" in values:
        node = str(values["node"])
        about = {"kernel": "node_kernel", "samovar": "samovar"}
        state.nodes[node] = {name: str(values[key]) for name, key in about.items() if key in values}
    match entry.event:
        case event if event in STARTS:
            # Each run determines these values anew, so it uses quarantined hosts again.
            state.controllers += 1
            state.node = str(values.get("node") or "")
            state.probation |= state.quarantined.keys()
            state.blocked, state.quarantined, state.idle, state.stopped = {}, {}, frozenset(), ""
            state.ended = False
        case event if event in ENDS:
            state.ended = True
        case "campaign-stopped":
            state.stopped = str(values.get("reason", ""))
        case "testbed-idle":
            state.idle |= {str(values["testbed"])}
        case "trials-picked":
            state.pick(str(values["pick"]), [str(id_) for id_ in values["trials"]])
        case "trials-blocked":
            groups = values["blocked"]
            state.blocked = {id_: tuple(group["reasons"]) for group in groups for id_ in group["trials"]}


def _apply_host_event(state: CampaignState, entry: Entry) -> None:
    values = entry.values
    match entry.event:
        case "host-quarantined":
            state.quarantined[_host_name(values)] = str(values["reason"])
        case "kernel-changed":
            kernels = values["kernel_before"], values["kernel_now"]
            change = KernelChange(entry.t_s, _host_name(values), *kernels)
            state.kernel_changes = (*state.kernel_changes, change)
        case "host-released":
            state.probation -= {_host_name(values)}
        case "state-read":
            host, lasting = _host_name(values), bool(values.get("lasting"))
            testbed = str(values.get("testbed") or "")
            saved = SavedState(values["id"], values["host"], values["state"], lasting, testbed)
            state.unrestored[host] = (*state.unrestored.get(host, ()), saved)
        case "state-restored":
            # States saved after the restored one are obsolete; states saved before it remain to be restored.
            host, restored = _host_name(values), (values["id"], bool(values.get("lasting")))
            states = state.unrestored.pop(host, ())
            keys = [(one.id, one.lasting) for one in states]
            left = states[: keys.index(restored)] if restored in keys else states
            if left:
                state.unrestored[host] = left


def _apply_trial_event(state: CampaignState, entry: Entry) -> None:
    values = entry.values
    if entry.event not in TRIAL_EVENTS:
        return
    id_ = values["id"]
    trial = state.trials.get(id_, TrialState(id_))
    match entry.event:
        case "trial-started":
            trial = TrialState(
                id_,
                int(values["attempt"]),
                t_start_s=entry.t_s,
                set_aside=trial.set_aside,
                testbed=str(values.get("testbed") or ""),
                earlier=trial.last_result,
                node=str(values.get("node") or state.node),
            )
        case "phase":
            name, seconds = str(values["phase"]), float(values["seconds"])
            phases = {**trial.phases, name: trial.phases.get(name, 0.0) + seconds}
            trial = replace(trial, phases=phases)
        case "trial-finished":
            if values["outcome"] not in ("completed", "failed", "interrupted"):
                raise ValueError(f"outcome {values['outcome']!r}")
            reasons = tuple(values.get("reasons", ()))
            killed = reasons == (CONTROLLER_KILLED,)
            trial = replace(
                trial,
                status=values["outcome"],
                verdict=str(values.get("verdict", "")),
                reasons=reasons,
                seconds=sum(trial.phases.values()) if killed else entry.t_s - trial.t_start_s,
                overhead_s=values.get("overhead_s"),
            )
        case "trial-refused" if is_open(trial):  # a complete trial keeps its result, as it did not run again
            reasons = tuple(values["reasons"])
            trial = replace(trial, status="failed", verdict="invalid", reasons=reasons)
        case "trial-reopened":
            reasons = ("the user requested to run it again",)
            trial = replace(trial, status="interrupted", reasons=reasons, earlier=trial.last_result)
        case "trial-set-aside":
            status: TrialStatus = "interrupted" if trial.status == "in flight" else trial.status
            folder = str(values["folder"])
            if not SET_ASIDE.fullmatch(folder):
                raise ValueError(f"folder {folder!r}")
            trial = replace(trial, status=status, set_aside=(*trial.set_aside, folder))
    state.trials[id_] = trial


def _host_name(values: Mapping[str, Any]) -> str:
    """Return the name of an event's host; it is HOST@TESTBED if several testbeds share the campaign."""
    testbed = values.get("testbed")
    return f"{values['host']}@{testbed}" if testbed else str(values["host"])
