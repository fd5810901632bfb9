"""What was run: the facts of the cover, how the trials stand, the treatments, the traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from samovar.report.campaign_data import NOT_RUN, Campaign, Json, campaign_end_s, campaign_time_s, standing
from samovar.report.number_format import count, duration, listed, moment, quantity

# What a direction of the path is set to: how it is called, its key, its unit.
DIRECTION_WORDS = (
    ("rate", "rate_bps", "bps"),
    ("jitter", "jitter_s", "s"),
    ("loss", "loss", "share"),
    ("reordering", "reorder", "share"),
    ("duplication", "duplicate", "share"),
)
# The order in which verdicts and outcomes are told.
STANDINGS = ("valid", "suspect", "invalid", "failed", "interrupted", NOT_RUN)


def overview(campaign: Campaign) -> Json:
    """Return what the cover says of the campaign."""
    plan = campaign.plan
    return {
        "title": plan.get("title") or campaign.experiment,
        "experiment": campaign.experiment,
        "campaign": campaign.name,
        "description": " ".join(str(plan.get("description") or "").split()),
        "notice": notice(campaign),
        "facts": [{"name": name, "value": value} for name, value in facts(campaign) if value],
    }


def facts(campaign: Campaign) -> list[tuple[str, str]]:
    """List the facts of the cover, in order; an empty value is left out there."""
    plan = campaign.plan
    return [
        ("Experiment", campaign.experiment),
        ("Source", str(plan.get("source") or "")),
        ("Campaign", campaign.name + (f" (profile {plan['profile']})" if plan.get("profile") else "")),
        ("Changed", ", ".join(f"{key} {value}" for key, value in plan.get("overrides", {}).items())),
        ("When", when(campaign)),
        ("Testbed", testbed_words(campaign)),
        ("Bottleneck", ", ".join(path_words(campaign.trials))),
        ("Trials", trials_words(campaign)),
    ]


def when(campaign: Campaign) -> str:
    """Say when the campaign began and how long it took."""
    start, end = campaign_time_s(campaign), campaign_end_s(campaign)
    return moment(start) + (f", over {duration(end - start)}" if end > start else "")


def testbed_words(campaign: Campaign) -> str:
    """Say on what the campaign ran."""
    name = str(campaign.plan.get("testbed") or campaign.testbed.get("testbed") or "")
    about = str(campaign.testbed.get("description") or "").strip()
    hosts = campaign.testbed.get("hosts") or {}
    kind = f"virtual lab, {lab_kernel(campaign)}" if "lab" in campaign.testbed else "real machines"
    return f"{name}: {about} {count(len(hosts), 'host').capitalize()}, {kind}." if hosts else name


def lab_kernel(campaign: Campaign) -> str:
    """Say which kernel the lab ran on: what was recorded, else what the testbed asks for."""
    recorded = (campaign.provenance.get("lab") or {}).get("kernel")
    asked = (campaign.testbed.get("lab") or {}).get("kernel", "auto")
    kernel = str(recorded or asked)
    return {"uml": "user-mode Linux", "native": "the machine’s own kernel"}.get(kernel, f"kernel {kernel}")


def trials_words(campaign: Campaign) -> str:
    """Count the planned trials by how they stand."""
    counts = standings(campaign)
    shares = [f"{counts[one]} {one}" for one in counts if counts[one]]
    return f"{count(sum(counts.values()), 'trial')} planned: {listed(shares)}"


def standings(campaign: Campaign) -> dict[str, int]:
    """Count the planned trials by verdict or outcome, in the order in which they are told."""
    found = Counter(standing(campaign, str(trial["id"])) for trial in campaign.trials)
    known = {one: found[one] for one in STANDINGS}
    return known | {one: amount for one, amount in found.items() if one not in known}


def notice(campaign: Campaign) -> str:
    """Say on the cover that a campaign did not come to its end; empty when it did."""
    counts = standings(campaign)
    missing, planned = counts[NOT_RUN], sum(counts.values())
    if campaign.finished and not missing:
        return ""
    others = "What follows rests on the others."
    which = f"{missing} of {count(planned, 'planned trial')}"
    ids = (str(trial["id"]) for trial in campaign.trials)
    lacking = sum(1 for id_ in ids if id_ in campaign.state.blocked and standing(campaign, id_) == NOT_RUN)
    if campaign.finished and lacking == missing:
        return f"The testbed cannot run {which}. {others}"
    state = "was interrupted" if not campaign.finished else "ended early"
    return f"This campaign {state}: {which} have not run. {others}"


def path_words(trials: Iterable[Json]) -> list[str]:
    """Say what the bottleneck was set to; where a setting varies, all its values."""
    paths = [resolved(trial).get("path") or {} for trial in trials]
    seen: dict[str, list[str]] = {}
    for path in paths:
        for name, words in path_settings(path):
            if words not in seen.setdefault(name, []):
                seen[name].append(words)
    return [
        listed(seen[name], "or") if name == "aqm" else f"{name} {listed(seen[name], 'or')}" for name in seen
    ]


def path_settings(path: Json) -> list[tuple[str, str]]:
    """Name the settings of one resolved path, each with its value in words; the way up where it is shaped."""
    down, up = path.get("down") or {}, path.get("up") or {}
    rtt_s = path.get("rtt_s")
    rtt = [("RTT", quantity(float(rtt_s), "s"))] if rtt_s is not None else []
    there = direction_settings(down)
    rates = sum(name == "rate" for name, _ in there)
    back = [(f"{name} up", words) for name, words in direction_settings(up)]
    return [*there[:rates], *rtt, *there[rates:], *back]


def direction_settings(way: Json) -> list[tuple[str, str]]:
    """Name the settings of one direction of a path, each with its value in words."""
    found = [
        (name, quantity(float(way[key]), unit))
        for name, key, unit in DIRECTION_WORDS
        if way.get(key) or (key == "rate_bps" and way.get(key) is not None)
    ]
    if way.get("buffer_packets") is not None:
        found.append(("buffer", quantity(float(way["buffer_packets"]), "packets")))
    elif way.get("buffer_bytes") is not None:
        found.append(("buffer", quantity(float(way["buffer_bytes"]), "bytes")))
    if way.get("aqm"):
        found.append(("aqm", str(way["aqm"])))
    return found


def treatments(campaign: Campaign) -> Json:
    """Return the factors and levels of each part, and how the trials were ordered."""
    parts = [part_words(part, campaign) for part in campaign.plan.get("parts", [])]
    return {"order": order_words(campaign), "parts": parts}


def part_words(part: Json, campaign: Campaign) -> Json:
    """Return one part's factors, levels, replicates and traffic."""
    name = str(part.get("name", "main"))
    trials = [trial for trial in campaign.trials if trial.get("part", "main") == name]
    factors: Json = part.get("factors") or {}
    flows = [flow for trial in trials for flow in resolved(trial).get("flows", [])]
    return {
        "name": name,
        "title": str(part.get("title") or ""),
        "factors": [
            {"name": one, "levels": [str(level) for level in levels]} for one, levels in factors.items()
        ],
        "summary": design_words(trials, int(part.get("replicates", 1))),
        "path": ", ".join(path_words(trials)),
        "flows": distinct(flow_words(flow) for flow in flows),
        "recorded": listed(distinct(record_words(trials))),
    }


def resolved(trial: Json) -> Json:
    """Return what a trial comes to."""
    return trial.get("resolved") or {}


def design_words(trials: list[Json], replicates: int) -> str:
    """Say how many treatments, replicates and trials a part has."""
    treatments = len({tuple((trial.get("treatment") or {}).items()) for trial in trials})
    design = f"{count(treatments, 'treatment')} × {count(replicates, 'replicate')}"
    return f"{design}, {count(len(trials), 'trial')}"


def flow_words(flow: Json) -> str:
    """Say one flow: label, generator, ends, start and how much."""
    ends = f"from {flow.get('from')} to {flow.get('to')}"
    parts = [f"{flow.get('label', 'flow')}: {flow.get('generator', '')} {ends}"]
    if flow.get("port") is not None:
        parts.append(f"port {flow['port']}")
    if flow.get("size_bytes") is not None:
        parts.append(quantity(float(flow["size_bytes"]), "bytes"))
    elif flow.get("duration_s") is not None:
        parts.append(f"for {duration(float(flow['duration_s']))}")
    elif flow.get("until"):
        parts.append(f"until {flow['until']} ends")
    if flow.get("start_s"):
        parts.append(f"starting at {duration(float(flow['start_s']))}")
    return ", ".join(parts)


def record_words(trials: Iterable[Json]) -> Iterable[str]:
    """Say what is captured and logged where."""
    for trial in trials:
        for capture in resolved(trial).get("captures", []):
            where = f"{capture.get('host')} {capture.get('interface')}"
            yield f"packets at {where} ({capture.get('snaplen_bytes')} B of each)"
        for logger in resolved(trial).get("loggers", []):
            every = f" every {quantity(float(logger['interval_s']), 's')}" if logger.get("interval_s") else ""
            yield f"{logger.get('logger')} at {logger.get('host')}{every}"


def distinct(words: Iterable[str]) -> list[str]:
    """Drop repeats and keep the order."""
    return list(dict.fromkeys(words))


def order_words(campaign: Campaign) -> str:
    """Say how the trials were ordered and by which seed."""
    order, seed = str(campaign.plan.get("order") or "sequential"), campaign.plan.get("seed")
    meaning = {
        "sequential": "in the order of the factors",
        "shuffled": "shuffled as a whole",
        "blocked": "shuffled within blocks, each block holding one replicate of every treatment",
    }.get(order, order)
    seeded = seed is not None and order != "sequential"
    return f"Trials ran {meaning}" + (f"; seed {seed}." if seeded else ".")
