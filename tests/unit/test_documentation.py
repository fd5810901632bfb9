"""Check the documentation: its examples load, and its lists are complete."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from samovar.cli.controller import Controller
from samovar.cli.project import Request
from samovar.cli.project_folder import make_project
from samovar.cli.show_project import explanation_lines
from samovar.errors import DefinitionError
from samovar.experiment import (
    LoadOptions,
    load_experiment,
    load_study_report,
    load_testbed,
    package_outputs,
    yaml_tree,
)
from samovar.plan import make_plan
from samovar.recipes import Catalogue, Pace, Recipe, TrialScripts

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
CATALOGUE = Catalogue(ROOT / "templates")


def blocks(start: str) -> list[tuple[Path, str]]:
    """Return every fenced block of the documentation that begins with `start`, with its page."""
    fence = re.compile(r"^```\w*\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
    texts = ((page, text) for page in PAGES for text in fence.findall(page.read_text()))
    return [(page, text) for page, text in texts if text.startswith(start)]


def as_parameters(entries: list[tuple[Path, str]]) -> list[object]:
    """Return the texts as test parameters whose ids name their pages."""
    assert entries
    return [pytest.param(text, id=f"{page.stem}-{index}") for index, (page, text) in enumerate(entries)]


def explained_metrics() -> set[str]:
    """Return the names at the start of each entry of the lists of metrics."""
    page = (DOCS / "reference" / "metrics.md").read_text().partition("<!-- end -->")[0]
    names = [line.partition(": ")[0] for line in page.splitlines() if line.startswith("- `")]
    return {name for found in names for name in re.findall(r"`([^`]+)`", found)}


@pytest.mark.parametrize("text", as_parameters(blocks("experiment:")))
def test_an_experiment_in_the_documentation_can_be_planned(text: str, tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    path = tmp_path / "experiments" / f"{text.split()[1]}.yaml"
    path.write_text(text)
    study = load_experiment(path, CATALOGUE, ROOT / "hosts" / "lab.yaml")
    assert len(make_plan(study, CATALOGUE).trials) == (36 if text.split()[1] == "lossy" else 12)


def test_the_experiment_lossy_of_the_tutorial_has_twelve_lines_and_the_values_that_the_tutorial_states(
    tmp_path: Path,
) -> None:
    (text,) = [text for page, text in blocks("experiment: lossy") if page.stem == "tutorial"]
    assert len(text.splitlines()) <= 12
    (tmp_path / "experiments").mkdir()
    path = tmp_path / "experiments" / "lossy.yaml"
    path.write_text(text)
    overrides = {"path.rtt": "100ms"}
    plain = load_experiment(path, CATALOGUE, ROOT / "hosts" / "lab.yaml")
    study = load_experiment(path, CATALOGUE, ROOT / "hosts" / "lab.yaml", LoadOptions("quick", overrides))
    assert len(make_plan(study, CATALOGUE).trials) == 8
    study = load_experiment(path, CATALOGUE, ROOT / "hosts" / "lab.yaml", LoadOptions(None, overrides))
    longer = make_plan(study, CATALOGUE).trials[0].resolved.path
    assert longer is not None
    assert longer.rtt_s == 0.1
    explained = next(
        trial.resolved.path
        for trial in make_plan(plain, CATALOGUE).trials
        if trial.id.startswith("cubic-0pct-1-BDP-r1")
    )
    assert explained is not None
    assert explained.down.buffer_packets == 67


def test_the_project_of_the_tutorial_has_the_trials_errors_and_recipe_that_the_tutorial_shows(
    tmp_path: Path,
) -> None:
    page = (DOCS / "tutorial.md").read_text()
    files = re.findall(
        r"^`((?:templates|experiments)/[^`]+)`:\n\n```\w*\n((?s:.*?))^```$", page, flags=re.MULTILINE
    )
    assert len(files) == 3
    make_project(tmp_path)
    for name, text in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    mine = tmp_path / "experiments" / "mine.yaml"
    text = mine.read_text()
    project = Controller(tmp_path).project
    assert len(project.plan(Request("mine")).plan.trials) == 12
    broken = (("100packets", "100"), ("fq_codel", "fq_codle"), ("from: sender", "from: sneder"))
    for right, wrong in broken:
        mine.write_text(mine.read_text().replace(right, wrong))
    with pytest.raises(DefinitionError) as caught:
        Controller(tmp_path).project.plan(Request("mine"))
    shown = re.findall(r"^experiments/(mine\.yaml:\d+:\d+: .*?)(?:, …)?$", page, flags=re.MULTILINE)
    assert len(shown) == len(caught.value.problems) == len(broken)
    for problem, words in zip(caught.value.problems, shown, strict=True):
        assert words in str(problem)
    more = re.findall(
        r"^```yaml\n(  path\.aqm: .*\n)```|^```yaml\n(expect:\n(?s:.*?))^```", page, re.MULTILINE
    )
    (level, _), (_, expectations) = more
    mine.write_text(re.sub(r"  path\.aqm: .*\n", level, text) + expectations)
    plans = [Controller(tmp_path).project.plan(Request(name)).plan for name in ("mine", "beats")]
    assert [len(plan.trials) for plan in plans] == [18, 6]
    named = set(re.findall(r"[\w-]+-r\d-[0-9a-f]{6}", page))
    assert named <= set(plans[0].ids)
    scripts = TrialScripts(plans[1].find("cubic-pfifo-20ms"), project.catalogue, "campaign")
    assert [pace for ends in scripts.flows for pace in scripts.paces(ends)] == [Pace("from", 50.0, False)]


PATHS = [text for page, text in blocks("path:") if page.stem == "shape-a-path"]


@pytest.mark.parametrize(
    "text", [one for text in PATHS for one in re.split(r"^(?=path:)", text, flags=re.M) if one]
)
def test_a_path_in_the_documentation_can_be_planned(text: str, tmp_path: Path) -> None:
    (tmp_path / "experiments").mkdir()
    path = tmp_path / "experiments" / "shaped.yaml"
    flows = "".join(
        f"  - {{flow: {flow}, generator: iperf3, from: sender, to: receiver}}\n" for flow in ("bulk", "far")
    )
    path.write_text(f"experiment: shaped\ntestbed: lab\nduration: 10s\ntraffic:\n{flows}{text}")
    study = load_experiment(path, CATALOGUE, ROOT / "hosts" / "lab.yaml")
    assert make_plan(study, CATALOGUE).trials[0].resolved.path is not None


STUDIES = "# experiments/studies/"


@pytest.mark.parametrize(
    "text", as_parameters([one for one in blocks("# experiments/") if not one[1].startswith(STUDIES)])
)
def test_an_experiment_in_the_documentation_may_extend_a_shipped_one(text: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    path = tmp_path / text.split()[1]
    path.write_text(text)
    study = load_experiment(path, CATALOGUE, ROOT / "hosts" / "lab.yaml")
    assert make_plan(study, CATALOGUE).trials


def test_the_output_of_explain_that_a_page_shows_is_the_real_output(tmp_path: Path) -> None:
    page = (DOCS / "how-to" / "reuse-experiments.md").read_text()
    (shown,) = re.findall(
        r"^```\n\$ fab explain longer path\.rtt --set path\.rtt=1ms\n(.*?)^```", page, re.M | re.S
    )
    for name in ("templates", "hosts", "config.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "analysis").symlink_to(ROOT / "analysis")
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    (text,) = [text for _, text in blocks("# experiments/longer.yaml")]
    (tmp_path / "experiments" / "longer.yaml").write_text(text)
    found = Controller(tmp_path).project.explain(Request("longer", overrides=["path.rtt=1ms"]), "path.rtt")
    assert "\n".join(explanation_lines(found)).replace(f"{tmp_path}/", "") == shown.rstrip()


COMMANDS = [
    pytest.param(experiment, profile, id=f"{page.stem}-{experiment}")
    for page in PAGES
    for experiment, profile in re.findall(r"fab \w+ ([\w-]+)\b[^\n`]* --profile (\w+)", page.read_text())
    if (ROOT / "experiments" / f"{experiment}.yaml").is_file()
]


@pytest.mark.parametrize(("experiment", "profile"), COMMANDS)
def test_the_profile_of_a_command_in_the_documentation_exists(experiment: str, profile: str) -> None:
    path = ROOT / "experiments" / f"{experiment}.yaml"
    assert load_experiment(path, CATALOGUE, None, LoadOptions(profile)).experiment.name == experiment


@pytest.mark.parametrize("text", as_parameters(blocks(STUDIES)))
def test_a_study_in_the_documentation_consists_of_shipped_experiments(text: str, tmp_path: Path) -> None:
    path = tmp_path / "netgear.yaml"
    path.write_text(text)
    assert load_study_report(path, yaml_tree.yaml_names(ROOT / "experiments")).sections


@pytest.mark.parametrize("text", as_parameters(blocks("testbed:")))
def test_a_testbed_in_the_documentation_is_valid(text: str, tmp_path: Path) -> None:
    path = tmp_path / f"{text.split()[1]}.yaml"
    path.write_text(text)
    assert load_testbed(path).hosts


@pytest.mark.parametrize("text", as_parameters(blocks("{#---")))
def test_a_recipe_in_the_documentation_is_valid(text: str, tmp_path: Path) -> None:
    kinds = {"qdisc": "aqm", "read": "setting", "start": "logger", "client": "generator"}
    kind = next(kind for block, kind in kinds.items() if f"block {block} " in text)
    path = tmp_path / "recipe.sh.j2"
    path.write_text(text)
    assert Recipe(kind, "recipe", path).header.summary


def test_the_recipes_of_the_how_to_are_all_that_its_experiment_needs(tmp_path: Path) -> None:
    page = (DOCS / "how-to" / "add-a-recipe.md").read_text()
    files = re.findall(
        r"^`((?:templates|experiments)/[^`]+)`.*\n\n```\w*\n((?s:.*?))^```$", page, flags=re.MULTILINE
    )
    assert len(files) == 5
    shutil.copytree(ROOT / "templates", tmp_path / "templates")
    (tmp_path / "experiments").mkdir()
    for name, text in files:
        (tmp_path / name).write_text(text)
    catalogue = Catalogue(tmp_path / "templates")
    study = load_experiment(tmp_path / "experiments" / "mine.yaml", catalogue, ROOT / "hosts" / "lab.yaml")
    plan = make_plan(study, catalogue)
    assert len(plan.trials) == 4
    for trial in plan.trials:
        scripts = TrialScripts(trial, catalogue, "campaign")
        was = {"ttl": "64"}
        assert "ttl=" in "\n".join(scripts.wanted("src"))
        assert "iperf3" in str(scripts.arm("dst"))
        assert "/proc/net/snmp" in str(scripts.arm("src"))
        assert "sfb limit 60 target 15 max 20" in scripts.set("rtr", was)


def test_the_reference_explains_every_metric_and_no_other() -> None:
    assert set(package_outputs().metrics) == explained_metrics()


@pytest.mark.parametrize("kind", ["setting", "aqm", "generator", "logger"])
def test_the_reference_lists_every_recipe_of_linux(kind: str) -> None:
    page = (DOCS / "reference" / "recipes.md").read_text().split("## List of recipes")[1]
    row = re.search(rf"^\| {kind} \|(.*?)\|", page, flags=re.MULTILINE)
    assert row
    assert set(re.findall(r"`([^`]+)`", row[1])) == CATALOGUE.names(kind, "linux")


def test_every_file_that_the_architecture_page_names_exists() -> None:
    page = (DOCS / "architecture.md").read_text()
    names = re.findall(r"`((?:samovar|analysis|templates|tests)/[\w./*-]+)`", page)
    assert len(names) > 20
    assert not [name for name in names if "<" not in name and not list(ROOT.glob(name.rstrip("/")))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_row_of_a_table_has_as_many_cells_as_its_head(page: Path) -> None:
    text = re.sub(
        r"```.*?```", lambda block: "\n" * block[0].count("\n"), page.read_text("utf-8"), flags=re.S
    )
    cells = 0
    for number, line in enumerate(text.splitlines(), 1):
        bars = len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line))) if line.startswith("|") else 0
        assert not cells or not bars or bars == cells, f"{page}:{number}"
        cells = bars
