"""Provenance: software versions, hosts, the state of the source tree, the scripts that set the hosts."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from samovar import __version__
from samovar.recipes import BODY
from samovar.report.campaign_data import Campaign, Json, read_json_object
from samovar.report.number_format import duration

REPORT_PACKAGES = ("typst", "Jinja2")
FURTHER_FACTS = {"cpu_count": "CPUs:", "boot_id": "boot id:", "clock_offset_s": "clock offset in s:"}
"""Facts of a host that the report shows beside system and tools; provenance.json has all."""
MOST_LINES, MOST_COLUMNS = 60, 100
"""Size of a script in the appendix: a page holds about 60 lines."""


def provenance(campaign: Campaign, analysis: Json) -> list[Json]:
    """Return groups of facts, without those that are not recorded."""
    controller: Json = campaign.provenance.get("controller") or {}
    seconds = analysis.get("seconds")
    groups = {
        "samovar": _source_tree(campaign.provenance, controller),
        "Controller": _readable({name: value for name, value in controller.items() if name != "samovar"}),
        "Analysis": {
            "R": analysis.get("r_version"),
            "R packages": analysis.get("packages"),
            "trials used": len(analysis["trials_used"]) if "trials_used" in analysis else None,
            "analysis time": duration(float(seconds)) if isinstance(seconds, (int, float)) else None,
        },
        "Report": {"Python": platform.python_version(), **_installed(REPORT_PACKAGES)},
        "Lab": _readable(campaign.provenance.get("lab") or {}),
    }
    texts = {name: {key: one_line(value) for key, value in facts.items()} for name, facts in groups.items()}
    return [
        {"name": name, "facts": [{"name": key, "value": text} for key, text in facts.items() if text]}
        for name, facts in texts.items()
        if any(facts.values())
    ]


def _source_tree(recorded: Json, controller: Json) -> dict[str, Any]:
    """Return the version of samovar that ran the campaign, its git revision, and whether it was modified."""
    git: Json = recorded.get("git") or {}
    state = ("modified" if git["modified"] else "as committed") if "modified" in git else None
    return {
        "version": controller.get("samovar") or __version__,
        "git revision": git.get("revision"),
        "source tree": state,
    }


def _readable(facts: Json) -> dict[str, Any]:
    return {str(name).replace("_", " "): value for name, value in facts.items()}


def _installed(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of the Python packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def software(analysis: Json) -> dict[str, str]:
    """Return the programs that made the bundle, with their versions."""
    found = {
        "Python": platform.python_version(),
        **_installed(REPORT_PACKAGES),
        "R": analysis.get("r_version"),
    }
    packages = analysis.get("packages")
    if isinstance(packages, Mapping):
        found |= {f"R-{name}": one_line(one) for name, one in packages.items()}
    return {name: str(one) for name, one in found.items() if one}


def one_line(value: object) -> str:
    """Return a JSON value on one line: names with their values, lists with commas."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one_line(entry)}".strip() for name, entry in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(one_line(entry) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(str(value).split())


def hosts(campaign: Campaign) -> list[Json]:
    """Return a row per host: what the testbed file declares, and the facts recorded of it."""
    recorded: Json = campaign.provenance.get("hosts") or {}
    declared: Json = campaign.testbed.get("hosts") or {}
    names = dict.fromkeys([*declared, *recorded])
    return [_host(name, declared.get(name) or {}, recorded.get(name) or {}) for name in names]


def _host(name: str, declared: Json, recorded: Json) -> Json:
    interfaces: Json = declared.get("interfaces") or {}
    further = {name: recorded[key] for key, name in FURTHER_FACTS.items() if recorded.get(key)}
    return {
        "name": name,
        "role": str(declared.get("role") or ""),
        "system": one_line(recorded.get("os_release") or declared.get("os")),
        "kernel": one_line(recorded.get("kernel")),
        "control": str(declared.get("address") or ""),
        "interfaces": [
            f"{one} {(values or {}).get('address', '')}".strip() for one, values in interfaces.items()
        ],
        "tools": [f"{tool} {version}" for tool, version in (recorded.get("tools") or {}).items() if version],
        "more": one_line(further),
    }


def commands(campaign: Campaign) -> Json | None:
    """Return the scripts of the first valid trial; None if there is none."""
    trial = next((one for one in campaign.ids if campaign.trial_state(one) == "valid"), None)
    folder = campaign.folder / "trials" / (trial or "") / "commands"
    scripts = [read_script(file) for file in sorted(folder.glob("*.sh"))]
    if trial is None or not scripts:
        return None
    return {
        "trial": trial,
        "folder": f"trials/{trial}/commands",
        "set": [one for one in scripts if one["step"] == "set"],
        "other": [one for one in scripts if one["step"] != "set"],
    }


def read_script(file: Path) -> Json:
    """Return a script without the functions that all scripts begin with, and how it ended."""
    record = read_json_object(file.with_suffix(".json"), optional=True)
    text = file.read_text(encoding="utf-8", errors="replace").rstrip()
    _, body, rest = text.partition(BODY)
    lines = [piece for line in (body + rest or text).splitlines() for piece in _wrapped(line.expandtabs(4))]
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


def _wrapped(line: str) -> Iterator[str]:
    """Break a line at the width of the page, at a space if there is one in the last third."""
    mark = ""
    while len(mark + line) > MOST_COLUMNS:
        room = MOST_COLUMNS - len(mark)
        cut = line.rfind(" ", room * 2 // 3, room) + 1 or room
        yield mark + line[:cut].rstrip()
        mark, line = "  ↳ ", line[cut:]
    yield mark + line
