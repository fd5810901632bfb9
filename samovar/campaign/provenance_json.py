"""Make the content of provenance.json, and compare it with the content that an earlier run wrote.

The file has the versions, recipes and hosts that a campaign was run with.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from samovar import __version__
from samovar.campaign.availability import used_recipes
from samovar.campaign.folder import ResumePoint, read_json
from samovar.plan import Plan
from samovar.recipes import Catalogue, digest_recipe_files

PROVENANCE = "provenance.json"
RECIPES = "recipes"
REQUIREMENTS = ("fabric", "paramiko", "Jinja2", "PyYAML", "pydantic", "rich", "typst")


def provenance_of(
    root: Path, plan: Plan, catalogue: Catalogue, testbeds: Mapping[str, Mapping[str, object]]
) -> Mapping[str, object]:
    """Return the content of provenance.json.

    `testbeds` maps the name of each testbed of the campaign to its keys `lab` (None for real machines) and
    `hosts` (facts by host).
    """
    content = {
        "controller": {
            "samovar": __version__,
            "python": platform.python_version(),
            "kernel": platform.release(),
            "packages": {name: metadata.version(name) for name in REQUIREMENTS},
        },
        "git": _git_state(root),
        RECIPES: recipe_digests(plan, catalogue),
    }
    return _with_testbeds(content, testbeds)


def this_node() -> Mapping[str, str]:
    """Return this computer's name (in a job of Slurm, its node name), kernel release and samovar version."""
    node = os.environ.get("SLURMD_NODENAME") or platform.node()
    return {"node": node, "node_kernel": platform.release(), "samovar": __version__}


def _git_state(root: Path) -> Mapping[str, object]:
    """Return a project's git revision and whether files differ from it.

    The result is empty outside a git checkout, and on a controller without git.
    """

    def git(*words: str) -> str:
        try:
            done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    revision = git("rev-parse", "HEAD")
    return {"revision": revision, "modified": bool(git("status", "--porcelain"))} if revision else {}


def recipe_digests(plan: Plan, catalogue: Catalogue) -> Mapping[str, str]:
    """Return the digest of each recipe file that trials of a plan use, by file name. Raises RecipeError."""
    files = {one.path for one in used_recipes(plan, catalogue)}
    return digest_recipe_files(sorted(files), catalogue.folders)


def changed_kernels(
    before: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Yield each host whose kernel has changed: its testbed and name, its kernel before, and its kernel now.

    `before` and `now` are contents of provenance.json.
    """
    old, new = kernels_of(before), kernels_of(now)
    yield from ((key, old[key], new[key]) for key in new if old.get(key, new[key]) != new[key])


def kernels_of(provenance: Mapping[str, Any]) -> Mapping[tuple[str, str], str]:
    """Return the kernel of each host by testbed and host, from the content of provenance.json."""
    return {
        (testbed, host): facts["kernel"]
        for testbed, own in _by_testbed(provenance).items()
        for host, facts in own.get("hosts", {}).items()
        if facts.get("kernel")
    }


def _with_testbeds(
    content: Mapping[str, Any], testbeds: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return `content` with the keys of the first testbed; `others` has the keys of each further testbed."""
    (name, own), *others = testbeds.items()
    content = {**content, "testbed": name, **own}
    return {**content, "others": dict(others)} if others else content


def _by_testbed(provenance: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    return {str(provenance.get("testbed")): provenance, **provenance.get("others", {})}


def keep_absent_hosts(
    provenance: Mapping[str, Any], before: Mapping[str, Any], hosts: Mapping[str, Collection[str]]
) -> Mapping[str, Any]:
    """Return the content of provenance.json, with facts from `before` about hosts that did not answer now.

    `hosts` has the names of all hosts of each testbed.
    """
    earlier = _by_testbed(before)

    def whole(testbed: str, own: Mapping[str, Any]) -> Mapping[str, Any]:
        known = earlier.get(testbed, {}).get("hosts", {})
        absent = {host: facts for host, facts in known.items() if host in hosts[testbed]}
        return {**own, "hosts": {**absent, **own["hosts"]}}

    return _with_testbeds(
        provenance, {name: whole(name, own) for name, own in _by_testbed(provenance).items()}
    )


def changed_recipes(plan: Plan, resume: ResumePoint, catalogue: Catalogue) -> Sequence[str]:
    """Return the recipe files of a plan that have changed since the campaign's results were measured."""
    if resume.folder is None or not resume.comparison.stands:
        return ()
    recorded = read_json(resume.folder / PROVENANCE).get(RECIPES)
    if not isinstance(recorded, Mapping):
        return ()  # written by a release that did not record recipes
    digests = recipe_digests(plan, catalogue)
    return [name for name, digest in digests.items() if recorded.get(name, digest) != digest]
