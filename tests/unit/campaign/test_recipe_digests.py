"""Digests of recipe files: which recipes a plan uses, and which have changed since a campaign ran."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from samovar.campaign.folder import ResumePoint
from samovar.campaign.journal import fold
from samovar.campaign.provenance_json import changed_recipes, provenance_of, recipe_digests
from samovar.plan import Pick, Plan
from samovar.plan.diff import compare
from samovar.recipes import Catalogue
from tests.unit.plan_values import plan_of, trial
from tests.unit.plans import ROOT

PLAN = plan_of([trial("newreno"), trial("newreno", 2)])


@pytest.fixture
def templates(tmp_path: Path) -> Path:
    """A copy of all recipes, to be changed."""
    return Path(shutil.copytree(ROOT / "templates", tmp_path / "templates"))


def _standing(folder: Path, plan: Plan, recorded: object, done: bool = True) -> ResumePoint:
    (folder / "provenance.json").write_text(json.dumps({"recipes": recorded}))
    known = {one.id: "done" for one in plan.trials} if done else {}
    return ResumePoint(folder, compare(plan, plan, known), fold(()), Pick().of(plan))


def test_the_recipes_of_a_plan_include_those_of_queues_and_included_files(templates: Path) -> None:
    files = recipe_digests(PLAN, Catalogue(templates))
    loggers = {"linux/logger/tcp-info.sh.j2", "linux/program/tcp_info.py", "linux/logger/queue.sh.j2"}
    assert {"linux/aqm/pfifo.sh.j2", "posix/generator/iperf3.sh.j2", *loggers} <= set(files)
    assert "linux/aqm/codel.sh.j2" not in files
    assert not any(name.startswith("freebsd") for name in files)


@pytest.mark.parametrize("name", ["linux/aqm/pfifo.sh.j2", "linux/program/tcp_info.py"])
def test_a_recipe_that_was_changed_since_is_named_where_results_stand(
    templates: Path, tmp_path: Path, name: str
) -> None:
    catalogue = Catalogue(templates)
    standing = _standing(tmp_path, PLAN, recipe_digests(PLAN, catalogue))
    assert changed_recipes(PLAN, standing, catalogue) == []
    with (templates / name).open("a") as file:
        file.write("\n# another one\n")
    assert changed_recipes(PLAN, standing, catalogue) == [name]
    nothing_stands = _standing(tmp_path, PLAN, {name: "0"}, done=False)
    assert changed_recipes(PLAN, nothing_stands, catalogue) == ()


def test_a_recipe_that_no_trial_uses_may_change(templates: Path, tmp_path: Path) -> None:
    catalogue = Catalogue(templates)
    standing = _standing(tmp_path, PLAN, recipe_digests(PLAN, catalogue))
    (templates / "linux" / "aqm" / "codel.sh.j2").write_text("another one")
    assert changed_recipes(PLAN, standing, catalogue) == []


def test_a_campaign_that_recorded_no_recipes_has_no_changed_ones(templates: Path, tmp_path: Path) -> None:
    standing = _standing(tmp_path, PLAN, None)
    assert changed_recipes(PLAN, standing, Catalogue(templates)) == ()


def test_a_campaign_can_run_on_a_controller_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    testbeds: dict[str, dict[str, object]] = {"lab": {"lab": None, "hosts": {}}}
    assert provenance_of(ROOT, PLAN, Catalogue(ROOT / "templates"), testbeds)["git"] == {}
