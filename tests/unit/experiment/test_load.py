"""Experiments, testbeds and configurations are loaded into typed values."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from samovar.errors import DefinitionError, Problem
from samovar.experiment import (
    Config,
    Experiment,
    keys,
    load_config,
    load_experiment,
    load_testbed,
    yaml_tree,
)
from samovar.experiment.layers.merge import merge_layers
from samovar.experiment.values import Buffer
from samovar.experiment.yaml_tree import LARGEST_FILE_BYTES, Map, Seq, parse_yaml
from samovar.recipes import Catalogue
from tests.unit.layered import apply_profile, read_experiment

ROOT = Path(__file__).parents[3]
RECIPES = Catalogue(ROOT / "templates")

TEXT = """\
experiment: study
testbed: lab
path: {rate: 40Mbit, rtt: 2ms, buffer: 546packets}
duration: 10s
replicates: 3
traffic:
  - {flow: first, generator: nuttcp, from: sender, to: receiver, size: 1GB}
  - {flow: second, generator: nuttcp, from: sender, to: receiver}
parts:
  one:
    factors: {rwnd: [50KB, 1MB], cc: [cdg]}
  two:
    path: {buffer: 64KB}
    duration: 20s
    replicates: 5
    traffic: [{flow: only, generator: iperf3, from: sender, to: receiver}]
    factors: {mtu: [1500]}
profiles:
  quick:
    replicates: 1
    traffic: {first: {duration: 5s}}
    parts: {one: {factors: {rwnd: [50KB]}}, two: {replicates: 2}}
  slower: {path: {rate: 1Mbit}}
"""


@pytest.fixture
def study(tmp_path: Path) -> Experiment:
    (tmp_path / "study.yaml").write_text(TEXT, encoding="utf-8")
    return read_experiment(tmp_path / "study.yaml")


def test_every_key_and_value_has_its_position() -> None:
    tree, _ = parse_yaml("a: 1\nlist:\n  - {b: two}\n", "x.yaml")
    (item,) = cast(Seq, tree["list"])
    mark = cast(Map, item)["b"].position
    assert (tree.key_positions["list"].line, tree.key_positions["list"].column) == (2, 1)
    assert (mark.line, mark.column) == (3, 9)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: \xff\n", "{file}:1:4: a byte that is not valid UTF-8; save the file as UTF-8"),
        (
            b"#" * (LARGEST_FILE_BYTES + 1),
            "{file}: the file is larger than 128 KiB; this is not a definition file",
        ),
        (None, "{file}: no such file or directory; it must be a YAML file"),
    ],
    ids=["invalid UTF-8", "too large", "missing"],
)
def test_a_file_that_is_missing_too_large_or_not_text_is_refused(
    content: bytes | None, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DefinitionError) as caught:
        load_config(file)
    assert str(caught.value) == problem.format(file=file)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "named pipe (FIFO)"),
        (Path.mkdir, "directory"),
        (lambda file: file.symlink_to("/dev/zero"), "device"),
    ],
    ids=["pipe", "directory", "device"],
)
def test_a_pipe_a_directory_and_a_device_are_refused_without_being_read(
    make: Callable[[Path], object], kind: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    for folder in ("experiments", "hosts"):
        (project / folder).mkdir(parents=True)
    files = [project / "experiments" / "odd.yaml", project / "hosts" / "odd.yaml"]
    for file in files:
        make(file)
    samovar = (sys.executable, "-m", "samovar", "--project", str(project))
    for words, file in ((["plan", "odd"], files[0]), (["plan", "demo", "--testbed", "odd"], files[1])):
        done = subprocess.run([*samovar, *words], capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"{file}: is a {kind}; it must be a YAML file\n"
    listed = subprocess.run([*samovar, "list"], capture_output=True, text=True, timeout=120, check=False)
    assert listed.stdout.count(f"(is a {kind})") == len(files)
    make(project / "config.yaml")
    with pytest.raises(DefinitionError, match=r"config.yaml: is a .*; it must be a YAML file"):
        load_config(project / "config.yaml")


def test_a_part_inherits_the_keys_that_it_lacks(study: Experiment) -> None:
    one, two = study.parts["one"], study.parts["two"]
    assert one.path is not None and one.path.buffer == Buffer(546, None)
    assert (one.duration_s, one.replicates, len(one.traffic)) == (10.0, 3, 2)
    assert two.path is not None and two.path.rate_bps == 40_000_000
    assert two.path.buffer == Buffer(None, 64_000)
    assert (two.duration_s, two.replicates, two.traffic[0].label) == (20.0, 5, "only")


def test_an_experiment_without_parts_has_one_part_called_main() -> None:
    tree, _ = parse_yaml("experiment: x\ntestbed: lab\nfactors: {mtu: [1500]}\ntraffic: []\n", "x.yaml")
    experiment = Experiment.model_validate(merge_layers([tree], []))
    assert list(experiment.parts) == ["main"]
    assert experiment.parts["main"].factors["mtu"].labels == ("1500",)


def test_a_profile_overrides_the_experiment_and_its_parts(study: Experiment) -> None:
    quick = apply_profile(study, "quick")
    assert quick.parts["one"].replicates == 1
    assert quick.parts["two"].replicates == 2
    assert {name: one.labels for name, one in quick.parts["one"].factors.items()} == {
        "rwnd": ("50KB",),
        "cc": ("cdg",),
    }
    assert study.parts["one"].factors["rwnd"].labels == ("50KB", "1MB")


def test_a_profile_that_gives_a_flow_a_duration_removes_its_size(study: Experiment) -> None:
    first, second = apply_profile(study, "slower").parts["one"].traffic
    assert (first.size_bytes, first.duration_s, second.size_bytes) == (10**9, None, None)
    first, _ = apply_profile(study, "quick").parts["one"].traffic
    assert (first.size_bytes, first.duration_s) == (None, 5.0)


def test_a_profile_changes_one_value_of_the_path_and_keeps_the_others(study: Experiment) -> None:
    path = apply_profile(study, "slower").parts["one"].path
    assert path is not None
    assert (path.rate_bps, path.rtt_s, path.buffer) == (1_000_000, 0.002, Buffer(546, None))


def test_a_loaded_experiment_cannot_be_changed(study: Experiment) -> None:
    with pytest.raises(ValueError, match="frozen"):
        study.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", yaml_tree.yaml_names(ROOT / "experiments"))
def test_a_shipped_experiment_is_valid_with_the_shipped_recipes(name: str) -> None:
    study = load_experiment(ROOT / "experiments" / f"{name}.yaml", RECIPES)
    assert study.experiment.name == name


def test_a_role_means_its_first_host_and_a_role_with_a_number_n_its_nth_host() -> None:
    testbed = load_testbed(ROOT / "hosts" / "dumbbell.yaml")
    names = ("sender", "sender3", "receiver", "src4", "sender5")
    assert [keys.hosts_of(testbed, name) for name in names] == [
        ("src1",),
        ("src3",),
        ("dst1",),
        ("src4",),
        (),
    ]


def test_a_host_may_have_its_own_login(tmp_path: Path) -> None:
    file = tmp_path / "bed.yaml"
    file.write_text(
        "testbed: bed\nssh: {user: lab, port: 2222}\n"
        "hosts:\n  a: {os: freebsd, role: sender, address: a.example.org, ssh: {user: root}}\n"
    )
    ssh = load_testbed(file).ssh_of("a")
    assert (ssh.user, ssh.port) == ("root", 2222)


@pytest.mark.parametrize("text", ["", "# retries: 3\n"])
def test_a_configuration_without_keys_has_the_defaults(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    assert load_config(tmp_path / "config.yaml").model_dump() == Config().model_dump()


def test_the_values_of_the_shipped_configuration_are_the_defaults() -> None:
    assert load_config(ROOT / "config.yaml").model_dump() == Config().model_dump()


def test_an_invalid_value_that_two_parts_inherit_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(TEXT.replace("40Mbit", "40").replace("50KB, 1MB", "50KB, 1"))
    with pytest.raises(DefinitionError) as caught:
        read_experiment(tmp_path / "study.yaml")
    assert caught.value.problems == (
        Problem(
            str(tmp_path / "study.yaml"), 3, 14, "rate: '40' has no unit; expected a rate such as 40Mbit"
        ),
    )
