"""With what the results were made: programs and their versions, the hosts, the state of the source tree."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from samovar import __version__
from samovar.report.campaign_data import Campaign, Json
from samovar.report.number_format import duration

SETTING = ("typst", "Jinja2")
MORE = {"cpu_count": "CPUs:", "boot_id": "boot id:", "clock_offset_s": "clock offset in s:"}
"""What the report says of a host beside its system and tools; provenance.json has the rest."""


def provenance(campaign: Campaign, analysis: Json) -> list[Json]:
    """Return groups of named facts; what was not recorded is not shown."""
    groups = [
        ("samovar", samovar_facts(campaign.provenance)),
        ("Controller", controller_facts(campaign.provenance)),
        ("Analysis", analysis_facts(analysis)),
        ("Report", report_facts()),
        ("Lab", facts(campaign.provenance.get("lab"))),
    ]
    return [{"name": name, "facts": rows} for name, rows in groups if rows]


def samovar_facts(recorded: Json) -> list[Json]:
    """Say which samovar ran the campaign, and whether its tree had been changed since the revision."""
    git = recorded.get("git")
    controller: Json = recorded.get("controller") or {}
    rows = [("version", controller.get("samovar") or recorded.get("samovar") or __version__)]
    if isinstance(git, Mapping):
        modified = git.get("modified", git.get("dirty"))
        rows.append(("git revision", git.get("revision") or git.get("commit")))
        rows.append(("source tree", None if modified is None else "modified" if modified else "as committed"))
        rest = set(git) - {"revision", "commit", "modified", "dirty"}
        rows += [(f"git {name}", git[name]) for name in sorted(rest)]
    else:
        rows.append(("git revision", git))
    return named(rows)


def controller_facts(recorded: Json) -> list[Json]:
    """Name what was recorded of the controller; samovar's own version stands with its revision."""
    controller: Json = recorded.get("controller") or {}
    return facts({name: value for name, value in controller.items() if name != "samovar"})


def software(analysis: Json) -> dict[str, str]:
    """Return the programs that made the bundle, each with its version."""
    found = {"Python": platform.python_version(), **{name: installed(name) for name in SETTING}}
    packages = analysis.get("packages")
    found |= {"R": analysis.get("r_version")}
    if isinstance(packages, Mapping):
        found |= {f"R-{name}": flat(one) for name, one in packages.items()}
    return {name: str(one) for name, one in found.items() if one}


def analysis_facts(analysis: Json) -> list[Json]:
    """Say which R and packages made the tables and figures."""
    seconds = analysis.get("seconds")
    rows = [
        ("R", analysis.get("r_version")),
        ("R packages", analysis.get("packages")),
        ("trials used", len(analysis["trials_used"]) if "trials_used" in analysis else None),
        ("analysis time", duration(float(seconds)) if isinstance(seconds, (int, float)) else None),
    ]
    return named(rows)


def report_facts() -> list[Json]:
    """Say what set this document."""
    return named([("Python", platform.python_version()), *((name, installed(name)) for name in SETTING)])


def installed(package: str) -> str | None:
    """Return the version of a Python package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def facts(value: object) -> list[Json]:
    """Name every fact of a mapping that somebody else wrote."""
    entries = value.items() if isinstance(value, Mapping) else ()
    return named([(str(name).replace("_", " "), entry) for name, entry in entries])


def named(rows: list[tuple[str, Any]]) -> list[Json]:
    """Keep the rows that say something, as text."""
    texts = [(name, flat(value)) for name, value in rows]
    return [{"name": name, "value": text} for name, text in texts if text]


def flat(value: object) -> str:
    """Write any JSON value on one line: names with their values, lists with commas."""
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {flat(entry)}".strip() for name, entry in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(flat(entry) for entry in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(str(value).split())


def hosts(campaign: Campaign) -> list[Json]:
    """Return a row per host: what the testbed file says and what the runner found on it."""
    recorded: Json = campaign.provenance.get("hosts") or {}
    declared: Json = campaign.testbed.get("hosts") or {}
    names = list(dict.fromkeys([*declared, *recorded]))
    return [host_row(name, declared.get(name) or {}, recorded.get(name) or {}) for name in names]


def host_row(name: str, declared: Json, recorded: Json) -> Json:
    """Return one host: role, system, kernel, addresses, tools."""
    interfaces: Json = declared.get("interfaces") or {}
    addresses = [f"{one} {(values or {}).get('address', '')}".strip() for one, values in interfaces.items()]
    return {
        "name": name,
        "role": str(declared.get("role") or ""),
        "system": flat(recorded.get("os_release") or recorded.get("os") or declared.get("os")),
        "kernel": flat(recorded.get("kernel")),
        "control": str(declared.get("address") or ""),
        "interfaces": addresses,
        "tools": tool_words(recorded.get("tools")),
        "more": flat({name: recorded[key] for key, name in MORE.items() if recorded.get(key)}),
    }


def tool_words(tools: object) -> list[str]:
    """List a host's tools with their versions."""
    if isinstance(tools, Mapping):
        return [f"{name} {flat(entry)}" for name, entry in tools.items() if flat(entry)]
    return [flat(tool) for tool in tools] if isinstance(tools, (list, tuple)) else []
