"""What was run: the facts of the cover, trials by state, treatments and traffic of each part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from samovar.report.campaign_data import NOT_RUN, Campaign, Json
from samovar.report.number_format import count, duration, listed, moment, quantity

DIRECTION_SETTINGS = (
    ("rate", "rate_bps", "bps"),
    ("jitter", "jitter_s", "s"),
    ("loss", "loss", "share"),
    ("reordering", "reorder", "share"),
    ("duplication", "duplicate", "share"),
)
"""Settings of one direction of a path: name, key in plan.json, unit."""
STATES = ("valid", "suspect", "invalid", "failed", "interrupted", NOT_RUN)
KERNELS = {"uml": "user-mode Linux", "native": "the machine’s own kernel"}
ORDERS = {
    "sequential": "in the order of the factors",
    "shuffled": "in random order",
    "blocked": "in random order within blocks; each block has one replicate of every treatment",
}


def overview(campaign: Campaign) -> Json:
    """Return the cover: title, description, facts, and a notice if the campaign is incomplete."""
    plan = campaign.plan
    facts = [
        ("Experiment", campaign.experiment),
        ("Source", str(plan.get("source") or "")),
        ("Campaign", campaign.name + (f" (profile {plan['profile']})" if plan.get("profile") else "")),
        ("Overrides", ", ".join(f"{key} {value}" for key, value in plan.get("overrides", {}).items())),
        ("When", when(campaign)),
        ("Testbed", testbed_text(campaign)),
        ("Bottleneck", ", ".join(path_settings(campaign.trials))),
        ("Trials", trials_text([campaign])),
    ]
    return {
        "title": plan.get("title") or campaign.experiment,
        "experiment": campaign.experiment,
        "campaign": campaign.name,
        "description": " ".join(str(plan.get("description") or "").split()),
        "notice": _notice(campaign),
        "facts": [{"name": name, "value": value} for name, value in facts if value],
    }


def when(campaign: Campaign) -> str:
    """Return the start of a campaign and how long it took."""
    took_s = campaign.end_s - campaign.start_s
    return moment(campaign.start_s) + (f", over {duration(took_s)}" if took_s > 0 else "")


def testbed_text(campaign: Campaign) -> str:
    """Return the testbed with its description, number of hosts and kind."""
    testbed = campaign.testbed
    name = str(campaign.plan.get("testbed") or testbed.get("testbed") or "")
    hosts = testbed.get("hosts")
    if not hosts:
        return name
    kind = "real machines"
    if "lab" in testbed:
        recorded = (campaign.provenance.get("lab") or {}).get("kernel")
        kernel = str(recorded or (testbed["lab"] or {}).get("kernel", "auto"))
        kind = f"virtual lab, {KERNELS.get(kernel, f'kernel {kernel}')}"
    about = str(testbed.get("description") or "").strip()
    return f"{name}: {about} {count(len(hosts), 'host').capitalize()}, {kind}."


def trials_text(campaigns: Iterable[Campaign]) -> str:
    """Return the number of planned trials, in all and by state."""
    counts = sum((count_states(one) for one in campaigns), Counter[str]())
    known = [state for state in STATES if counts[state]]
    shares = [f"{counts[state]} {state}" for state in [*known, *(one for one in counts if one not in known)]]
    return f"{count(sum(counts.values()), 'trial')} planned: {listed(shares)}"


def count_states(campaign: Campaign) -> Counter[str]:
    """Count the planned trials by verdict or outcome."""
    return Counter(campaign.trial_state(id_) for id_ in campaign.ids)


def _notice(campaign: Campaign) -> str:
    """Return the sentence of the cover on trials that have not run; empty if all have."""
    counts = count_states(campaign)
    missing, planned = counts[NOT_RUN], sum(counts.values())
    if campaign.is_finished and not missing:
        return ""
    which = f"{missing} of {count(planned, 'planned trial')}"
    rest = "The results are those of the others."
    blocked = sum(
        id_ in campaign.state.blocked and campaign.trial_state(id_) == NOT_RUN for id_ in campaign.ids
    )
    if campaign.is_finished and blocked == missing:
        return f"The testbed cannot run {which}. {rest}"
    state = "ended early" if campaign.is_finished else "was interrupted"
    return f"This campaign {state}: {which} have not run. {rest}"


def path_settings(trials: Iterable[Json]) -> list[str]:
    """Return the settings of the bottleneck as text, with all values of a setting that varies."""
    found: dict[str, list[str]] = {}
    for trial in trials:
        path = resolved(trial).get("path") or {}
        down, up = _direction(path.get("down") or {}), _direction(path.get("up") or {})
        rate = down[:1] if down[:1] and down[0][0] == "rate" else []
        rtt = [("RTT", quantity(float(path["rtt_s"]), "s"))] if path.get("rtt_s") is not None else []
        for name, text in [*rate, *rtt, *down[len(rate) :], *((f"{name} up", text) for name, text in up)]:
            if text not in found.setdefault(name, []):
                found[name].append(text)
    values = {name: listed(texts, "or") for name, texts in found.items()}
    return [text if name == "aqm" else f"{name} {text}" for name, text in values.items()]


def _direction(settings: Json) -> list[tuple[str, str]]:
    """Return the settings of one direction that have an effect, each with its value as text."""
    found = [
        (name, quantity(float(settings[key]), unit))
        for name, key, unit in DIRECTION_SETTINGS
        if settings.get(key) or (key == "rate_bps" and settings.get(key) is not None)
    ]
    for unit in ("packets", "bytes"):
        if settings.get(f"buffer_{unit}") is not None:
            found.append(("buffer", quantity(float(settings[f"buffer_{unit}"]), unit)))
            break
    return [*found, *([("aqm", str(settings["aqm"]))] if settings.get("aqm") else [])]


def treatments(campaign: Campaign) -> Json:
    """Return the order of the trials, and the factors and traffic of each part."""
    order, seed = str(campaign.plan.get("order") or "sequential"), campaign.plan.get("seed")
    seeded = f"; seed {seed}" if seed is not None and order != "sequential" else ""
    return {
        "order": f"Trials ran {ORDERS.get(order, order)}{seeded}.",
        "parts": [_part(part, campaign) for part in campaign.plan.get("parts", [])],
    }


def _part(part: Json, campaign: Campaign) -> Json:
    name, replicates = str(part.get("name", "main")), int(part.get("replicates", 1))
    trials = [trial for trial in campaign.trials if trial.get("part", "main") == name]
    number = len({tuple((trial.get("treatment") or {}).items()) for trial in trials})
    design = f"{count(number, 'treatment')} × {count(replicates, 'replicate')}"
    factors: Json = part.get("factors") or {}
    flows = [_flow_text(flow) for trial in trials for flow in resolved(trial).get("flows", [])]
    return {
        "name": name,
        "title": str(part.get("title") or ""),
        "factors": [
            {"name": factor, "levels": [str(level) for level in levels]} for factor, levels in factors.items()
        ],
        "summary": f"{design}, {count(len(trials), 'trial')}",
        "path": ", ".join(path_settings(trials)),
        "flows": list(dict.fromkeys(flows)),
        "recorded": listed(list(dict.fromkeys(text for trial in trials for text in _recorded(trial)))),
    }


def resolved(trial: Json) -> Json:
    """Return the resolved settings of a trial."""
    return trial.get("resolved") or {}


def _flow_text(flow: Json) -> str:
    """Return a flow as text: label, generator, hosts, port, amount, start."""
    ends = f"from {flow.get('from')} to {flow.get('to')}"
    texts = [f"{flow.get('label', 'flow')}: {flow.get('generator', '')} {ends}"]
    if flow.get("port") is not None:
        texts.append(f"port {flow['port']}")
    if flow.get("size_bytes") is not None:
        texts.append(quantity(float(flow["size_bytes"]), "bytes"))
    elif flow.get("duration_s") is not None:
        texts.append(f"for {duration(float(flow['duration_s']))}")
    elif flow.get("until"):
        texts.append(f"until {flow['until']} ends")
    if flow.get("start_s"):
        texts.append(f"starting at {duration(float(flow['start_s']))}")
    return ", ".join(texts)


def _recorded(trial: Json) -> Iterable[str]:
    """Yield what a trial captures and logs, and where."""
    for capture in resolved(trial).get("captures", []):
        where = f"{capture.get('host')} {capture.get('interface')}"
        yield f"packets at {where} (first {capture.get('snaplen_bytes')} B of each)"
    for logger in resolved(trial).get("loggers", []):
        interval = f" every {quantity(float(logger['interval_s']), 's')}" if logger.get("interval_s") else ""
        yield f"{logger.get('logger')} at {logger.get('host')}{interval}"
