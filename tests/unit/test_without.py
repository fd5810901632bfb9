"""`without`: what a layer takes away from those below it, and nothing else."""

from pathlib import Path

import pytest

from samovar.cli import Controller, ExplainRequest
from samovar.cli.plan_commands import explanation_lines
from samovar.errors import DefinitionError
from samovar.experiment import Experiment, LoadOptions, load_experiment, parse_overrides
from samovar.experiment.yaml.tree import Map, plain
from samovar.recipes import Catalogue

ROOT = Path(__file__).parents[2]
CATALOGUE = Catalogue(ROOT / "templates")
BASE = """\
experiment: base
testbed: lab
path: {rate: 40Mbit, rtt: 2ms, loss: 1%, buffer: 546packets}
duration: 10s
settings: {tcp.sack: off, cc: cubic}
factors: {mtu: [600, 1500]}
traffic:
  - {flow: bulk, generator: iperf3, from: sender, to: receiver, start: 1s}
  - {flow: late, generator: iperf3, from: sender, to: receiver, start: 2s}
loggers: [{logger: queue, at: router}, {logger: tcp-info, at: sender}]
figures: [design, {figure: rtt-cdf, part: one}, {figure: rtt-cdf, part: two}]
expect:
  - {say: fast, metric: throughput_bps, part: one, above: 1}
  - {say: slow, metric: throughput_bps, part: two, below: 1}
parts:
  one: {factors: {rwnd: [50KB, 1MB]}}
  two: {path: {loss: 2%}}
profiles: {quick: {duration: 1s}, short: {without: [factors.rwnd]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("templates", "hosts", "analysis", "config.yaml"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "experiments" / "fragments").mkdir(parents=True)
    (tmp_path / "experiments" / "base.yaml").write_text(BASE, encoding="utf-8")
    return tmp_path


def read(folder: Path, text: str, *sets: str, profile: str | None = None) -> Experiment:
    path = folder / "experiments" / "study.yaml"
    path.write_text(f"experiment: study\n{text}", encoding="utf-8")
    return load_experiment(path, CATALOGUE, None, LoadOptions(profile, parse_overrides(sets))).experiment


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(DefinitionError) as caught:
        read(folder, text)
    return str(caught.value).replace(f"{folder}/", "")


def test_a_part_goes_with_the_figures_and_expectations_that_are_of_it(folder: Path) -> None:
    study = read(folder, "extends: base\nwithout: parts.one\n")
    assert list(study.parts) == ["two"]
    assert [(one["figure"], one.get("part")) for one in study.figures] == [
        ("design", None),
        ("rtt-cdf", "two"),
    ]
    assert [line.say for line in study.expect] == ["slow"]


def test_a_factor_goes_from_the_top_and_from_every_part(folder: Path) -> None:
    study = read(folder, "extends: base\nwithout: [mtu, factors.rwnd]\n")
    assert [list(part.factors) for part in study.parts.values()] == [[], []]


def test_a_key_of_the_path_goes_from_the_top_and_from_every_part(folder: Path) -> None:
    study = read(folder, "extends: base\nwithout: [path.loss]\n")
    assert isinstance(study.complete, Map)
    written = plain(study.complete["parts"])
    assert isinstance(written, dict)
    assert all("loss" not in part["path"] and "rate" in part["path"] for part in written.values())


def test_a_key_of_one_part_goes_from_that_part(folder: Path) -> None:
    study = read(folder, "extends: base\nwithout: [parts.two.path.loss]\n")
    assert isinstance(study.complete, Map)
    written = plain(study.complete["parts"])
    assert isinstance(written, dict)
    assert [part["path"]["loss"] for part in written.values()] == ["1%", "1%"]


def test_a_flow_a_logger_a_setting_and_a_key_of_a_flow_go(folder: Path) -> None:
    text = "extends: base\nwithout: [traffic.late, loggers.queue, settings.tcp.sack, traffic.bulk.start]\n"
    part = read(folder, text).parts["one"]
    assert [(flow.label, flow.start_s) for flow in part.traffic] == [("bulk", 0)]
    assert [logger.logger for logger in part.loggers] == ["tcp-info"]
    assert list(part.settings) == ["cc"]


def test_what_is_taken_away_may_be_said_anew(folder: Path) -> None:
    text = "extends: base\nwithout: [path, traffic.bulk]\npath: {rate: 1Mbit, buffer: 9packets}\n"
    more = "traffic: {bulk: {generator: nuttcp, from: sender, to: receiver}}\n"
    part = read(folder, text + more).parts["one"]
    assert part.path is not None
    assert (part.path.rtt_s, part.path.loss) == (0, 0)
    assert [(flow.label, flow.generator) for flow in part.traffic] == [("late", "iperf3"), ("bulk", "nuttcp")]


def test_what_fragments_give_is_taken_away_too(folder: Path) -> None:
    text = (
        "extends: base\nuse: jittery\nwithout: [path.jitter]\nfragments: {jittery: {path: {jitter: 1ms}}}\n"
    )
    part = read(folder, text).parts["one"]
    assert part.path is not None
    assert part.path.jitter_s == 0


def test_a_profile_and_the_command_line_take_away_from_the_experiment(folder: Path) -> None:
    assert list(read(folder, "extends: base\n", profile="short").parts["one"].factors) == ["mtu"]
    brief = "extends: base\nprofiles: {brief: {without: [parts.two]}}\n"
    assert list(read(folder, brief, profile="brief").parts) == ["one"]
    assert list(read(folder, "extends: base\n", "without=[parts.one]").parts) == ["two"]
    assert list(read(folder, "extends: base\nwithout: profiles.quick\n").profiles) == ["short"]


def test_a_profile_of_the_base_may_take_away_what_is_gone_already(folder: Path) -> None:
    study = read(folder, "extends: base\nwithout: [factors.rwnd]\n", profile="short")
    assert list(study.parts["one"].factors) == ["mtu"]


def test_a_part_that_was_taken_away_does_not_come_back_by_a_factor_that_is_set(folder: Path) -> None:
    brief = "extends: base\nprofiles: {brief: {without: [parts.one]}}\n"
    assert list(read(folder, brief, "mtu=[1400]", profile="brief").parts) == ["two"]
    assert list(read(folder, "extends: base\n", "mtu=[1400]", "without=parts.one").parts) == ["two"]


def test_an_experiment_without_parts_loses_a_factor_by_its_profile(folder: Path) -> None:
    text = BASE.partition("figures:")[0].partition("\n")[2] + "profiles: {one: {without: [mtu]}}\n"
    assert list(read(folder, text).parts["main"].factors) == ["mtu"]
    assert list(read(folder, text, profile="one").parts["main"].factors) == []


def test_what_was_taken_away_is_explained_with_its_place(folder: Path) -> None:
    read(folder, "extends: base\nwithout: [path.loss]\n")
    found = Controller(folder).project.explain(ExplainRequest("study", "parts.two.path.loss"))
    lines = [" ".join(line.split()).replace(f"{folder}/", "") for line in explanation_lines(found)]
    assert lines[0] == "two: path.loss is taken away by a later layer"
    assert "✗ 2% part two experiments/base.yaml:17:22" in lines


def test_a_campaign_keeps_the_tree_from_which_it_was_taken_away(folder: Path) -> None:
    path = folder / "experiments" / "study.yaml"
    path.write_text("experiment: study\nextends: base\nwithout: [parts.one]\n", encoding="utf-8")
    kept = load_experiment(path, CATALOGUE).files["experiment.yaml"].decode()
    assert "rwnd: [50KB, 1MB]" not in kept
    assert "\nwithout" not in kept


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("extends: base\nwithout: [parts.on]\n", "study.yaml:3:11: unknown key to take away 'parts.on'; did you mean 'parts.one'? known: "),
        ("extends: base\nwithout: traffic.lat\n", "study.yaml:3:10: unknown key to take away 'traffic.lat'; did you mean 'traffic.late'? known: "),
        ("extends: base\nwithout: [parts.one.path.loss]\n", "study.yaml:3:11: unknown key to take away 'parts.one.path.loss'; did you mean"),
        ("extends: base\nwithout: [{path: loss}]\n", "study.yaml:3:11: without: expected keys of what lies below, such as ["),
        ("extends: base\nwithout: {path: loss}\n", "study.yaml:3:10: without: expected keys of what lies below, such as ["),
        ("extends: base\nparts: {one: {without: [mtu]}}\n", "study.yaml:3:15: unknown key 'without'"),
        (BASE.partition("\n")[2] + "without: [duration]\n", "study.yaml:19:11: unknown key to take away 'duration'; known: none"),
        ("extends: bse\nwithout: [duration]\n", "study.yaml:2:10: unknown experiment 'bse'; did you mean 'base'? known: base"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_away_is_refused_at_its_place(folder: Path, text: str, said: str) -> None:
    message = refusal(folder, text)
    assert message.startswith(f"experiments/{said}")
    assert "\n" not in message
