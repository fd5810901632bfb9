"""Bases, fragments and profiles are merged; every value keeps its position."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from samovar.errors import DefinitionError, Problem
from samovar.experiment import Directional, Experiment, load_experiment, load_testbed
from samovar.experiment.keys.factor_keys import Flow
from samovar.experiment.layers.reuse import merge_reused
from samovar.experiment.load import campaign_files
from samovar.experiment.yaml_tree import Map, plain, read_yaml
from samovar.recipes import Catalogue
from tests.unit.layered import apply_profile, read_experiment

ROOT = Path(__file__).parents[3]
LAB = load_testbed(ROOT / "hosts" / "lab.yaml")

BASE = """\
experiment: base
title: The base
testbed: lab
path: {rate: 40Mbit, rtt: 2ms, buffer: 546packets}
duration: 10s
replicates: 3
traffic:
  - {flow: bulk, generator: nuttcp, from: sender, to: receiver, size: 1GB}
  - {flow: thin, generator: nuttcp, from: sender, to: receiver}
loggers: [{logger: queue, at: router, interval: 5ms}]
parts:
  one:
    factors: {cc: [newreno, cubic], rwnd: [50KB, 1MB]}
  two:
    factors: {mtu: [1500]}
    replicates: 8
    path: {buffer: 64packets}
profiles:
  quick: {replicates: 1}
"""


class Folder:
    """A folder of experiments to which tests write files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "experiments"
        (self.folder / "fragments").mkdir(parents=True)
        self.write("base", BASE)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str, text: str) -> Experiment:
        return read_experiment(self.write(name, text))

    def errors(self, name: str, text: str) -> list[str]:
        with pytest.raises(DefinitionError) as caught:
            self.read(name, text)
        return str(caught.value).replace(f"{self.folder}/", "").splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def flows(experiment: Experiment, part: str) -> Mapping[str, Flow]:
    return {flow.label: flow for flow in experiment.parts[part].traffic}


def test_an_experiment_inherits_the_keys_of_the_experiment_that_it_extends(folder: Folder) -> None:
    study = folder.read("study", "experiment: study\nextends: base\n")
    assert (study.name, study.title, study.testbed) == ("study", "The base", "lab")
    assert list(study.parts) == ["one", "two"]
    assert study.parts["two"].replicates == 8


def test_top_level_keys_of_an_experiment_change_the_parts_of_its_base(folder: Folder) -> None:
    study = folder.read("study", "experiment: study\nextends: base\nreplicates: 2\npath: {rtt: 9ms}\n")
    assert {name: part.replicates for name, part in study.parts.items()} == {"one": 2, "two": 2}
    path = study.parts["two"].path
    assert path is not None
    assert (path.rtt_s, path.buffer) == (0.009, buffer_of_base(folder))


def buffer_of_base(folder: Folder) -> object:
    path = read_experiment(folder.folder / "base.yaml").parts["two"].path
    assert path is not None
    return path.buffer


def test_a_base_may_extend_another_base(folder: Folder) -> None:
    folder.write("middle", "experiment: middle\nextends: base\nduration: 20s\nreplicates: 5\n")
    study = folder.read("study", "experiment: study\nextends: middle\nreplicates: 7\n")
    assert study.parts["one"].duration_s == 20
    assert study.parts["one"].replicates == 7


def test_a_list_is_replaced_and_a_mapping_is_merged(folder: Folder) -> None:
    study = folder.read("study", "experiment: study\nextends: base\nparts: {one: {factors: {cc: [cdg]}}}\n")
    assert {name: factor.labels for name, factor in study.parts["one"].factors.items()} == {
        "cc": ("cdg",),
        "rwnd": ("50KB", "1MB"),
    }


def test_a_range_of_levels_is_replaced_as_a_whole(folder: Folder) -> None:
    first = "experiment: first\nextends: base\nparts: {one: {factors: {rwnd: {from: 50KB, to: 90KB, step: 20KB}}}}\n"
    folder.write("first", first)
    second = "experiment: second\nextends: first\nparts: {one: {factors: {rwnd: {from: 10KB, to: 20KB, step: 5KB}}}}\n"
    assert folder.read("second", second).parts["one"].factors["rwnd"].labels == ("10KB", "15KB", "20KB")


def factors_of(experiment: Experiment, part: str) -> dict[str, tuple[str, ...]]:
    return {name: factor.labels for name, factor in experiment.parts[part].factors.items()}


def test_top_level_factors_apply_to_every_part_before_its_own_factors(folder: Folder) -> None:
    text = BASE.replace("parts:", "factors: {cc: [cdg], txd: [256]}\nparts:")
    study = folder.read("study", text.replace("experiment: base", "experiment: study"))
    assert factors_of(study, "one") == {
        "cc": ("newreno", "cubic"),
        "txd": ("256",),
        "rwnd": ("50KB", "1MB"),
    }
    assert factors_of(study, "two") == {"cc": ("cdg",), "txd": ("256",), "mtu": ("1500",)}
    assert list(study.parts["one"].factors) == ["cc", "txd", "rwnd"]


def test_top_level_factors_of_an_experiment_apply_to_every_part_of_its_base(
    folder: Folder,
) -> None:
    study = folder.read("study", "experiment: study\nextends: base\nfactors: {cc: [cdg]}\n")
    assert factors_of(study, "one") == {"cc": ("cdg",), "rwnd": ("50KB", "1MB")}
    assert factors_of(study, "two") == {"cc": ("cdg",), "mtu": ("1500",)}


def test_factors_of_a_fragment_or_profile_apply_to_every_part(folder: Folder) -> None:
    text = BASE.replace("experiment: base", "experiment: study\nuse: windows")
    text += "  short: {factors: {rwnd: [1MB]}}\nfragments: {windows: {factors: {rwnd: [9KB, 8KB]}}}\n"
    study = folder.read("study", text)
    assert factors_of(study, "one") == {"rwnd": ("50KB", "1MB"), "cc": ("newreno", "cubic")}
    assert factors_of(study, "two") == {"rwnd": ("9KB", "8KB"), "mtu": ("1500",)}
    short = apply_profile(study, "short")
    assert {part: factors_of(short, part)["rwnd"] for part in short.parts} == {
        "one": ("1MB",),
        "two": ("1MB",),
    }


def test_a_profile_that_gives_a_factor_only_levels_keeps_the_keys_that_it_sets(folder: Folder) -> None:
    own = "duration: {sets: [traffic.bulk.start, traffic.thin.start], levels: [1s, 2s]}"
    text = BASE.replace("experiment: base", "experiment: study").replace("mtu: [1500]", f"begin{own[8:]}")
    study = folder.read("study", text + "  later: {factors: {begin: [5s]}}\n")
    begin = apply_profile(study, "later").parts["two"].factors["begin"]
    assert begin.levels[0].texts == {"traffic.bulk.start": "5s", "traffic.thin.start": "5s"}


def test_traffic_as_a_mapping_changes_existing_flows_and_adds_flows_that_name_a_generator(
    folder: Folder,
) -> None:
    text = "experiment: study\nextends: base\ntraffic:\n  thin: {start: 2s}\n  new: {generator: iperf3, from: sender, to: receiver}\n"
    found = flows(folder.read("study", text), "one")
    assert list(found) == ["bulk", "thin", "new"]
    assert (found["thin"].start_s, found["new"].generator) == (2, "iperf3")


def test_traffic_may_be_a_mapping_in_an_experiment_without_a_base(folder: Folder) -> None:
    text = BASE.replace("experiment: base", "experiment: study")
    start = text.index("traffic:")
    mapping = "traffic: {bulk: {generator: nuttcp, from: sender, to: receiver}}\n"
    study = folder.read("study", text[:start] + mapping + text[text.index("loggers:") :])
    assert list(flows(study, "two")) == ["bulk"]


def test_the_duration_of_a_flow_replaces_an_inherited_size(folder: Folder) -> None:
    study = folder.read("study", "experiment: study\nextends: base\ntraffic: {bulk: {duration: 5s}}\n")
    bulk = flows(study, "one")["bulk"]
    assert (bulk.size_bytes, bulk.duration_s) == (None, 5)


def test_loggers_may_be_changed_by_name(folder: Folder) -> None:
    study = folder.read("study", "experiment: study\nextends: base\nloggers: {queue: {interval: 1ms}}\n")
    assert [logger.interval_s for logger in study.parts["one"].loggers] == [0.001]


def test_an_experiment_overrides_its_fragments_and_a_later_fragment_overrides_an_earlier_one(
    folder: Folder,
) -> None:
    text = """\
experiment: study
extends: base
use: [slow, lossy]
path: {rtt: 30ms}
fragments:
  slow: {path: {rate: 1Mbit, rtt: 10ms, loss: 5%}}
  lossy: {path: {loss: 1%}}
"""
    path = folder.read("study", text).parts["one"].path
    assert path is not None
    written = plain(folder.read("study", text).tree)
    assert isinstance(written, dict)
    assert written["parts"]["one"]["path"] == {
        "rate": "1Mbit",
        "rtt": "30ms",
        "buffer": "546packets",
        "loss": "1%",
    }


def test_a_fragment_file_is_used_by_a_part_and_by_another_fragment(folder: Folder) -> None:
    folder.write("fragments/slow", "use: far\npath: {rate: 1Mbit}\n")
    folder.write("fragments/far", "path: {rtt: 200ms, rate: 9Mbit}\n")
    study = folder.read("study", "experiment: study\nextends: base\nparts: {one: {use: slow}}\n")
    one, two = (study.parts[name].path for name in ("one", "two"))
    assert one is not None
    assert two is not None
    assert (one.rtt_s, two.rtt_s) == (0.2, 0.002)
    assert plain(study.tree["parts"]["one"]["path"]["rate"]) == "1Mbit"  # type: ignore[index,call-overload]


def test_an_experiment_can_use_the_fragments_of_its_base(folder: Folder) -> None:
    folder.write("base", BASE + "fragments: {short: {duration: 1s}}\n")
    assert folder.read("study", "experiment: study\nextends: base\nuse: short\n").parts["one"].duration_s == 1


def test_a_profile_overrides_all_files_and_may_use_fragments(folder: Folder) -> None:
    text = "experiment: study\nextends: base\nduration: 7s\nfragments: {short: {duration: 1s}}\n"
    study = folder.read("study", text + "profiles: {quick: {use: short}, plain: {replicates: 4}}\n")
    assert apply_profile(study, "quick").parts["two"].duration_s == 1
    assert apply_profile(study, "quick").parts["two"].replicates == 1
    assert apply_profile(study, "plain").parts["two"].replicates == 4
    assert study.parts["two"].duration_s == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "extends: bse\n",
            "study.yaml:2:10: unknown experiment 'bse'; did you mean 'base'? known: applications, base, ",
        ),
        ("extends: [base]\n", "study.yaml:2:10: extends: must be the name of one experiment"),
        (
            "extends: study\n",
            "study.yaml:2:10: study extends study; experiments must not extend each other",
        ),
        (
            "extends: base\nuse: slow\nfragments: {slw: {duration: 1s}}\n",
            "study.yaml:3:6: unknown fragment 'slow'; did you mean 'slw'? known: ",
        ),
        (
            "extends: base\nuse: {slow: 1}\n",
            "study.yaml:3:6: use: must be a name of a fragment or a list of names, such as [slow-link, lossy]",
        ),
        ("extends: base\nuse: []\n", "study.yaml:3:6: use: is empty; it needs at least one fragment"),
        (
            "extends: base\nprofiles: {quick: {use: []}}\n",
            "study.yaml:3:25: use: is empty; it needs at least one fragment",
        ),
        (
            "extends: base\nuse: a\nfragments: {a: {use: b}, b: {use: a}}\n",
            "study.yaml:4:35: fragment a uses b uses a; fragments must not use each other",
        ),
        (
            "extends: base\nfragments: [a]\n",
            "study.yaml:3:12: fragments: must be a mapping of names to mappings",
        ),
        (
            "extends: base\nfragments: {a: fast}\n",
            "study.yaml:3:16: a: a fragment must be a mapping",
        ),
        (
            "extends: base\ntraffic: {blk: {start: 1s}}\n",
            "study.yaml:3:11: unknown flow 'blk'; did you mean 'bulk'? known: bulk, thin",
        ),
        (
            "extends: base\nparts: {ones: {duration: 1s}}\n",
            "study.yaml:3:9: unknown part 'ones'; did you mean 'one'? known: one, two; a new part needs one of title, "
            "factors, include, traffic, path, settings",
        ),
        (
            "extends: base\ntraffic: {bulk: 1s}\n",
            "study.yaml:3:17: bulk: must be a mapping with the keys that a flow may have; for a list, write [{flow: NAME, …}]",
        ),
        (
            "extends: base\nloggers: {quue: {interval: 1s}}\n",
            "study.yaml:3:11: unknown logger 'quue'; did you mean 'queue'? known: queue",
        ),
    ],
)
def test_invalid_reuse_is_refused_at_its_place(folder: Folder, text: str, message: str) -> None:
    errors = folder.errors("study", f"experiment: study\n{text}")
    assert message in errors or any(one.startswith(message) for one in errors if message.endswith(" "))


@pytest.mark.parametrize(
    "part", ["ones: {title: More, duration: 1s}", "ones: {factors: {mtu: [600]}}", "far: {duration: 1s}"]
)
def test_a_new_part_may_be_added(folder: Folder, part: str) -> None:
    study = folder.read("study", f"experiment: study\nextends: base\nparts: {{{part}}}\n")
    assert list(study.parts) == ["one", "two", part.partition(":")[0]]


def test_all_experiments_that_extend_each_other_are_named(folder: Folder) -> None:
    folder.write("middle", "experiment: middle\nextends: study\n")
    assert folder.errors("study", "experiment: study\nextends: middle\n")[0] == (
        "middle.yaml:2:10: study extends middle extends study; experiments must not extend each other"
    )


def test_an_error_in_a_fragment_has_its_place_in_the_fragment_s_file(folder: Folder) -> None:
    folder.write("fragments/slow", "# slow\npath:\n  rate: 40\n")
    assert folder.errors("study", "experiment: study\nextends: base\nuse: slow\n") == [
        "fragments/slow.yaml:3:9: rate: '40' has no unit; expected a rate such as 40Mbit"
    ]


def test_an_error_in_a_base_has_its_place_in_the_base(folder: Folder) -> None:
    folder.write("base", BASE.replace("duration: 10s", "duration: 10"))
    assert folder.errors("study", "experiment: study\nextends: base\n") == [
        "base.yaml:5:11: duration: '10' has no unit; expected a time such as 5ms"
    ]


def test_an_unknown_key_of_a_fragment_is_reported_in_the_file_of_the_fragment(folder: Folder) -> None:
    folder.write("fragments/slow", "pth: {rate: 1Mbit}\n")
    (message,) = folder.errors("study", "experiment: study\nextends: base\nuse: slow\n")
    assert message.startswith(
        "fragments/slow.yaml:1:1: unknown key of a fragment 'pth'; did you mean 'path'?"
    )


def test_a_fragment_that_is_defined_twice_is_refused(folder: Folder) -> None:
    folder.write("fragments/slow", "duration: 1s\n")
    text = "experiment: study\nextends: base\nuse: slow\nfragments: {slow: {duration: 2s}}\n"
    assert folder.errors("study", text) == [
        "study.yaml:4:13: fragment 'slow' is in study.yaml and also a file in fragments/; rename one"
    ]


def test_overridden_values_are_kept_with_their_positions(folder: Folder) -> None:
    study = folder.read("study", "experiment: study\nextends: base\npath: {buffer: 9packets}\n")
    assert study.tree is not None
    parts = study.tree["parts"]
    assert isinstance(parts, Map)
    path = parts["two"]["path"]  # type: ignore[index,call-overload]
    assert isinstance(path, Map)
    chain = [path["buffer"], *path.overridden["buffer"]]
    assert [(str(one), one.position.line) for one in chain] == [
        ("9packets", 3),
        ("64packets", 17),
        ("9packets", 3),
        ("546packets", 4),
    ]


def test_a_campaign_keeps_its_original_files_and_one_merged_file_with_the_same_parts(
    folder: Folder, tmp_path: Path
) -> None:
    folder.write("fragments/slow", "path: {rate: 1Mbit}\n")
    path = folder.write(
        "study", "experiment: study\nextends: base\nuse: slow\nprofiles: {long: {duration: 60s}}\n"
    )
    problems: list[Problem] = []
    files = campaign_files(merge_reused(read_yaml(path)[0], path, problems), LAB)
    assert sorted(files) == [
        "definition/base.yaml",
        "definition/fragments/slow.yaml",
        "definition/study.yaml",
        "experiment.yaml",
        "testbed.yaml",
    ]
    merged_file = tmp_path / "alone.yaml"
    merged_file.write_bytes(files["experiment.yaml"])
    reloaded, original = read_experiment(merged_file), read_experiment(path)
    assert reloaded.parts == original.parts
    assert apply_profile(reloaded, "long").parts == apply_profile(original, "long").parts
    assert problems == []


def test_the_merged_file_of_a_campaign_keeps_the_queue_upstream_that_a_base_gives(
    folder: Folder, tmp_path: Path
) -> None:
    path = folder.write(
        "study",
        "experiment: study\nextends: base\n"
        "path: {rate: {down: 2Mbit, up: 1Mbit}, aqm: {down: codel}, buffer: {down: 9packets}}\n",
    )
    files = campaign_files(merge_reused(read_yaml(path)[0], path, []), LAB)
    merged_file = tmp_path / "alone.yaml"
    merged_file.write_bytes(files["experiment.yaml"])
    assert b"up: " in files["experiment.yaml"].partition(b"aqm:")[2]
    assert read_experiment(merged_file).parts == read_experiment(path).parts


def test_the_file_of_an_experiment_without_base_and_fragments_is_kept_byte_for_byte(folder: Folder) -> None:
    path = folder.folder / "base.yaml"
    files = campaign_files(merge_reused(read_yaml(path)[0], path, []), LAB)
    assert files == {
        "experiment.yaml": BASE.encode(),
        "testbed.yaml": (ROOT / "hosts" / "lab.yaml").read_bytes(),
    }


def test_a_missing_base_is_reported_without_the_errors_that_follow_from_it(folder: Folder) -> None:
    """Without the base, the experiment has no testbed, no flow to change and only a part of its path."""
    path = folder.write(
        "study", "experiment: study\nextends: bse\npath: {rtt: 4ms}\ntraffic: {bulk: {start: 1s}}\n"
    )
    with pytest.raises(DefinitionError) as caught:
        load_experiment(path, Catalogue(ROOT / "templates"), ROOT / "hosts" / "lab.yaml")
    start = f"{path}:2:10: unknown experiment 'bse'; did you mean 'base'? known: applications, base, "
    assert str(caught.value).startswith(start)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "merged"),
    [
        ("{rate: {up: 5Mbit}}", {"rate": {"down": "40Mbit", "up": "5Mbit"}, "buffer": "546packets"}),
        ("{rate: {down: 5Mbit}}", {"rate": {"down": "5Mbit"}, "buffer": "546packets"}),
        ("{rate: 1Mbit}", {"rate": "1Mbit", "buffer": "546packets"}),
        ("{buffer: {down: 9packets}}", {"rate": "40Mbit", "buffer": {"down": "9packets"}}),
    ],
)
def test_a_value_for_one_direction_overrides_that_direction_of_an_inherited_value(
    folder: Folder, override: str, merged: Mapping[str, object]
) -> None:
    study = folder.read("study", f"experiment: study\nextends: base\npath: {override}\n")
    written = plain(study.tree)
    assert isinstance(written, dict)
    assert {key: written["parts"]["one"]["path"][key] for key in ("rate", "buffer")} == merged


def test_a_queue_of_both_directions_can_be_changed_in_one_direction(folder: Folder) -> None:
    folder.write("base", BASE.replace("rate: 40Mbit", "rate: {down: 40Mbit, up: 5Mbit}"))
    study = folder.read(
        "study", "experiment: study\nextends: base\npath: {aqm: {up: codel}, buffer: {up: 9packets}}\n"
    )
    written = plain(study.tree)
    assert isinstance(written, dict)
    assert written["parts"]["one"]["path"]["buffer"] == {"down": "546packets", "up": "9packets"}


def test_an_inherited_queue_upstream_is_kept_if_a_part_has_a_rate_upstream(folder: Folder) -> None:
    base = BASE.replace("path: {rate: 40Mbit", "path: {aqm: fq_codel").replace(
        "path: {buffer: 64packets}", "path: {rate: {down: 9Mbit, up: 5Mbit}}"
    )
    folder.write("base", f"{base}  one-way: {{path: {{rate: 40Mbit, aqm: {{down: codel}}}}}}\n")
    study = folder.read("study", "experiment: study\nextends: base\npath: {aqm: {down: codel}}\n")
    aqms = [part.path.aqm for part in study.parts.values() if part.path]
    assert aqms == [Directional("codel", "fq_codel")] * 2
    one_way = apply_profile(study, "one-way").parts["one"].path
    assert one_way is not None
    assert one_way.aqm == Directional("codel")


def test_expectations_of_a_base_may_name_levels_that_were_replaced(folder: Folder) -> None:
    line = "{say: fast, metric: throughput_bps, part: one, where: {rwnd: 1MB}, above: 1}"
    folder.write("base", f"{BASE}expect:\n  - {line}\n")
    path = folder.write("study", "experiment: study\nextends: base\nparts: {one: {factors: {rwnd: [2MB]}}}\n")
    assert (
        len(
            load_experiment(
                path, Catalogue(ROOT / "templates"), ROOT / "hosts" / "lab.yaml"
            ).experiment.expect
        )
        == 1
    )
    path.write_text(path.read_text() + f"expect:\n  - {line}\n", encoding="utf-8")
    with pytest.raises(DefinitionError, match="unknown level of rwnd '1MB'"):
        load_experiment(path, Catalogue(ROOT / "templates"), ROOT / "hosts" / "lab.yaml")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("extends: base\nwithout: [parts.one]\n", "3:1"),
        ("extends: base\nparts: {one: {without: [mtu]}}\n", "3:15"),
        ("extends: base\nfragments: {a: {without: [mtu]}}\n", "3:17"),
    ],
)
def test_the_removed_key_called_without_is_refused(folder: Folder, text: str, place: str) -> None:
    (message,) = folder.errors("study", f"experiment: study\n{text}")
    assert re.match(rf"study\.yaml:{place}: unknown key (of a fragment )?'without'; known: ", message)
