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
    """A copy of all recipes, which a test may change."""
    return Path(shutil.copytree(ROOT / "templates", tmp_path / "templates"))


def _resume_point(folder: Path, plan: Plan, recorded: object, done: bool = True) -> ResumePoint:
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
def test_a_recipe_that_changed_since_a_campaign_ran_is_reported_if_there_are_results(
    templates: Path, tmp_path: Path, name: str
) -> None:
    catalogue = Catalogue(templates)
    resume = _resume_point(tmp_path, PLAN, recipe_digests(PLAN, catalogue))
    assert changed_recipes(PLAN, resume, catalogue) == []
    with (templates / name).open("a") as file:
        file.write("\n# another one\n")
    assert changed_recipes(PLAN, resume, catalogue) == [name]
    without_results = _resume_point(tmp_path, PLAN, {name: "0"}, done=False)
    assert changed_recipes(PLAN, without_results, catalogue) == ()


def test_a_changed_recipe_that_no_trial_uses_is_not_reported(templates: Path, tmp_path: Path) -> None:
    catalogue = Catalogue(templates)
    resume = _resume_point(tmp_path, PLAN, recipe_digests(PLAN, catalogue))
    (templates / "linux" / "aqm" / "codel.sh.j2").write_text("another one")
    assert changed_recipes(PLAN, resume, catalogue) == []


def test_no_changed_recipe_is_reported_for_a_campaign_that_recorded_none(
    templates: Path, tmp_path: Path
) -> None:
    resume = _resume_point(tmp_path, PLAN, None)
    assert changed_recipes(PLAN, resume, Catalogue(templates)) == ()


def test_a_campaign_can_run_on_a_controller_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    testbeds: dict[str, dict[str, object]] = {"lab": {"lab": None, "hosts": {}}}
    assert provenance_of(ROOT, PLAN, Catalogue(ROOT / "templates"), testbeds)["git"] == {}
