"""Compose the report's provenance: software versions, hosts, source tree, and scripts run on hosts."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from textwrap import TextWrapper

from samovar import __version__
from samovar.recipes import BODY
from samovar.report.campaign_data import Campaign, Json, read_json
from samovar.report.overview import either, pairs

MOST_LINES, MOST_COLUMNS = 60, 100
"""The largest size of a script in the appendix, about one page. Longer lines are wrapped. In the middle of a
longer script, lines are left out."""
WRAPPER = TextWrapper(MOST_COLUMNS, subsequent_indent="  ↳ ", tabsize=4, break_on_hyphens=False)


def provenance(campaign: Campaign) -> list[Json]:
    """Return groups of facts about the software, without facts that were not recorded."""
    recorded, analysis = campaign.provenance, campaign.analysis
    controller: Json = recorded.get("controller") or {}
    git: Json = recorded.get("git") or {}
    trials = Counter(one.node for one in campaign.state.trials.values())
    nodes = {
        node: {**campaign.state.nodes.get(node, {}), "trials": trials[node]}
        for node in sorted(trials)
        if node
    }
    labs = {name: f" {name}" if len(campaign.testbeds) > 1 else "" for name in campaign.testbeds}
    groups: dict[str, Json] = {
        "samovar": {
            "version": controller.get("samovar") or __version__,
            "git revision": git.get("revision"),
            "source tree": ("modified" if git["modified"] else "as committed") if "modified" in git else None,
        },
        "Controller": {name: value for name, value in controller.items() if name != "samovar"},
        "Analysis": {
            "R": analysis.get("r_version"),
            "R packages": analysis.get("packages"),
            "trials used": len(analysis["trials_used"]) if "trials_used" in analysis else None,
        },
        "Report": report_software(),
        **{"Lab" + end: campaign.recorded(name).get("lab") or {} for name, end in labs.items()},
        "Nodes": nodes if len(trials) > 1 else {},
    }
    shown = {
        name: pairs({key.replace("_", " "): one_line(value) for key, value in facts.items()})
        for name, facts in groups.items()
    }
    return [{"name": name, "facts": facts} for name, facts in shown.items() if facts]


def report_software() -> dict[str, str]:
    """Return the versions of Python and of Typst, which typesets the report."""
    return {"Python": platform.python_version(), "typst": version("typst")}


def software(analysis: Json) -> dict[str, str]:
    """Return the versions of the programs that made the bundle, by name."""
    packages = {f"R-{name}": one_line(one) for name, one in (analysis.get("packages") or {}).items()}
    found = {**report_software(), "R": one_line(analysis.get("r_version")), **packages}
    return {name: text for name, text in found.items() if text}


def one_line(value: object) -> str:
    """Return a JSON value as one line of text: keys with their values, entries separated by commas."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one_line(entry)}".strip() for name, entry in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(one_line(entry) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(str(value).split())


def hosts(campaigns: Sequence[Campaign]) -> list[Json]:
    """Return a row per host, from the testbed files and the facts recorded when the campaigns ran.

    All campaigns are on the same testbeds. A host has the systems, kernels and tools of all campaigns.
    """
    found: dict[str, list[tuple[Json, Json]]] = {}
    for name, entry in chain.from_iterable(one.hosts.items() for one in campaigns):
        found.setdefault(name, []).append(entry)
    return [_host(name, entries[0][0], [facts for _, facts in entries]) for name, entries in found.items()]


def _host(name: str, declared: Json, recorded: Sequence[Json]) -> Json:
    interfaces: Json = declared.get("interfaces") or {}
    tools = chain.from_iterable((facts.get("tools") or {}).items() for facts in recorded)
    return {
        "name": name,
        "role": str(declared.get("role") or ""),
        "system": either(one_line(facts.get("os_release")) for facts in recorded)
        or one_line(declared.get("os")),
        "kernel": either(one_line(facts.get("kernel")) for facts in recorded),
        "control": str(declared.get("address") or ""),
        "interfaces": [f"{one} {(own or {}).get('address', '')}".strip() for one, own in interfaces.items()],
        "tools": [*dict.fromkeys(f"{tool} {number}" for tool, number in tools if number)],
    }


def commands(campaign: Campaign) -> Json | None:
    """Return the scripts that ran in the first valid trial of the plan; None if no trial is valid."""
    trial = next((one for one in campaign.plan.ids if campaign.trial_state(one) == "valid"), None)
    folder = f"trials/{trial}/commands"
    scripts = [read_script(file) for file in sorted((campaign.folder / folder).glob("*.sh"))]
    if trial is None or not scripts:
        return None
    return {
        "trial": trial,
        "folder": folder,
        "set": [one for one in scripts if one["step"] == "set"],
        "other": [one for one in scripts if one["step"] != "set"],
    }


def script_body(file: Path) -> str:
    """Return the text of a recorded script, without the functions with which all scripts begin."""
    text = file.read_text(encoding="utf-8", errors="replace")
    _, body, rest = text.partition(BODY)
    return body + rest or text


def read_script(file: Path) -> Json:
    """Return a recorded script, shortened to about a page, and how it ended."""
    record = read_json(file.with_suffix(".json"), dict, optional=True)
    lines = [
        piece for line in script_body(file).rstrip().splitlines() for piece in WRAPPER.wrap(line) or [""]
    ]
    if len(lines) > MOST_LINES:
        head, tail = MOST_LINES * 3 // 4, MOST_LINES // 4
        lines = [*lines[:head], f"  … {len(lines) - head - tail} lines left out …", *lines[-tail:]]
    ended = [f"exit code {record['exit_code']}"] if "exit_code" in record else []
    ended += [f"{float(record['seconds']):.2f} s"] if "seconds" in record else []
    return {
        "name": file.name,
        "host": str(record.get("host", "")),
        "step": str(record.get("step", "")),
        "lines": lines,
        "ended": ", ".join(ended),
    }
