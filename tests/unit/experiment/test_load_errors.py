"""Errors in experiments and testbeds are reported at their place, with the expected messages.

The cases are in test_load_errors.yaml: changes of the valid files below, and the messages for each.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from samovar.errors import DefinitionError
from samovar.experiment import load_experiment, load_testbed
from samovar.experiment.keys import ParameterInfo
from samovar.plan import make_plan

TESTBED = """\
testbed: lab
lab: {}
hosts:
  src:
    os: linux
    role: sender
    address: 10.64.0.11
    interfaces: {eth1: {address: 172.16.10.2/24, link: left}}
  rtr:
    os: linux
    role: router
    address: 10.64.0.12
    interfaces:
      eth1: {address: 172.16.10.1/24, link: left}
      eth2: {address: 172.16.11.1/24, link: right}
  dst:
    os: linux
    role: receiver
    address: 10.64.0.13
    interfaces: {eth1: {address: 172.16.11.2/24, link: right}}
  old:
    os: freebsd
    role: sender
    address: 10.64.0.14
    interfaces: {em0: {address: 172.16.10.9/24, link: left}}
  eye: {os: linux, role: observer, address: 10.64.0.15}
  far:
    os: linux
    role: receiver
    address: 10.64.0.16
    interfaces: {eth1: {address: 172.16.12.2/24, link: island}}
bottleneck: {router: rtr, from: eth1, to: eth2}
"""

EXPERIMENT = """\
experiment: study
title: A study
testbed: lab
path: {rate: 40Mbit, rtt: 2ms, buffer: 546packets}
duration: 10s
replicates: 2
order: {kind: blocked, seed: 1}
traffic:
  - {flow: bulk, generator: nuttcp, from: sender, to: receiver}
captures: [{at: sender, snaplen: 96}]
loggers: [{logger: queue, at: router, interval: 5ms}]
parts:
  window:
    factors: {cc: [newreno, cdg], rwnd: [50KB, 1MB]}
figures: [{figure: rtt-cdf, part: window}]
expect:
  - {say: It is short, metric: rtt_median_ms, part: window, where: {cc: cdg}, below: 20}
profiles:
  quick: {replicates: 1}
"""


def parameter(type_: str, choices: tuple[str, ...] = (), least: str | None = None) -> ParameterInfo:
    return ParameterInfo.model_construct(type=type_, description="A parameter.", choices=choices, least=least)


class Recipes:
    """A small catalogue whose names do not change when the project gains recipes."""

    KNOWN: Mapping[tuple[str, str], Mapping[str, Mapping[str, ParameterInfo]]] = {
        ("setting", "linux"): {
            "cc": {},
            "rwnd": {},
            "mtu": {},
            "txd": {},
            "tcp": {
                "sack": parameter("switch"),
                "ecn": parameter("choice", choices=("off", "on", "accept")),
                "delack": parameter("duration"),
            },
        },
        ("setting", "freebsd"): {"cc": {}, "rwnd": {}, "mtu": {}},
        ("aqm", "linux"): {
            "pfifo": {"buffer_packets": parameter("integer")},
            "bfifo": {"buffer_bytes": parameter("integer")},
            "codel": {"target": parameter("duration")},
        },
        ("generator", "linux"): {
            "nuttcp": {"length": parameter("size")},
            "iperf3": {
                "streams": parameter("integer"),
                "cc": parameter("name"),
                "dscp": parameter("integer"),
            },
        },
        ("generator", "freebsd"): {"iperf3": {}},
        ("logger", "linux"): {"queue": {"interval_s": parameter("duration", least="1ms")}, "tcp-info": {}},
        ("logger", "freebsd"): {"siftr": {"packets_per_line": parameter("integer")}},
    }
    RECORDED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
        "linux": {"queue": ("queue",), "tcp-state": ("tcp-info",)},
        "freebsd": {"tcp-state": ("siftr",)},
    }

    def names(self, kind: str, os: str) -> frozenset[str]:
        return frozenset(self.KNOWN.get((kind, os), {}))

    def parameters(self, kind: str, name: str, os: str) -> Mapping[str, ParameterInfo] | None:
        return self.KNOWN.get((kind, os), {}).get(name)

    def transport(self, generator: str, os: str) -> str:
        return "udp" if generator == "ping" else "tcp"

    def ports(self, generator: str, os: str) -> tuple[int, ...]:
        return (0, 2000) if generator == "nuttcp" else (0,)

    def change(self, name: str, os: str) -> str:
        return "none"

    def quantities(self, os: str) -> Mapping[str, tuple[str, ...]]:
        return self.RECORDED.get(os, {})


CASES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def apply_changes(text: str, changes: Mapping[str, str]) -> str:
    """Return the text with each change made once."""
    for old, new in changes.items():
        assert old in text, f"the valid file does not contain {old!r}"
        text = text.replace(old, new, 1)
    return text


def errors(folder: Path, experiment: str, testbed: str = TESTBED) -> list[str]:
    """Return the messages for an experiment and its testbed, with paths relative to the folder.

    The plan is made as well, because it checks formulas and windows in each treatment.
    """
    for name, text in (("experiments/study.yaml", experiment), ("hosts/lab.yaml", testbed)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(DefinitionError) as caught:
        make_plan(load_experiment(folder / "experiments/study.yaml", Recipes()), Recipes())
    return str(caught.value).replace(f"{folder}/", "").splitlines()


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["error"]))
def test_an_error_is_reported_at_its_place_in_one_sentence(case: Mapping[str, Any], tmp_path: Path) -> None:
    experiment = apply_changes(EXPERIMENT, case.get("experiment", {}))
    testbed = apply_changes(TESTBED, case.get("testbed", {}))
    assert errors(tmp_path, experiment, testbed) == case["messages"]


def test_the_files_without_changes_are_valid(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(TESTBED, encoding="utf-8")
    (tmp_path / "study.yaml").write_text(EXPERIMENT, encoding="utf-8")
    testbed = load_testbed(tmp_path / "lab.yaml")
    experiment = load_experiment(tmp_path / "study.yaml", Recipes(), testbed)
    assert experiment.experiment.name == "study"


def update_expected_messages() -> None:
    """Write the current messages into the YAML file: `python -m tests.unit.experiment.test_load_errors`."""
    pins = Path(__file__).with_suffix(".yaml")
    header, *texts = re.split(r"^(?=- error: )", pins.read_text(encoding="utf-8"), flags=re.MULTILINE)
    with TemporaryDirectory() as folder:
        for index, case in enumerate(CASES):
            experiment = apply_changes(EXPERIMENT, case.get("experiment", {}))
            messages = errors(Path(folder), experiment, apply_changes(TESTBED, case.get("testbed", {})))
            lines = yaml.safe_dump(messages, allow_unicode=True, width=10**6).replace("\n- ", "\n  - ")
            texts[index] = texts[index].partition("  messages:\n")[0] + f"  messages:\n  {lines}\n"
    pins.write_text(header + "".join(texts)[:-1], encoding="utf-8")


if __name__ == "__main__":
    update_expected_messages()
