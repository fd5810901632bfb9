"""`fab new` writes an experiment that can be planned at once, and never overwrites a file."""

import re
from pathlib import Path

import pytest

from samovar.cli.controller import Controller
from samovar.cli.project import Request
from samovar.cli.starter import write_starter
from samovar.errors import DefinitionError
from samovar.experiment import load_experiment, load_testbed

ROOT = Path(__file__).parents[3]


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    for name in ("templates", "hosts", "config.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "demo.yaml").symlink_to(ROOT / "experiments" / "demo.yaml")
    return Controller(tmp_path)


def new_experiment(controller: Controller, name: str, base: str = "") -> Path:
    return write_starter(controller.project.root, name, base)


def test_a_new_experiment_can_be_planned_at_once(controller: Controller) -> None:
    path = new_experiment(controller, "mine")
    assert path == controller.project.root / "experiments" / "mine.yaml"
    plan = controller.project.plan(Request("mine")).plan
    assert (plan.experiment, len(plan.trials)) == ("mine", 6)


def test_a_new_experiment_creates_the_folder_of_experiments_if_it_is_missing(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").touch()
    assert write_starter(tmp_path, "mine") == tmp_path / "experiments" / "mine.yaml"


def test_a_new_experiment_has_twelve_lines_that_are_not_comments(controller: Controller) -> None:
    lines = new_experiment(controller, "mine").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line and not line.startswith("#")]) == 12


def test_every_commented_out_key_of_a_new_experiment_is_valid(controller: Controller) -> None:
    """Each optional key is added alone, and replaces the same key of the part that is not commented out."""
    text = new_experiment(controller, "mine").read_text(encoding="utf-8")
    core, _, offered = text.partition("# Optional keys")
    pieces = re.findall(r"^#(\S.*\n(?:#  .*\n)*)", offered, flags=re.MULTILINE)
    path, testbed = (
        controller.project.root / "experiments" / "mine.yaml",
        load_testbed(ROOT / "hosts" / "lab.yaml"),
    )
    assert len(pieces) == 12
    for piece in pieces:
        own = piece.replace("\n#", "\n")
        core_left = _without(core, own.partition(":")[0])
        needed = "factors: {cc: [cdg, cubic], rwnd: [100KB]}\n" if own.startswith("exclude") else ""
        path.write_text((_without(core_left, "factors") if needed else core_left) + needed + own)
        loaded = load_experiment(path, controller.project.catalogue, testbed)
        assert loaded.experiment.name == "mine", own


def _without(text: str, key: str) -> str:
    """Return the text without one of its top-level keys."""
    return re.sub(rf"^{key}:.*\n(?:  .*\n)*", "", text, flags=re.MULTILINE)


def test_a_new_experiment_that_extends_another_has_the_same_trials(controller: Controller) -> None:
    text = new_experiment(controller, "mine", "demo").read_text(encoding="utf-8")
    assert "extends: demo" in text
    own, base = (
        controller.project.plan(Request("mine")).plan,
        controller.project.plan(Request("demo")).plan,
    )
    assert [trial.resolved for trial in own.trials] == [trial.resolved for trial in base.trials]


@pytest.mark.parametrize("base", sorted(path.stem for path in (ROOT / "experiments").glob("*.yaml")))
def test_every_commented_out_key_of_a_new_experiment_that_extends_another_is_valid(
    controller: Controller, base: str
) -> None:
    """Each commented-out line is added alone."""
    (controller.project.root / "experiments" / "demo.yaml").unlink()
    for path in (ROOT / "experiments").iterdir():
        (controller.project.root / "experiments" / path.name).symlink_to(path)
    path = new_experiment(controller, "mine", base)
    text = path.read_text(encoding="utf-8")
    offered = re.findall(r"^#([a-z]+:.*\n)", text, flags=re.MULTILINE)
    assert len(offered) == 4
    for line in offered:
        path.write_text(text + line)
        assert controller.project.plan(Request("mine")).plan.experiment == "mine", line


def test_the_name_of_a_base_may_contain_the_placeholder_of_the_template(controller: Controller) -> None:
    folder = controller.project.root / "experiments"
    (folder / "demo.yaml").rename(folder / "my-NAME.yaml")
    assert "\nextends: my-NAME\n" in new_experiment(controller, "mine", "my-NAME").read_text(encoding="utf-8")


def test_an_existing_file_is_not_overwritten(controller: Controller) -> None:
    new_experiment(controller, "mine").write_text("precious", encoding="utf-8")
    with pytest.raises(DefinitionError, match=r"mine\.yaml: exists already; choose another name"):
        new_experiment(controller, "mine")
    assert (controller.project.root / "experiments" / "mine.yaml").read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize(
    "name", ["", "a b", "../escape", "/tmp/x", "-x", "a/b", "latest", "x.yaml", "é", "x" * 64]
)
def test_a_bad_name_is_refused_and_nothing_is_written(controller: Controller, name: str) -> None:
    with pytest.raises(DefinitionError, match=r"^fab new"):
        new_experiment(controller, name)
    assert [path.name for path in (controller.project.root / "experiments").iterdir()] == ["demo.yaml"]


def test_an_unknown_base_is_refused_with_the_nearest_name(controller: Controller) -> None:
    with pytest.raises(DefinitionError, match="--from dmo: unknown experiment 'dmo'; did you mean 'demo'"):
        new_experiment(controller, "mine", "dmo")
