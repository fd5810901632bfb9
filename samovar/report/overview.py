"""Compose the report's cover, the tables of treatments and traffic, and the trials left out, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from samovar.campaign.journal import is_open
from samovar.campaign.verdict import short_reasons
from samovar.plan import DirectionPlan, FlowPlan, Trial
from samovar.report.campaign_data import NOT_PICKED, NOT_RUN, Campaign, Json
from samovar.report.number_format import listed, moment, quantity
from samovar.units import clock, counted

STATES = {
    "valid": "analysed",
    "suspect": "analysed, marked",
    "invalid": "excluded",
    "failed": "excluded",
    "interrupted": "excluded",
    NOT_RUN: "missing",
    NOT_PICKED: "for another run",
    "left out": "not analysed",
}
"""Maps each state of a trial to what the report prints about how the analysis treats such trials."""
KERNELS = {"uml": "user-mode Linux", "native": "the machine’s own kernel"}
ORDERS = {
    "sequential": "in the order of the factors",
    "shuffled": "in random order",
    "blocked": "in random order within blocks; each block has one replicate of every treatment",
}
MOST_OF_A_KIND = 4
"""At most this many flows of a group, captures, or loggers of a kind are listed one by one."""
MOST_LISTED = 6
"""Of trials in the same state for the same reason, at most this many ids are listed; others are counted."""


def overview(campaign: Campaign) -> Json:
    """Return the cover's values: title, description, facts, and a notice on missing trials and kernels."""
    plan, name, testbed = campaign.plan, campaign.folder.name, testbed_text([campaign])
    facts = {
        "Experiment": plan.experiment,
        "Source": plan.source,
        "Campaign": name + (f" (profile {plan.profile})" if plan.profile else ""),
        "Overrides": ", ".join(f"{key} {value}" for key, value in plan.overrides.items()),
        "When": when(campaign),
        "Testbed": testbed,
        "Bottleneck": ", ".join(path_settings(plan.trials)),
        "Trials": trials_text([campaign]),
    }
    return {
        "title": plan.title or plan.experiment,
        "experiment": plan.experiment,
        "campaign": name,
        "source": plan.source,
        "description": " ".join(plan.description.split()),
        "notice": " ".join(filter(None, (_missing_trials(campaign), *_kernel_changes(campaign)))),
        "facts": pairs(facts),
    }


def pairs(facts: dict[str, str]) -> list[Json]:
    """Return facts as a list for the templates, without those that are empty."""
    return [{"name": name, "value": value} for name, value in facts.items() if value]


def when(campaign: Campaign) -> str:
    """Return a text with the start of a campaign and its duration."""
    return f"{moment(campaign.start_s)}, over {clock(campaign.end_s - campaign.start_s)}"


def either(texts: Iterable[str]) -> str:
    """Return texts joined by `or`, without empty texts and without duplicates."""
    return listed([*dict.fromkeys(filter(None, texts))], "or")


def testbed_text(campaigns: Sequence[Campaign]) -> str:
    """Return each testbed's name, description, number of hosts, and kind (real or virtual) as a text.

    All campaigns are on the same testbeds.
    """
    return " ".join(_testbed_text(campaigns, name) for name in campaigns[0].testbeds)


def _testbed_text(campaigns: Sequence[Campaign], name: str) -> str:
    testbed = campaigns[0].testbeds[name]
    hosts = testbed.get("hosts")
    if not hosts:
        return name
    kind = "real machines"
    if "lab" in testbed:
        configured = (testbed["lab"] or {}).get("kernel", "auto")
        recorded = ((one.recorded(name).get("lab") or {}).get("kernel") for one in campaigns)
        kernels = (str(kernel or configured) for kernel in recorded)
        kind = f"virtual lab, {either(KERNELS.get(one, f'kernel {one}') for one in kernels)}"
    about = str(testbed.get("description") or "").strip()
    return f"{name}: {about} {counted(len(hosts), 'host').capitalize()}, {kind}."


def trials_text(campaigns: Iterable[Campaign]) -> str:
    """Return a text with the number of planned trials, in total and by state."""
    counts = Counter(one.trial_state(id_) for one in campaigns for id_ in one.plan.ids)
    shares = [f"{counts[state]} {state}" for state in dict.fromkeys([*STATES, *counts]) if counts[state]]
    return f"{counted(sum(counts.values()), 'trial')} planned: {listed(shares)}"


def _kernel_changes(campaign: Campaign) -> Iterator[str]:
    """Yield a sentence for each change of kernels, with the names of all hosts that had this change."""
    hosts: dict[tuple[str, str, str], list[str]] = {}
    for one in campaign.state.kernel_changes:
        hosts.setdefault((moment(one.t_s), one.before, one.now), []).append(one.host)
    for (since, before, now), names in hosts.items():
        yield f"From {since} on, {listed(names)} ran {now} instead of {before}."


def _missing_trials(campaign: Campaign) -> str:
    """Return a text about trials that are not shown or have not run, or an empty text."""
    shown = f"{campaign.part}." if campaign.part else ""
    missing = [id_ for id_ in campaign.plan.ids if campaign.trial_state(id_) == NOT_RUN]
    if not missing:
        return shown
    wanted = [id_ for id_ in campaign.plan.ids if not campaign.state.is_left_for_later(id_)]
    kind = "planned" if len(wanted) == len(campaign.plan.ids) else "picked"
    which = f"{len(missing)} of {counted(len(wanted), f'{kind} trial')}"
    if campaign.is_finished and all(id_ in campaign.state.blocked for id_ in missing):
        return f"{shown} The testbed cannot run {which}.".strip()
    state = "ended early" if campaign.is_finished else "has not finished"
    return f"{shown} This campaign {state}: {which} have not run.".strip()


def path_settings(trials: Iterable[Trial]) -> list[str]:
    """Return a text for each setting of the bottleneck, with all values if it differs between trials."""
    found: dict[str, list[str]] = {}
    for path in (trial.resolved.path for trial in trials):
        if path is None:
            continue
        down, up = _direction(path.down), _direction(path.up)
        first = {"rate": down.pop("rate", ""), "RTT": quantity(path.rtt_s, "s")}
        for name, text in {**first, **down, **{f"{name} up": text for name, text in up.items()}}.items():
            if text and text not in found.setdefault(name, []):
                found[name].append(text)
    values = {name: listed(texts, "or") for name, texts in found.items()}
    return [text if name == "aqm" else f"{name} {text}" for name, text in values.items()]


def _direction(one: DirectionPlan) -> dict[str, str]:
    """Return the settings of one direction as texts by name, without those that are zero or not set."""
    in_packets = one.buffer_packets is not None
    settings: dict[str, tuple[float | None, str]] = {
        "rate": (one.rate_bps, "bps"),
        "jitter": (one.jitter_s or None, "s"),
        "loss": (one.loss or None, "share"),
        "reordering": (one.reorder or None, "share"),
        "duplication": (one.duplicate or None, "share"),
        "buffer": (one.buffer_packets, "packets") if in_packets else (one.buffer_bytes, "bytes"),
    }
    texts = {name: quantity(value, unit) for name, (value, unit) in settings.items() if value is not None}
    return texts | ({"aqm": one.aqm} if one.aqm else {})


def treatments(campaign: Campaign) -> Json:
    """Return a sentence on the order of the trials, and the factors, flows and recordings of each part."""
    plan = campaign.plan
    seeded = f"; seed {plan.seed}" if plan.order != "sequential" else ""
    parts = []
    for part in plan.parts:
        trials = [trial for trial in plan.trials if trial.part == part.name]
        flows = ((flow.group, _flow_text(flow)) for trial in trials for flow in trial.resolved.flows)
        treatments = counted(plan.treatments()[part.name], "treatment")
        replicates, amount = counted(part.replicates, "replicate"), counted(len(trials), "trial")
        factors = [{"name": factor, "levels": list(levels)} for factor, levels in part.factors.items()]
        recorded = listed(shortened(one for trial in trials for one in _recorded(trial)))
        parts.append(
            {
                "name": part.name,
                "title": part.title,
                "factors": factors,
                "summary": f"{treatments} × {replicates}, {amount}",
                "path": ", ".join(path_settings(trials)),
                "flows": shortened(flows),
                "recorded": recorded,
            }
        )
    return {"order": f"Trials ran {ORDERS.get(plan.order, plan.order)}{seeded}.", "parts": parts}


def shortened(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Return each text once. `texts` has pairs of a kind and a text.

    If a kind has more than MOST_OF_A_KIND texts, only its first and last text are returned, with the number
    of those left out between them.
    """
    kinds: dict[str, dict[str, None]] = {}
    for kind, text in texts:
        kinds.setdefault(kind, {})[text] = None
    shown: list[str] = []
    for found in map(list, kinds.values()):
        more = len(found) - 2
        many = len(found) > MOST_OF_A_KIND
        shown += [found[0], f"… ({more} more like these)", found[-1]] if many else found
    return shown


def _flow_text(flow: FlowPlan) -> str:
    """Return a flow as text: label, generator, hosts, port, size or duration, start."""
    texts = [f"{flow.label}: {flow.generator} from {flow.from_host} to {flow.to_host}", f"port {flow.port}"]
    if flow.size_bytes is not None:
        texts.append(quantity(flow.size_bytes, "bytes"))
    elif flow.duration_s is not None:
        texts.append(f"for {quantity(flow.duration_s, 's')}")
    elif flow.until:
        texts.append(f"until {flow.until} ends")
    if flow.start_s:
        texts.append(f"starting at {quantity(flow.start_s, 's')}")
    return ", ".join(texts)


def _recorded(trial: Trial) -> Iterator[tuple[str, str]]:
    """Yield the kind of each capture and logger of a trial, and a text that describes it."""
    for capture in trial.resolved.captures:
        text = f"packets at {capture.host} {capture.interface} (first {capture.snaplen_bytes} B of each)"
        yield "packets", text
    for logger in trial.resolved.loggers:
        interval = f" every {quantity(logger.interval_s, 's')}" if logger.interval_s else ""
        yield logger.logger, f"{logger.logger} at {logger.host}{interval}"


def omissions(campaign: Campaign) -> Json:
    """Return notes, the trials that are not valid or not analysed, and the figures that could not be made.

    The trials are grouped by state and reason.
    """
    left_out: list[Json] = campaign.analysis.get("trials_left_out") or []
    skipped = {str(one["id"]): str(one["reason"]) for one in left_out}
    analysed = set(campaign.shown.get("trials", campaign.plan.ids))
    groups: dict[tuple[str, str], list[str]] = {}
    for trial in campaign.plan.ids:
        state = campaign.trial_state(trial)
        if state in ("valid", "suspect") and trial not in analysed:
            state, reason = "left out", f"the analysis was limited to {campaign.shown['picked']}"
        elif state != "valid":
            reason = "; ".join(reasons(campaign, trial)) or skipped.get(trial, "")
        elif trial in skipped:
            state, reason = "left out", skipped[trial]
        else:
            continue
        groups.setdefault((state, reason), []).append(trial)
    rows = []
    for (state, reason), trials in groups.items():
        shown, amount = trials, len(trials)
        if amount > MOST_LISTED:
            shown = [*trials[: MOST_LISTED - 1], f"and {counted(amount - MOST_LISTED + 1, 'more trial')}"]
        row = {"state": state, "means": STATES.get(state, ""), "reason": reason}
        rows.append({**row, "amount": amount, "trials": shown})
    return {
        "groups": rows,
        "notes": list(_notes(campaign)),
        "unavailable": campaign.analysis.get("figures_left_out") or [],
    }


def reasons(campaign: Campaign, trial: str) -> list[str]:
    """Return the reasons of a trial's verdict or failure.

    The reasons are from the trial's manifest if it has one, otherwise from the journal.
    """
    manifest = campaign.manifests.get(trial)
    if manifest is not None:
        return short_reasons(str(reason) for reason in manifest.get("reasons") or [])
    if trial in campaign.state.blocked:
        return [f"not possible on the testbed: {reason}" for reason in campaign.state.blocked[trial]]
    journaled = campaign.state.trials.get(trial)
    return list(journaled.reasons if journaled else ())


def _notes(campaign: Campaign) -> Iterator[str]:
    """Yield sentences on thresholds that were loosened, repeated attempts, unused results, and warnings.

    A result is unused if its trial is no longer in the plan.
    """
    looser: dict[str, None] = {}
    for bounds in (one["bounds"] for one in campaign.manifests.values() if "bounds" in one):
        profile = f", profile {bounds['profile']}" if "profile" in bounds else ""
        texts = [
            f"{key} {one['bound']} (default {one['default']})"
            for key, one in (bounds.get("loosened") or {}).items()
        ]
        looser[f"Thresholds looser than the defaults{profile}: {listed(texts) or 'none'}."] = None
    yield from looser
    aside = sum(len(trial.set_aside) for trial in campaign.state.trials.values())
    again = sum(int(manifest.get("attempt", 1)) > 1 for manifest in campaign.manifests.values())
    if again or aside:
        trials, attempts = counted(again, "trial"), counted(aside, "attempt")
        yield f"Repeated attempts: {trials} needed more than one attempt, {attempts} set aside."
    planned = set(campaign.plan.ids)
    unused = sum(id_ not in planned and not is_open(one) for id_, one in campaign.state.trials.items())
    if unused:
        results = f"{counted(unused, 'result')} of trials that an earlier plan had"
        yield f"In the campaign’s folder but not analysed: {results}."
    yield from (f"Warning of the plan: {warning}" for warning in campaign.plan.warnings)
    yield from (f"Warning of the analysis: {note}" for note in campaign.analysis.get("notes") or [])
