"""Settings of hosts: of the layers site, OS, testbed, host and experiment, each overrides the ones before."""

from pathlib import Path

import pytest

from samovar.errors import DefinitionError
from samovar.experiment import (
    Config,
    LoadOptions,
    ResolvedExperiment,
    Testbed,
    load_config,
    load_experiment,
    load_testbed,
)
from samovar.recipes import Catalogue

ROOT = Path(__file__).parents[3]
CATALOGUE = Catalogue(ROOT / "templates")

CONFIG = """\
settings: {cc: reno, mtu: 1400, tcp.sack: on}
os:
  linux: {settings: {cc: cubic, tcp.sack: off}}
"""
TESTBED = """\
testbed: bench
settings: {cc: htcp, rwnd: 1MB}
hosts:
  a: {os: linux, role: sender, address: 10.0.0.1, interfaces: {eth1: {address: 172.16.1.1/24, link: one}}}
  b:
    os: linux
    role: sender
    address: 10.0.0.2
    settings: {cc: vegas}
    interfaces: {eth1: {address: 172.16.1.2/24, link: one}}
  c: {os: linux, role: receiver, address: 10.0.0.3, interfaces: {eth1: {address: 172.16.1.3/24, link: one}}}
"""
EXPERIMENT = """\
experiment: study
testbed: bench
duration: 10s
replicates: 3
settings: {rwnd: {receiver: 2MB}}
traffic:
  - {flow: bulk, generator: nuttcp, from: sender, to: receiver}
parts:
  plain: {factors: {mtu: [1500]}}
  other:
    factors: {mtu: [1500]}
    settings: {cc: {sender2: bbr}}
profiles:
  quick: {settings: {rwnd: 3MB}}
"""


class Bench:
    """A site with one testbed and one experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("hosts", "experiments"):
            (folder / name).mkdir()
        self.write("config.yaml", CONFIG)
        self.write("hosts/bench.yaml", TESTBED)
        self.write("experiments/study.yaml", EXPERIMENT)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    @property
    def config(self) -> Config:
        return load_config(self.folder / "config.yaml")

    @property
    def testbed(self) -> Testbed:
        return load_testbed(self.folder / "hosts" / "bench.yaml")

    def load(self, profile: str | None = None) -> ResolvedExperiment:
        options = LoadOptions(profile, config=self.config)
        return load_experiment(self.folder / "experiments" / "study.yaml", CATALOGUE, None, options)

    def chain(self, key: str, host: str, part: str = "plain", profile: str | None = None) -> list[str]:
        """Return `value layer place` for every layer that gives the setting, the strongest first."""
        found = self.load(profile).settings[part][host].get(key)
        layers = found.layers if found else ()
        return [f"{one.text} {one.layer} {one.place}".replace(f"{self.folder}/", "") for one in layers]

    def errors(self) -> list[str]:
        with pytest.raises(DefinitionError) as caught:
            self.load()
        return str(caught.value).replace(f"{self.folder}/", "").splitlines()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_each_layer_overrides_the_weaker_ones(bench: Bench) -> None:
    assert bench.chain("cc", "b") == [
        "vegas host hosts/bench.yaml:9:20",
        "htcp testbed hosts/bench.yaml:2:16",
        "cubic os config.yaml:3:26",
        "reno site config.yaml:1:16",
    ]


def test_a_host_that_a_layer_does_not_name_gets_the_value_of_the_weaker_layer(bench: Bench) -> None:
    assert bench.chain("rwnd", "c") == [
        "2MB experiment study experiments/study.yaml:5:29",
        "1MB testbed hosts/bench.yaml:2:28",
    ]
    assert bench.chain("rwnd", "a") == ["1MB testbed hosts/bench.yaml:2:28"]


def test_a_part_and_a_profile_override_top_level_settings(bench: Bench) -> None:
    assert bench.chain("cc", "b", "other")[0] == "bbr part other experiments/study.yaml:12:30"
    assert bench.chain("cc", "a", "other")[0] == "htcp testbed hosts/bench.yaml:2:16"
    assert bench.chain("rwnd", "c", profile="quick")[:2] == [
        "3MB profile quick experiments/study.yaml:14:28",
        "2MB experiment study experiments/study.yaml:5:29",
    ]


def test_a_role_in_a_stronger_layer_overrides_a_host_in_a_weaker_one(bench: Bench) -> None:
    bench.write("experiments/study.yaml", EXPERIMENT.replace("{rwnd: 3MB}", "{cc: {senders: cdg}}"))
    assert bench.chain("cc", "b", "other", profile="quick")[:2] == [
        "cdg profile quick experiments/study.yaml:14:36",
        "bbr part other experiments/study.yaml:12:30",
    ]


def test_values_of_hosts_that_only_a_weaker_layer_names_are_checked(bench: Bench) -> None:
    base = EXPERIMENT.replace("rwnd: {receiver: 2MB}", "tcp.sack: {c: maybe}, cc: {sendr: cdg}")
    bench.write("experiments/base.yaml", base.replace("study", "base"))
    study = "experiment: study\nextends: base\nsettings: {tcp.sack: {a: on}, cc: {a: cdg}}\n"
    bench.write("experiments/study.yaml", study)
    sack, cc = bench.errors()
    assert sack == "experiments/base.yaml:5:26: tcp.sack: 'maybe' is not a switch; expected on or off"
    assert cc.startswith("experiments/base.yaml:5:39: unknown host or role 'sendr'; did you mean 'sender'?")


def test_the_merged_file_of_a_campaign_keeps_settings_of_hosts_that_only_its_base_gives(bench: Bench) -> None:
    base = EXPERIMENT.replace("rwnd: {receiver: 2MB}", "tcp.sack: off, rwnd: {receiver: 2MB, b: 4MB}")
    base = base.replace("{rwnd: 3MB}", "{cc: {b: bbr}}")
    bench.write("experiments/base.yaml", base.replace("study", "base"))
    study = "experiment: study\nextends: base\nsettings: {tcp.sack: {a: on}, rwnd: {senders: 5MB}}\n"
    profile = "profiles: {quick: {settings: {cc: {a: cdg}}}}\n"
    bench.write("experiments/study.yaml", study + profile)
    first, quick = bench.load(), bench.load("quick")
    bench.write("experiments/study.yaml", first.files["experiment.yaml"].decode())

    def values(experiment: ResolvedExperiment) -> list[object]:
        return [
            (part, host, key, one.value)
            for part, hosts in experiment.settings.items()
            for host, settings in hosts.items()
            for key, one in sorted(settings.items())
        ]

    assert ("plain", "c", "rwnd", 2_000_000) in values(first)
    assert values(bench.load()) == values(first)
    assert {("plain", "a", "cc", "cdg"), ("plain", "b", "cc", "bbr")} <= {*values(quick)}
    assert values(bench.load("quick")) == values(quick)


def test_settings_of_hosts_have_typed_values(bench: Bench) -> None:
    settings = bench.load().settings["plain"]["c"]
    assert {key: one.value for key, one in settings.items()} == {
        "cc": "htcp",
        "mtu": 1400,
        "rwnd": 2_000_000,
        "tcp.sack": "off",
    }


def test_the_value_of_a_host_overrides_the_value_of_its_role(bench: Bench) -> None:
    values = {"senders": "reno", "sender2": "cdg", "b": "bbr"}
    assert {host: bench.testbed.value_at(host, values) for host in ("a", "b", "c")} == {
        "a": "reno",
        "b": "bbr",
        "c": None,
    }


def test_a_setting_that_no_layer_gives_is_absent(bench: Bench) -> None:
    assert bench.chain("txd", "a") == []


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("config.yaml", "tcp.sack: on", "tcp.sak: on", "config.yaml:1:33: unknown setting on linux 'tcp.sak'; did you mean 'tcp.sack'?"),
        ("config.yaml", "tcp.sack: on", "tcp.sack: maybe", "config.yaml:1:43: tcp.sack: 'maybe' is not a switch; expected on or off"),
        ("config.yaml", "mtu: 1400", "mtu: 14", "config.yaml:1:27: mtu: MTU in bytes 14 is out of range; expected one from 68 to 65535"),
        ("config.yaml", "linux:", "linus:", "config.yaml:3:3: linus: unknown os 'linus'; did you mean 'linux'?"),
        ("hosts/bench.yaml", "cc: vegas", "cca: vegas", "hosts/bench.yaml:9:16: unknown setting on linux 'cca'; did you mean 'cc'?"),
        ("hosts/bench.yaml", "rwnd: 1MB", "rwnd: {recever: 1MB}", "hosts/bench.yaml:2:29: unknown host or role 'recever'; did you mean 'receiver'?"),
        ("hosts/bench.yaml", "rwnd: 1MB", "rwnd: 1", "hosts/bench.yaml:2:28: rwnd: '1' has no unit; expected a size such as 50KB"),
        ("experiments/study.yaml", "{sender2: bbr}", "{sender3: bbr}", "experiments/study.yaml:12:21: unknown host or role 'sender3'"),
        ("experiments/study.yaml", "rwnd: {", "cca: {", "experiments/study.yaml:5:12: unknown setting on linux 'cca'; did you mean 'cc'?"),
        ("experiments/study.yaml", "{rwnd: 3MB}", "{rwnd: 3}", "experiments/study.yaml:14:28: rwnd: '3' has no unit"),
    ],
)  # fmt: skip
def test_an_invalid_setting_is_refused_at_its_place(
    bench: Bench, file: str, old: str, new: str, message: str
) -> None:
    text = {"config.yaml": CONFIG, "hosts/bench.yaml": TESTBED}.get(file, EXPERIMENT)
    assert old in text
    bench.write(file, text.replace(old, new, 1))
    try:
        found = bench.errors()
    except DefinitionError as error:  # the configuration is read before anything else
        found = str(error).replace(f"{bench.folder}/", "").splitlines()
    assert any(one.startswith(message) for one in found), found
    assert len(found) == len(set(found))


@pytest.mark.parametrize("release", ["eleven", "11.x", "", "11."])
def test_the_release_of_an_operating_system_must_be_a_number(bench: Bench, release: str) -> None:
    text = TESTBED.replace(
        "    os: linux\n    role: sender\n", f"    os: linux\n    release: '{release}'\n    role: sender\n"
    )
    bench.write("hosts/bench.yaml", text)
    assert bench.errors() == [
        f"hosts/bench.yaml:7:14: release: '{release}' is not a release; expected a number, such as 11"
    ]
