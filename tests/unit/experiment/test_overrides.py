"""`--set KEY=VALUE` overrides keys and factors, also those of the profile; errors have a caret below the argument."""

from pathlib import Path

import pytest

from samovar.campaign import run_command
from samovar.errors import DefinitionError
from samovar.experiment import (
    Directional,
    Experiment,
    LoadOptions,
    ResolvedExperiment,
    load_experiment,
    parse_overrides,
    read_expectations,
)
from samovar.plan import make_plan
from samovar.recipes import Catalogue
from tests.unit.plan_values import plan_of, trial

ROOT = Path(__file__).parents[3]
CATALOGUE = Catalogue(ROOT / "templates")

EXPERIMENT = """\
experiment: study
testbed: lab
path: {rate: 40Mbit, rtt: 2ms, buffer: 546packets}
duration: 10s
replicates: 3
traffic:
  - {flow: bulk, generator: nuttcp, from: sender, to: receiver}
loggers: [{logger: queue, at: router, interval: 5ms}]
parts:
  one: {factors: {cc: [newreno, cubic], rwnd: [50KB, 1MB]}}
  two:
    factors:
      home:
        - {path.rate: 10Mbit, path.buffer: 50packets, label: slow}
        - {path.rate: 90Mbit, path.buffer: 100packets, label: fast}
    traffic: [{flow: other, generator: nuttcp, from: sender, to: receiver}]
profiles:
  quick: {replicates: 1, parts: {one: {factors: {cc: [cdg]}}}}
"""
FLAT = (
    EXPERIMENT[: EXPERIMENT.index("parts:")]
    + "factors: {cc: [newreno, cubic]}\nprofiles: {quick: {duration: 1s}}\n"
)


class Folder:
    """A folder with one experiment, which is loaded with overrides."""

    def __init__(self, folder: Path) -> None:
        (folder / "experiments").mkdir()
        self.path = folder / "experiments" / "study.yaml"
        self.write(EXPERIMENT)

    def write(self, text: str) -> None:
        self.path.write_text(text, encoding="utf-8")

    def study(self, *sets: str, profile: str | None = None) -> ResolvedExperiment:
        options = LoadOptions(profile, parse_overrides(sets))
        return load_experiment(self.path, CATALOGUE, ROOT / "hosts" / "lab.yaml", options)

    def read(self, *sets: str, profile: str | None = None) -> Experiment:
        return self.study(*sets, profile=profile).experiment

    def error_lines(self, *sets: str, profile: str | None = None) -> list[str]:
        with pytest.raises(DefinitionError) as caught:
            self.read(*sets, profile=profile)
        return [line for _, line in caught.value.lines()]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def labels(experiment: Experiment, part: str) -> dict[str, tuple[str, ...]]:
    return {name: factor.labels for name, factor in experiment.parts[part].factors.items()}


def test_an_override_applies_to_every_part(folder: Folder) -> None:
    parts = folder.read("duration=1s", "path.rtt=8ms", "order.seed=5").parts
    assert [part.duration_s for part in parts.values()] == [1, 1]
    assert [part.path.rtt_s for part in parts.values() if part.path] == [0.008, 0.008]


def test_an_override_is_stronger_than_the_profile(folder: Folder) -> None:
    assert folder.read("replicates=7", profile="quick").parts["one"].replicates == 7
    assert labels(folder.read("cc=bbr", profile="quick"), "one")["cc"] == ("bbr",)


def test_a_list_of_levels_overrides_a_factor_only_in_the_parts_that_have_it(folder: Folder) -> None:
    experiment = folder.read("cc=[cubic, cdg]")
    assert labels(experiment, "one")["cc"] == ("cubic", "cdg")
    assert "cc" not in experiment.parts["two"].settings


def test_a_single_value_of_a_factor_is_a_setting_in_the_parts_without_the_factor(folder: Folder) -> None:
    experiment = folder.read("cc=cdg")
    assert labels(experiment, "one")["cc"] == ("cdg",)
    assert experiment.parts["two"].settings == {"cc": "cdg"}


@pytest.mark.parametrize(
    ("text", "labels"),
    [("home=fast", "fast"), ("parts.two.home=fast", "fast"), ("factors.home=[slow, fast]", "slow,fast")],
)
def test_labels_of_levels_that_set_several_keys_are_refused_with_the_option_that_picks_them(
    folder: Folder, text: str, labels: str
) -> None:
    expected = f"each level of 'home' sets several keys; pick levels with --only home={labels}"
    assert folder.error_lines(text)[0] == f"--set {text}: {expected}"


def test_a_factor_may_be_set_to_a_range_and_to_one_level(folder: Folder) -> None:
    assert labels(folder.read("parts.one.rwnd={from: 1MB, to: 3MB, step: 1MB}"), "one")["rwnd"] == (
        "1MB",
        "2MB",
        "3MB",
    )
    assert labels(folder.read("factors.rwnd=9MB"), "one")["rwnd"] == ("9MB",)


def test_a_linked_factor_is_overridden_by_its_name(folder: Folder) -> None:
    found = labels(folder.read("home=[{path.rate: 5Mbit, path.buffer: 9packets, label: mine}]"), "two")
    assert found == {"home": ("mine",)}


def test_an_override_may_name_one_part(folder: Folder) -> None:
    experiment = folder.read("parts.two.duration=2s")
    assert {name: part.duration_s for name, part in experiment.parts.items()} == {"one": 10, "two": 2}


def test_a_flow_is_overridden_in_the_parts_that_have_it(folder: Folder) -> None:
    experiment = folder.read("traffic.bulk.size=5MB", "traffic.other.start=2s")
    (one,), (two,) = (part.traffic for part in experiment.parts.values())
    assert (one.size_bytes, two.size_bytes, two.start_s) == (5_000_000, None, 2)


def test_several_keys_of_a_flow_may_be_overridden_at_once(folder: Folder) -> None:
    (bulk,) = folder.read("traffic.bulk={start: 1s, size: 1MB}").parts["one"].traffic
    assert (bulk.start_s, bulk.size_bytes) == (1, 1_000_000)


def test_the_design_of_an_experiment_without_parts_may_be_replaced(folder: Folder) -> None:
    folder.write(FLAT)
    assert labels(folder.read("factors={mtu: [600, 1500]}"), "main")["mtu"] == ("600", "1500")
    assert len(folder.read("exclude=[{cc: cubic}]").parts["main"].exclude) == 1


def test_a_logger_is_overridden_by_its_name(folder: Folder) -> None:
    experiment = folder.read("loggers.queue.interval=20ms")
    assert [one.interval_s for part in experiment.parts.values() for one in part.loggers] == [0.02, 0.02]


def test_a_setting_is_overridden_if_no_factor_has_its_name(folder: Folder) -> None:
    experiment = folder.read("tcp.sack=off", "settings.mtu=1400")
    assert dict(experiment.parts["two"].settings) == {"tcp.sack": "off", "mtu": "1400"}


def test_keys_and_factors_of_an_experiment_without_parts_can_be_overridden(folder: Folder) -> None:
    folder.write(FLAT)
    experiment = folder.read("cc=cdg", "duration=3s", profile="quick")
    assert labels(experiment, "main") == {"cc": ("cdg",)}
    assert experiment.parts["main"].duration_s == 3


def test_a_factor_that_only_the_profile_has_is_overridden(folder: Folder) -> None:
    folder.write(FLAT.replace("quick: {", "quick: {factors: {rwnd: [50KB], net: [{path.rate: 1Mbit}]}, "))
    assert labels(folder.read("rwnd=1MB", profile="quick"), "main")["rwnd"] == ("1MB",)
    refused, *_ = folder.error_lines("path.rate=2Mbit", profile="quick")
    assert "'path.rate' is set by the levels of factor 'net'" in refused


def test_the_last_of_two_overrides_of_a_key_is_used(folder: Folder) -> None:
    assert folder.read("duration=1s", "duration=2s").parts["one"].duration_s == 2


def test_overrides_are_applied_to_the_plan_and_recorded_in_it(folder: Folder) -> None:
    study = folder.study("duration=1s", "cc=cubic", profile="quick")
    plan = make_plan(study, CATALOGUE)
    assert dict(plan.overrides) == {"duration": "1s", "cc": "cubic"}
    assert {trial.resolved.duration_s for trial in plan.trials} == {1}


def test_a_direction_is_overridden_if_the_levels_give_only_the_other_direction(folder: Folder) -> None:
    folder.write(FLAT.replace("cc: [newreno, cubic]", "path.loss: [{up: 1%}, {up: 2%}]"))
    path = folder.read("path.loss.down=3%").parts["main"].path
    assert path is not None
    assert path.loss == Directional(0.03)
    (refusal, *_) = folder.error_lines("path.loss.up=3%")
    assert refusal.endswith(
        "'path.loss.up' is set by the levels of factor 'path.loss'; use --set path.loss=..."
    )


@pytest.mark.parametrize(
    ("factor", "argument", "refusal"),
    [
        (
            "path.delay: [{down: 1ms, up: 1ms}, {down: 2ms, up: 2ms}]",
            "path.rtt=50ms",
            "'path.rtt' would have no effect, because 'path.delay' is set by the levels of factor 'path.delay'; "
            "use --set path.delay=...",
        ),
        (
            "large: [{traffic.bulk.size: 1MB}, {traffic.bulk.size: 2MB}]",
            "traffic.bulk.duration=5s",
            "'traffic.bulk.size' is set by the levels of factor 'large'; use --set large=...",
        ),
    ],
)
def test_a_key_that_conflicts_with_the_levels_of_a_factor_is_refused(
    folder: Folder, factor: str, argument: str, refusal: str
) -> None:
    folder.write(FLAT.replace("cc: [newreno, cubic]", factor))
    (first_line, *_) = folder.error_lines(argument)
    assert first_line.endswith(refusal)


@pytest.mark.parametrize(
    ("argument", "message", "caret"),
    [
        ("duration=10", "--set duration=10: duration: '10' has no unit; expected a time such as 5ms", 10),
        ("path.rate=[1Mbit", "--set path.rate=[1Mbit: missing ',' or ']' before this; close the bracket", 17),
        ("mtu=[600, 1500]", "--set mtu=[600, 1500]: 'mtu' is not a factor here; to make it one, write factors.mtu=[...]", 1),
        ("parts.two.path.rtt=[1ms]", "--set parts.two.path.rtt=[1ms]: 'path.rtt' is not a factor here; to make it one, write parts.two.factors.path.rtt=[...]", 1),
        ("durtion=1s", "--set durtion=1s: unknown key 'durtion'; did you mean 'duration'? known: ", 1),
        ("path.rat=1Mbit", "--set path.rat=1Mbit: unknown ", 1),
        ("parts.on.duration=1s", "--set parts.on.duration=1s: unknown part 'on'; did you mean 'one'? known: one, two", 1),
        ("parts.one=1s", "--set parts.one=1s: 'parts.one' is a part, not a key; write parts.one.KEY=VALUE", 1),
        ("traffic.bluk.size=1MB", "--set traffic.bluk.size=1MB: unknown flow 'bluk'; did you mean 'bulk'? known: bulk, other", 1),
        ("cc=[cubic, 9 lives]", "--set cc=[cubic, 9 lives]: cc: '9 lives' is not a congestion control", 12),
        ("parts.two.path.rate=1Mbit", "--set parts.two.path.rate=1Mbit: 'path.rate' is set by the levels of factor 'home'; use --set home=...", 1),
        ("parts.two.path.rate.up=1Mbit", "--set parts.two.path.rate.up=1Mbit: 'path.rate.up' is set by the levels of factor 'home'; use --set home=...", 1),
        ("parts.two.path={rate: 1Mbit}", "--set parts.two.path={rate: 1Mbit}: 'path.rate' is set by the levels of factor 'home'; use --set home=...", 1),
        ("parts.one.settings.cc=bbr", "--set parts.one.settings.cc=bbr: 'settings.cc' is set by the levels of factor 'cc'; use --set cc=...", 1),
        ("traffic.bulk=3", "--set traffic.bulk=3: bulk: must be a mapping with the keys that a flow may have; for a list, write [{flow: NAME, …}]", 14),
        ("tcp.sak=on", "--set tcp.sak=on: unknown setting on linux 'tcp.sak'; did you mean 'tcp.sack'?", 1),
        ("experiment=x", "--set experiment=x: 'experiment' cannot be set; use --testbed, --profile or a file that extends this one", 1),
        ("testbed=lab", "--set testbed=lab: 'testbed' cannot be set; use --testbed, ", 1),
        ("profiles.quick.duration=1s", "--set profiles.quick.duration=1s: 'profiles' cannot be set; use --testbed, --profile", 1),
        ("use=lossy", "--set use=lossy: 'use' cannot be set; use --testbed, --profile or a file that extends", 1),
        ("rate=1Mbit", "--set rate=1Mbit: 'rate' is a key of the path; write path.rate=...", 1),
        ("duration", "--set duration: missing value; write KEY=VALUE, such as --set duration=10s or --set path.rate=10Mbit", 1),
        ("duration=", "--set duration=: missing value; write KEY=VALUE, such as --set duration=10s or --set path.rate=10Mbit", 1),
        ("=10s", "--set =10s: missing key; write KEY=VALUE, such as --set duration=10s or --set path.rate=10Mbit", 1),
    ],
)  # fmt: skip
def test_an_invalid_override_is_refused_with_a_caret_below_the_argument(
    folder: Folder, argument: str, message: str, caret: int
) -> None:
    error_lines = folder.error_lines(argument)
    at = next(index for index, line in enumerate(error_lines) if line.startswith(message))
    assert error_lines[at + 1 : at + 3] == [f"       | {argument}", "       | " + " " * (caret - 1) + "^"]


def test_all_errors_of_overrides_are_reported_at_once(folder: Folder) -> None:
    error_lines = folder.error_lines("duration=10", "path.rate=fast", "replicates=0")
    assert sum(line.startswith("--set") for line in error_lines) == 3


def test_an_unknown_profile_is_refused_also_if_there_are_overrides(folder: Folder) -> None:
    assert folder.error_lines("duration=1s", profile="quik")[0].endswith(
        "unknown profile of study 'quik'; did you mean 'quick'? known: quick"
    )


def test_expectations_of_a_campaign_are_read_even_if_its_experiment_has_keys_of_another_release(
    folder: Folder, tmp_path: Path
) -> None:
    text = folder.study("parts.one.replicates=9").files["experiment.yaml"].decode()
    path = tmp_path / "experiment.yaml"
    path.write_text(
        f"{text}\nwithout: [parts.two]\nexpect: [{{say: Short, metric: rtt_median_ms, below: 20}}]\n"
    )
    assert [line.say for line in read_expectations(path)] == ["Short"]
    path.write_text(f"{text}\nexpect: [{{say: Short, metric: rtt_median_ms, bellow: 20}}]\n")
    with pytest.raises(DefinitionError, match="did you mean 'below'"):
        read_expectations(path)


def test_the_command_that_runs_a_plan_has_its_overrides() -> None:
    overrides = {"duration": "1s", "cc": "[cubic, cdg]"}
    plan = plan_of([trial("cubic")], experiment="study", profile="quick", overrides=overrides)
    command = "fab run study --profile quick --testbed lab --set duration=1s --set 'cc=[cubic, cdg]'"
    assert run_command(plan) == command
