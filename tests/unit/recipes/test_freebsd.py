"""FreeBSD's recipes: the golden text for each release, and the verdict of shellcheck."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from samovar.experiment import load_experiment, load_testbed
from samovar.plan import estimate_cost, make_plan
from samovar.recipes import TrialScripts
from samovar.recipes.recipe import NOT_SHELL
from tests.unit.recipes.freebsd_sample import CATALOGUE, RELEASES, ROOT, prelude, recipes, values_of

GOLDEN = ROOT / "tests" / "golden"
NO_LINT = (
    "SC2034,"  # variables that only another recipe reads
    "SC2086,SC2046,"  # a queue's words, with set -f, and numbers that sysctl prints are meant to be split
    "SC2154,"  # variables that another recipe sets
    "SC2050,"  # rendered values make conditions constant
    "SC2140,"  # "a text about "'a value': values bring their own quotes
    "SC2317,SC2016,SC2015"  # functions called by name; programs of awk and sh in quotes; a && b || c is intended
)


def rendered_blocks(release: str) -> dict[str, str]:
    """Render every block of FreeBSD's recipes at a release; return the texts by golden file."""
    texts = {}
    for recipe in recipes(release):
        for block in sorted(recipe.blocks):
            folder = recipe.path.parents[1].name.replace("posix", "freebsd")
            texts[f"{folder}/{recipe.kind}-{recipe.name}-{block}.sh"] = recipe.render(
                block, values_of(recipe)
            )
    return texts


ALL = {name: text for release in RELEASES for name, text in rendered_blocks(release).items()}


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_rendered_block_is_equal_to_its_golden_file(name: str) -> None:
    path = GOLDEN / name
    if os.environ.get("SAMOVAR_WRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(ALL[name])
    assert ALL[name] == path.read_text()


def test_every_golden_file_belongs_to_a_block() -> None:
    found = {str(path.relative_to(GOLDEN)) for path in GOLDEN.glob("freebsd*/*.sh")}
    assert found == set(ALL)


@pytest.mark.parametrize("release", RELEASES)
def test_only_recipes_of_transmit_rings_have_a_text_of_their_own_for_older_releases(release: str) -> None:
    own = {name for name in rendered_blocks(release) if name.startswith("freebsd-")}
    older = {
        "fact-rings-command",
        "setting-txd-read",
        "setting-txd-restore",
        "setting-txd-set",
        "setting-txd-wanted",
    }
    assert own == ({f"freebsd-11/{name}.sh" for name in older} if int(release) <= 11 else set())


@pytest.mark.parametrize(
    ("system", "places"),
    [
        ("freebsd-9", ("freebsd-11", "freebsd", "posix")),
        ("freebsd-11", ("freebsd-11", "freebsd", "posix")),
        ("freebsd-12", ("freebsd", "posix")),
        ("freebsd", ("freebsd", "posix")),
        ("linux-6", ("linux", "posix")),
        ("plan9", ()),
    ],
)
def test_recipes_of_a_release_precede_those_of_the_system(system: str, places: tuple[str, ...]) -> None:
    assert CATALOGUE.places(system) == places


def test_the_folder_of_the_nearest_release_that_is_not_older_comes_first(tmp_path: Path) -> None:
    for folder in ("freebsd-9", "freebsd-11", "freebsd-13", "freebsd-x", "freebsd"):
        (tmp_path / folder / "setting").mkdir(parents=True)
    catalogue = type(CATALOGUE)(tmp_path)
    assert catalogue.places("freebsd-10")[:3] == ("freebsd-11", "freebsd-13", "freebsd")
    assert catalogue.places("freebsd-9")[:2] == ("freebsd-9", "freebsd-11")


@pytest.mark.parametrize("release", ["11", "12"])
def test_a_level_of_txd_costs_a_reboot_before_freebsd_12_and_an_interface_reset_after(release: str) -> None:
    change = CATALOGUE.header("setting", "txd", f"freebsd-{release}").change
    assert change == ("reboot" if release == "11" else "interface-reset")


def test_all_shell_text_of_freebsd_passes_the_linter(tmp_path: Path) -> None:
    lint = shutil.which("shellcheck")
    assert lint, "install shellcheck, which packages.debian lists"
    shell = {n: t for n, t in ALL.items() if n.split("-")[-1].removesuffix(".sh") not in NOT_SHELL}
    files = [tmp_path / name.replace("/", "-") for name in ("prelude.sh", *shell)]
    for file, text in zip(files, (prelude(), *shell.values()), strict=True):
        file.write_text("#!/bin/sh\n" + text)
    done = subprocess.run(
        [lint, "-s", "sh", "-S", "warning", "-e", NO_LINT, "-f", "gcc", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("", 0)


@pytest.mark.parametrize("kind", ["setting", "aqm", "logger"])
def test_the_reference_lists_every_recipe_of_freebsd(kind: str) -> None:
    page = (ROOT / "docs" / "reference" / "recipes.md").read_text()
    row = re.search(rf"^\| {kind} \|[^|]*\|(.*)$", page, flags=re.MULTILINE)
    assert row
    assert set(re.findall(r"`([^`]+)`", row[1])) == CATALOGUE.names(kind, "freebsd")


@pytest.mark.parametrize("name", ["example-freebsd", "example-freebsd-11"])
def test_the_example_testbed_of_freebsd_is_valid(name: str) -> None:
    testbed = load_testbed(ROOT / "hosts" / f"{name}.yaml")
    assert {CATALOGUE.header("setting", "txd", host.system).change for host in testbed.hosts.values()} == (
        {"reboot"} if name.endswith("11") else {"interface-reset"}
    )


EXPERIMENT = """\
experiment: rings
title: Rings
testbed: example-freebsd
path: {rate: 40Mbit, rtt: 15ms, aqm: fq_codel, buffer: 546packets}
traffic:
  - {flow: bulk, generator: iperf3, from: sender, to: receiver}
loggers:
  - {logger: siftr, at: sender}
parts:
  main: {title: Rings, factors: {cc: [newreno, cdg], txd: ["256", "1024"]}, duration: 10s, replicates: 1}
"""


@pytest.mark.parametrize(("name", "reboots"), [("example-freebsd", 0), ("example-freebsd-11", 3)])
def test_two_levels_of_txd_need_three_reboots_on_freebsd_11_and_none_on_newer_releases(
    name: str, reboots: int, tmp_path: Path
) -> None:
    path = tmp_path / "experiments" / "rings.yaml"
    path.parent.mkdir()
    path.write_text(EXPERIMENT)
    study = load_experiment(path, CATALOGUE, ROOT / "hosts" / f"{name}.yaml")
    plan = make_plan(study, CATALOGUE)
    assert len(plan.trials) == 4
    assert plan.changes.reboots == reboots
    assert estimate_cost(plan, CATALOGUE).boots == reboots
    assert estimate_cost(plan, CATALOGUE).reboot_s == reboots * 120
    scripts = TrialScripts(plan.trials[0], CATALOGUE, "rings-1")
    assert ("hw.$(driver em1).txd" in scripts.read("alpha", lasting=True)) is (reboots > 0)
