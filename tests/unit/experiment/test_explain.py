"""`fab explain` lists the layers of a value, the strongest first, with their places."""

from pathlib import Path

import pytest

from samovar.cli.controller import Controller
from samovar.cli.project import Request
from samovar.cli.show_project import explanation_lines
from samovar.errors import DefinitionError, PlanError, SamovarError
from samovar.experiment import (
    LoadOptions,
    ResolvedExperiment,
    explain_key,
    load_config,
    load_experiment,
    parse_overrides,
)
from samovar.experiment.explain import PartExplainer
from samovar.recipes import Catalogue

ROOT = Path(__file__).parents[3]
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
    """A project whose experiment `study` has a base, a fragment, profiles and the configuration as layers."""

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

    def load(self, *sets: str, profile: str | None = None) -> ResolvedExperiment:
        config = load_config(self.root / "config.yaml")
        options = LoadOptions(profile, parse_overrides(sets), config)
        return load_experiment(self.root / "experiments" / "study.yaml", CATALOGUE, None, options)

    def lines(self, key: str, *sets: str, profile: str | None = None) -> list[str]:
        found = explanation_lines(explain_key(self.load(*sets, profile=profile), CATALOGUE, key))
        return [" ".join(line.split()).replace(f"{self.root}/", "") for line in found]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_every_layer_is_listed_with_its_place_and_the_strongest_is_marked(folder: Folder) -> None:
    assert folder.lines("parts.one.path.rtt", "path.rtt=1ms") == [
        "one: path.rtt = 1ms",
        "» 1ms --set --set path.rtt=1ms",
        "4ms experiment study experiments/study.yaml:4:13",
        "9ms fragment lossy experiments/fragments/lossy.yaml:1:23",
        "2ms experiment base experiments/base.yaml:3:27",
        "0s default",
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


def test_a_value_of_a_part_of_a_profile_names_the_part_and_the_profile(folder: Folder) -> None:
    assert folder.lines("duration", profile="quick") == [
        "one: duration = 2s",
        "» 2s part one of profile quick experiments/base.yaml:14:50",
        "10s experiment base experiments/base.yaml:4:11",
        "",
        "two: duration = 10s",
        "» 10s experiment base experiments/base.yaml:4:11",
    ]


def test_a_factor_lists_its_levels_and_the_value_that_they_override(folder: Folder) -> None:
    assert folder.lines("parts.one.cc") == [
        "one: cc is a factor: newreno, cubic",
        "» [newreno, cubic] part one experiments/base.yaml:11:23",
        "reno site config.yaml:1:16",
    ]


def test_a_level_at_several_hosts_is_listed_once(folder: Folder) -> None:
    ecn = "factors.ecn={levels: ['off', 'on'], sets: tcp.ecn, at: [sender, receiver]}"
    assert folder.lines("parts.one.tcp.ecn", ecn)[0] == "one: tcp.ecn is a factor: off, on"


def test_a_key_that_a_linked_factor_sets_is_explained_as_a_factor(folder: Folder) -> None:
    lines = folder.lines("parts.two.path.rate")
    assert lines[0] == "two: path.rate is a factor: slow (9Mbit), far (8Mbit)"
    assert lines[-1] == "40Mbit experiment base experiments/base.yaml:3:14"


def test_a_value_that_a_stronger_layer_removes_is_marked_as_removed(folder: Folder) -> None:
    lines = folder.lines("parts.one.traffic.bulk.size")
    assert lines == [
        "one: traffic.bulk.size has no value: a later layer sets a key that excludes it",
        "✗ 1GB experiment base experiments/base.yaml:7:71",
    ]


def test_hosts_with_the_same_setting_are_explained_together(folder: Folder) -> None:
    assert folder.lines("parts.one.tcp.sack") == [
        "one: tcp.sack at every host = off",
        "» off experiment study experiments/study.yaml:5:22",
        "on recipe setting/tcp on linux",
    ]


def test_the_default_of_a_recipe_names_the_recipe(folder: Folder) -> None:
    lines = folder.lines("parts.one.tcp.timestamps")
    assert lines[1].endswith("recipe setting/tcp on linux")


def test_the_default_of_a_recipe_is_shown_only_if_the_recipe_runs(folder: Folder) -> None:
    assert folder.lines("parts.one.pause.autoneg") == ["one: pause.autoneg at every host is not set"]
    assert folder.lines("parts.one.pause.autoneg", "pause.rx=on")[0] == (
        "one: pause.autoneg at every host = off"
    )
    assert folder.lines("parts.one.offloads.tso")[0] == "one: offloads.tso at every host = off"


def test_a_logger_without_interval_has_the_interval_of_its_recipe(folder: Folder) -> None:
    logger = (
        "loggers=[{logger: tcp-state, at: [sender, receiver]}, {logger: queue, at: router, interval: 9ms}]"
    )
    assert folder.lines("parts.one.loggers.tcp-state.interval", logger) == [
        "one: loggers.tcp-state.interval = 10ms at src, dst",
        "» 10ms at src, dst recipe records tcp-state",
    ]
    assert folder.lines("parts.one.loggers.queue.interval", logger)[-1] == "5ms at rtr recipe records queue"


def test_every_key_of_an_experiment_can_be_explained(folder: Folder) -> None:
    study = folder.load()
    parts = [PartExplainer(study, CATALOGUE, name) for name in ("one", "two")]
    keys = {key for part in parts for key in part.known_keys}
    assert {
        "path.loss",
        "traffic.bulk.start",
        "duration",
        "replicates",
        "loggers.queue.interval",
        "cc",
        "txd",
    } <= keys
    for key in keys:
        assert list(explanation_lines(explain_key(study, CATALOGUE, key)))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("path.bufer", "study: unknown key 'path.bufer'; did you mean 'path.buffer'? known: "),
        (
            "traffic.blk.start",
            "study: unknown key 'traffic.blk.start'; did you mean 'traffic.bulk.start'? known: ",
        ),
        ("parts.on.duration", "study: unknown part 'on'; did you mean 'one'? known: one, two"),
        ("rate", "study: unknown key 'rate'; did you mean 'path.rate'? known: "),
        (
            "order.seed",
            "study: order.seed is a key of the whole experiment; only keys of its parts can be explained",
        ),
    ],
)
def test_a_key_that_cannot_be_explained_is_refused_with_the_reason(
    folder: Folder, key: str, message: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        folder.lines(key)
    assert str(caught.value).startswith(message)


def test_a_key_of_one_trial_is_explained_by_its_level_and_its_resolved_value(folder: Folder) -> None:
    controller = Controller(folder.root)
    trial = next(one for one in controller.project.plan(Request("study")).plan.trials if "cubic" in one.id)
    (at_sender, *_) = controller.project.explain(Request("study"), "cc", trial.id)
    assert at_sender.values[0].text == "cubic"
    assert at_sender.values[0].layer == "level of factor cc"
    assert ("src", "cc", "cubic") in at_sender.in_trial
    (buffer,) = controller.project.explain(Request("study"), "path.buffer", trial.id)
    assert ("down", "buffer_packets", 546) in buffer.in_trial


def test_the_duration_in_a_trial_is_not_set_if_only_the_key_stop_ends_the_traffic() -> None:
    project = Controller(ROOT).project
    trial = project.plan(Request("flow-domination")).plan.ids[0]  # its `stop` ends the traffic after 90 s
    found = project.explain(Request("flow-domination"), "duration", trial)
    assert list(explanation_lines(found)) == ["duration is not set"]


@pytest.mark.parametrize(
    ("trial", "message"),
    [("no-such", "unknown trial 'no-such'"), ("one", "the ids of 12 trials begin with 'one'")],
)
def test_an_unknown_trial_is_refused(folder: Folder, trial: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Controller(folder.root).project.explain(Request("study"), "cc", trial)


def test_an_invalid_override_is_refused(folder: Folder) -> None:
    with pytest.raises(SamovarError, match="--set duration=1"):
        Controller(folder.root).project.explain(Request("study", overrides=("duration=1",)), "duration")


def test_a_top_level_override_of_a_key_of_a_part_is_listed_once(folder: Folder) -> None:
    assert folder.lines("parts.two.path.buffer", "path.buffer=9packets") == [
        "two: path.buffer = 9packets",
        "» 9packets --set --set path.buffer=9packets",
        "64packets part two experiments/base.yaml:12:24",
        "546packets experiment base experiments/base.yaml:3:52",
    ]


def test_a_mapping_is_explained_key_by_key(folder: Folder) -> None:
    assert folder.lines("parts.one.path", "path.rate.up=1Mbit") == [
        "one: path, by key",
        "» rate.down: 40Mbit experiment base experiments/base.yaml:3:14",
        "» rate.up: 1Mbit --set --set path.rate.up=1Mbit",
        "» rtt: 4ms experiment study experiments/study.yaml:4:13",
        "rtt: 9ms fragment lossy experiments/fragments/lossy.yaml:1:23",
        "rtt: 2ms experiment base experiments/base.yaml:3:27",
        "rtt: 0s default",
        "» loss: 1% fragment lossy experiments/fragments/lossy.yaml:1:14",
        "loss: 0% default",
        "» aqm: codel experiment base experiments/base.yaml:3:37",
        "aqm: pfifo default",
        "» buffer: 546packets experiment base experiments/base.yaml:3:52",
    ]


def test_one_direction_of_the_path_is_explained_if_it_is_given(folder: Folder) -> None:
    assert folder.lines("parts.one.path.rate.down", "path.rate.down=3Mbit") == [
        "one: path.rate.down = 3Mbit",
        "» 3Mbit --set --set path.rate.down=3Mbit",
        "40Mbit experiment base experiments/base.yaml:3:14",
    ]


def test_a_factor_overrides_both_directions_of_a_key(folder: Folder) -> None:
    lines = folder.lines("parts.two.path", "path.delay={down: 1ms, up: 2ms}")
    assert [line for line in lines if "delay" in line] == [
        "» delay.down: 1ms --set --set path.delay={down: 1ms, up: 2ms}",
        "» delay.up: 2ms --set --set path.delay={down: 1ms, up: 2ms}",
    ]
    study = folder.root / "experiments" / "study.yaml"
    study.write_text(STUDY.replace("{rtt: 4ms}", "{rate: {down: 3Mbit, up: 1Mbit}}"))
    lines = folder.lines("parts.two.path")
    assert not [line for line in lines if "rate.down" in line]
    assert [line for line in lines if "rate: " in line and line.startswith("»")]


def test_flows_are_explained_by_key(folder: Folder) -> None:
    assert folder.lines("parts.one.traffic")[-3:] == [
        "» bulk.to: receiver experiment base experiments/base.yaml:7:55",
        "✗ bulk.size: 1GB experiment base experiments/base.yaml:7:71",
        "» bulk.duration: 5s experiment study experiments/study.yaml:6:28",
    ]


def test_settings_and_factors_are_explained_one_by_one(folder: Folder) -> None:
    assert [line for line in folder.lines("parts.one.settings") if line.startswith("one: ")] == [
        "one: cc is a factor: newreno, cubic",
        "one: tcp.ecn at every host = off",
        "one: tcp.sack at every host = off",
    ]
    assert folder.lines("parts.one.settings.tcp.sack") == folder.lines("parts.one.tcp.sack")
    assert folder.lines("parts.two.factors")[0] == "two: home is a factor: slow, far"
    assert folder.lines("parts.two.factors.home") == folder.lines("parts.two.factors")


@pytest.mark.parametrize("name", ["far", "net-172.16.10.0"])
def test_a_class_of_the_path_is_explained_by_its_name(folder: Folder, name: str) -> None:
    study = folder.root / "experiments" / "study.yaml"
    study.write_text(
        "experiment: study\nextends: base\n"
        f"path: {{classes: [{{name: {name}, from: src, to: dst, rtt: 90ms}}, {{flow: bulk, loss: 1%}}]}}\n"
    )
    assert folder.lines(f"parts.one.path.classes.{name}.rtt")[0] == f"one: path.classes.{name}.rtt = 90ms"
    assert folder.lines("parts.one.path.classes.bulk.loss")[0] == "one: path.classes.bulk.loss = 1%"


def test_settings_that_no_layer_gives_are_explained_as_not_set(folder: Folder) -> None:
    (folder.root / "config.yaml").write_text("{}\n")
    study = folder.root / "experiments" / "study.yaml"
    study.write_text(study.read_text().replace("settings:", "# settings:"))
    assert folder.lines("parts.two.settings") == ["two: settings is not set"]


def test_a_value_of_a_trial_is_shown_with_its_directions_or_with_the_hosts_that_have_it(
    folder: Folder,
) -> None:
    controller = Controller(folder.root)
    trial = next(
        one for one in controller.project.plan(Request("study")).plan.trials if "cubic-1MB" in one.id
    )

    def head(key: str) -> str:
        return next(explanation_lines(controller.project.explain(Request("study"), key, trial.id)))

    assert head("path.rate") == "one: path.rate = down 40Mbit"
    assert head("path.loss") == "one: path.loss = down 1%, up 0%"
    assert head("rwnd") == "one: rwnd = 1MB at dst"
    assert head("cc") == "one: cc = cubic at src"
    assert head("tcp.sack") == "one: tcp.sack = off at src, dst"
    assert head("traffic.bulk.from") == "one: traffic.bulk.from = bulk src"


def test_the_start_of_a_flow_with_arrivals_is_explained_by_its_arrivals(folder: Folder) -> None:
    path = folder.root / "experiments" / "study.yaml"
    arrivals = "arrivals: {poisson: 2/s, until: 5s}"
    path.write_text(STUDY.replace("{duration: 5s}", f"{{duration: 5s, {arrivals}}}"), encoding="utf-8")
    assert folder.lines("parts.one.traffic.bulk.start") == [
        "one: traffic.bulk.start = {poisson: 2/s, until: 5s}",
        "» {poisson: 2/s, until: 5s} experiment study experiments/study.yaml:6:42",
        "0s default",
    ]
    assert folder.lines("parts.one.traffic.bulk.arrivals.poisson") == [
        "one: traffic.bulk.arrivals.poisson = 2/s",
        "» 2/s experiment study experiments/study.yaml:6:52",
    ]
    assert folder.lines("parts.one.traffic.bulk.arrivals.poisson", "traffic.bulk.arrivals.poisson=9/s")[
        :2
    ] == [
        "one: traffic.bulk.arrivals.poisson = 9/s",
        "» 9/s --set --set traffic.bulk.arrivals.poisson=9/s",
    ]


def test_the_path_of_an_experiment_overrides_the_device_of_the_testbed(folder: Folder) -> None:
    (folder.root / "hosts" / "powerline.yaml").write_bytes((ROOT / "hosts" / "powerline.yaml").read_bytes())
    text = "experiment: study\ntestbed: powerline\nduration: 5s\npath: {rate: 86Mbit}\n"
    flow = "traffic: [{flow: bulk, generator: iperf3, from: sender, to: receiver}]\n"
    (folder.root / "experiments" / "study.yaml").write_text(text + flow)
    assert folder.lines("path.rate") == [
        "path.rate = 86Mbit",
        "» 86Mbit experiment study experiments/study.yaml:4:14",
        "40Mbit testbed hosts/powerline.yaml:11:21",
    ]
    assert folder.lines("path.rtt")[:2] == [
        "path.rtt = 2 * 2ms",
        "» 2 * 2ms testbed hosts/powerline.yaml:11:57",
    ]
    assert [line for line in folder.lines("path") if "medium" in line] == [
        "» medium: simplex testbed hosts/powerline.yaml:11:70",
        "medium: duplex default",
    ]
    with pytest.raises(DefinitionError, match=r"unknown key 'path\.aqm'"):
        folder.lines("path.aqm")
