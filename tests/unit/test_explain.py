"""`fab explain`: where each value comes from, the winner first, what it hides below with its place."""

from pathlib import Path

import pytest

from samovar.command import Catalogue
from samovar.controller import Controller, Question
from samovar.definition import Asked, apply_profile, load_config, load_study, parse_overrides
from samovar.definition.explain import explain
from samovar.definition.explain_keys import Subject, known_keys
from samovar.errors import DefinitionError, PlanError, SamovarError
from samovar.view.explain import explanation_lines

ROOT = Path(__file__).parents[2]
CATALOGUE = Catalogue(ROOT / "templates")

BASE = """\
experiment: base
testbed: lab
path: {rate: 40Mbit, rtt: 2ms, aqm: codel, buffer: 546packets}
duration: 10s
replicates: 3
traffic:
  - {flow: bulk, generator: iperf3, from: sender, to: receiver, size: 1GB}
captures: [{at: sender}]
loggers: [{logger: queue, at: router, interval: 5ms}]
parts:
  one: {factors: {cc: [newreno, cubic], rwnd: [50KB, 1MB]}}
  two: {path: {buffer: 64packets}, factors: {home: [{path.rate: 9Mbit, path.rtt: 7ms, label: slow}, {path.rate: 8Mbit, path.rtt: 5ms, label: far}]}}
profiles:
  quick: {replicates: 2, parts: {one: {duration: 2s}}}
"""
STUDY = """\
experiment: study
extends: base
use: lossy
path: {rtt: 4ms}
settings: {tcp.sack: off}
traffic: {bulk: {duration: 5s}}
"""
FRAGMENT = "path: {loss: 1%, rtt: 9ms}\n"
CONFIG = "settings: {cc: reno, tcp.ecn: off}\n"


class Folder:
    def __init__(self, folder: Path) -> None:
        self.root = folder
        (folder / "experiments" / "fragments").mkdir(parents=True)
        (folder / "hosts").mkdir()
        (folder / "templates").symlink_to(ROOT / "templates")
        (folder / "hosts" / "lab.yaml").write_bytes((ROOT / "hosts" / "lab.yaml").read_bytes())
        for name, text in (
            ("experiments/base.yaml", BASE),
            ("experiments/study.yaml", STUDY),
            ("experiments/fragments/lossy.yaml", FRAGMENT),
            ("config.yaml", CONFIG),
        ):
            (folder / name).write_text(text, encoding="utf-8")

    def subject(self, *sets: str, profile: str | None = None) -> Subject:
        config = load_config(self.root / "config.yaml")
        asked = Asked(profile, parse_overrides(sets), config)
        study = load_study(self.root / "experiments" / "study.yaml", CATALOGUE, None, asked)
        applied = apply_profile(study.experiment, study.profile, study.overrides)
        return Subject(applied, study.testbed, CATALOGUE, config)

    def lines(self, key: str, *sets: str, profile: str | None = None) -> list[str]:
        found = explanation_lines(explain(self.subject(*sets, profile=profile), key))
        return [" ".join(line.split()).replace(f"{self.root}/", "") for line in found]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_every_layer_is_named_with_its_place_the_winner_marked(folder: Folder) -> None:
    assert folder.lines("parts.one.path.rtt", "path.rtt=1ms") == [
        "one: path.rtt = 1ms",
        "» 1ms --set --set path.rtt=1ms",
        "4ms experiment study experiments/study.yaml:4:13",
        "9ms fragment lossy experiments/fragments/lossy.yaml:1:23",
        "2ms experiment base experiments/base.yaml:3:27",
        "0 s default",
    ]


def test_a_key_is_explained_in_every_part_that_has_it(folder: Folder) -> None:
    assert folder.lines("path.buffer") == [
        "one: path.buffer = 546packets",
        "» 546packets experiment base experiments/base.yaml:3:52",
        "",
        "two: path.buffer = 64packets",
        "» 64packets part two experiments/base.yaml:12:24",
        "546packets experiment base experiments/base.yaml:3:52",
    ]


def test_a_profile_and_its_parts_are_named(folder: Folder) -> None:
    assert folder.lines("duration", profile="quick") == [
        "one: duration = 2s",
        "» 2s part one of profile quick experiments/base.yaml:14:50",
        "10s experiment base experiments/base.yaml:4:11",
        "",
        "two: duration = 10s",
        "» 10s experiment base experiments/base.yaml:4:11",
    ]


def test_a_factor_lists_its_levels_and_what_they_hide(folder: Folder) -> None:
    assert folder.lines("parts.one.cc") == [
        "one: cc at every host is a factor: newreno, cubic",
        "» [newreno, cubic] part one experiments/base.yaml:11:23",
        "reno site config.yaml:1:16",
    ]


def test_a_value_that_a_linked_factor_sets_is_a_factor_too(folder: Folder) -> None:
    lines = folder.lines("parts.two.path.rate")
    assert lines[0] == "two: path.rate is a factor: slow (9Mbit), far (8Mbit)"
    assert lines[-1] == "40Mbit experiment base experiments/base.yaml:3:14"


def test_what_a_later_layer_took_away_is_said(folder: Folder) -> None:
    lines = folder.lines("parts.one.traffic.bulk.size")
    assert lines == [
        "one: traffic.bulk.size is taken away by a later layer",
        "✗ 1GB experiment base experiments/base.yaml:7:71",
    ]


def test_settings_are_explained_per_host_and_told_together_where_they_agree(folder: Folder) -> None:
    assert folder.lines("parts.one.tcp.sack") == [
        "one: tcp.sack at every host = off",
        "» off experiment study experiments/study.yaml:5:22",
        "on recipe setting/tcp on linux",
    ]


def test_a_default_of_a_recipe_is_named_as_one(folder: Folder) -> None:
    lines = folder.lines("parts.one.tcp.timestamps")
    assert lines[1].endswith("recipe setting/tcp on linux")


def test_every_key_of_an_experiment_can_be_explained(folder: Folder) -> None:
    subject = folder.subject()
    keys = {key for part in subject.experiment.parts for key in known_keys(subject, part)}
    assert {
        "path.loss",
        "traffic.bulk.start",
        "duration",
        "replicates",
        "loggers.queue.interval",
        "cc",
        "txd",
    } <= keys
    for key in [*keys, "order.kind", "order.seed", "testbed", "title", "description", "expect"]:
        assert list(explanation_lines(explain(subject, key)))


def test_what_trials_are_judged_by_comes_from_the_experiment_or_the_configuration(folder: Folder) -> None:
    (folder.root / "config.yaml").write_text(CONFIG + "retries: 5\nverdict: {late: 300ms, cpu: 90%}\n")
    study = folder.root / "experiments" / "study.yaml"
    study.write_text(STUDY + "verdict: {late: 500ms}\ncalibrate: on\n")
    assert folder.lines("verdict.late") == [
        "verdict.late = 500ms",
        "» 500ms experiment study experiments/study.yaml:7:17",
        "300ms config config.yaml:3:17",
        "0.2 s default",
    ]
    assert folder.lines("verdict.cpu")[1:] == ["» 90% config config.yaml:3:29", "0.95 default"]
    assert folder.lines("verdict.clock_step")[1:] == ["» 0.05 s default"]
    assert folder.lines("verdict.clock_drift")[1:] == ["» 50 ppm default"]
    assert folder.lines("retries")[1:] == ["» 5 config config.yaml:2:10", "2 default"]
    assert folder.lines("calibrate")[1:] == [
        "» on experiment study experiments/study.yaml:8:12",
        "auto default",
    ]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("path.bufer", "study: unknown key 'path.bufer'; did you mean 'path.buffer'? known: "),
        (
            "traffic.blk.start",
            "study: unknown key 'traffic.blk.start'; did you mean 'traffic.bulk.start'? known: ",
        ),
        ("parts.on.duration", "study: unknown part 'on'; did you mean 'one'? known: one, two"),
        ("order.sed", "study: unknown key 'order.sed'; did you mean 'order.seed'? known: "),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(folder: Folder, key: str, said: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        folder.lines(key)
    assert str(caught.value).startswith(said)


def test_a_trial_has_one_level_and_what_the_value_came_to(folder: Folder) -> None:
    controller = Controller(folder.root)
    trial = next(one for one in controller.study("study", "", "").plan.trials if "cubic" in one.id)
    (at_sender, *_) = controller.explain(Question("study", "cc", trial.id))
    assert at_sender.chain[0].value == "cubic"
    assert at_sender.chain[0].layer == "level of factor cc"
    assert ("src", "cubic") in at_sender.came_to
    (buffer,) = controller.explain(Question("study", "path.buffer", trial.id))
    assert ("down", "546 packets") in buffer.came_to


@pytest.mark.parametrize(
    ("trial", "said"), [("no-such", "unknown trial 'no-such'"), ("one", "'one' begins the ids of 12 trials")]
)
def test_a_trial_that_is_none_is_refused(folder: Folder, trial: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        Controller(folder.root).explain(Question("study", "cc", trial))


def test_an_override_of_a_question_is_read_like_that_of_a_plan(folder: Folder) -> None:
    with pytest.raises(SamovarError, match="--set duration=1"):
        Controller(folder.root).explain(Question("study", "duration", overrides=("duration=1",)))
