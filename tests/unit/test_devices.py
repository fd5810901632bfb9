"""Testbeds whose bottleneck is the device of a link: the device's keys, and experiments that override them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from samovar.experiment import explain_key, load_experiment
from samovar.plan import PathPlan, Plan, make_plan
from samovar.recipes import Catalogue
from tests.unit.trials import PATH

ROOT = Path(__file__).parents[2]
CATALOGUE = Catalogue(ROOT / "templates")
TEXT = """\
experiment: study
testbed: powerline
duration: 10s
traffic: [{flow: there, generator: iperf3, from: sender, to: receiver}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "experiments").mkdir()
    return tmp_path / "experiments"


def plan_of(folder: Path, text: str) -> Plan:
    path = folder / "study.yaml"
    path.write_text(TEXT + text)
    study = load_experiment(path, CATALOGUE, ROOT / "hosts" / "powerline.yaml")
    return make_plan(study, CATALOGUE)


def paths(folder: Path, text: str) -> list[PathPlan]:
    found = [trial.resolved.path for trial in plan_of(folder, text).trials]
    return [path for path in found if path is not None]


def test_an_experiment_without_a_path_has_the_device_of_the_testbed(folder: Path) -> None:
    (path,) = paths(folder, "")
    assert (path.link, path.router, path.rtt_s) == ("powerline", "", 0.004)
    assert [(one.rate_bps, one.buffer_packets, one.delay_s) for one in (path.down, path.up)] == [
        (40_000_000, 2720, 0.002)
    ] * 2


def test_the_path_of_an_experiment_overrides_the_device_of_the_testbed(folder: Path) -> None:
    (path,) = paths(
        folder,
        "path: {buffer: 9packets, rtt: 6ms, medium: duplex, flow_control: off, drift: 5%, access: 600us, burst: 3ms}\n",
    )
    assert path.device is not None
    assert (path.down.rate_bps, path.up.buffer_packets, path.rtt_s) == (40_000_000, 9, 0.006)
    assert (path.device.medium, path.device.flow_control, path.device.drift) == ("duplex", False, 0.05)
    assert path.device.pause_quanta == 65535
    assert (path.device.access_s, path.device.burst_s) == (0.0006, 0.003)


def test_a_direction_that_an_experiment_does_not_set_has_the_device_s_value(folder: Path) -> None:
    (path,) = paths(folder, "path: {rate: {down: 10Mbit}, buffer: {up: 9packets}}\n")
    assert (path.down.rate_bps, path.up.rate_bps) == (10_000_000, 40_000_000)
    assert (path.down.buffer_packets, path.up.buffer_packets) == (2720, 9)


def test_a_device_s_rate_and_parameters_may_be_factors_and_formulas_use_their_levels(folder: Path) -> None:
    text = (
        "path: {buffer: 10 BDP}\nfactors: {path.rate: [12Mbit, 24Mbit], path.flow_control: ['on', 'off']}\n"
    )
    found = paths(folder, text)
    # 12 Mbit/s x 4 ms are 6000 bytes, four packets of 1500.
    assert {(path.down.rate_bps, path.up.rate_bps, path.down.buffer_packets) for path in found} == {
        (12_000_000, 12_000_000, 40),
        (24_000_000, 24_000_000, 80),
    }
    assert {path.device.flow_control for path in found if path.device} == {True, False}


def test_a_flow_in_either_direction_passes_the_queue_of_the_device(folder: Path) -> None:
    back = "traffic: [{flow: back, generator: iperf3, from: receiver, to: sender}]\n"
    (folder / "study.yaml").write_text(TEXT.partition("traffic:")[0] + back)
    study = load_experiment(folder / "study.yaml", CATALOGUE, ROOT / "hosts" / "powerline.yaml")
    warnings = make_plan(study, CATALOGUE).warnings
    assert not [warning for warning in warnings if "bottleneck's queue" in warning]


def test_a_router_s_path_is_written_without_the_keys_of_devices() -> None:
    assert {"link", "device"} & PATH.as_json().keys() == set()
    assert PathPlan.model_validate(PATH.as_json()) == PATH


def test_a_device_s_path_is_read_back_as_it_was_written(folder: Path) -> None:
    (path,) = paths(folder, "")
    assert PathPlan.model_validate(path.as_json()) == path


def test_parameters_of_a_device_can_be_explained(folder: Path) -> None:
    plan_of(folder, "path: {flow_control: off}\n")
    study = load_experiment(folder / "study.yaml", CATALOGUE, ROOT / "hosts" / "powerline.yaml")
    (found,) = explain_key(study, CATALOGUE, "path.flow_control")
    assert [one.text for one in found.values] == ["off", "on", "off"]


def test_levels_of_a_device_outside_a_lab_are_reported_as_without_effect(
    tmp_path: Path, folder: Path
) -> None:
    text = (ROOT / "hosts" / "powerline.yaml").read_text()
    (tmp_path / "powerline.yaml").write_text(re.sub(r"(?m)^lab: .*\n", "", text))
    (folder / "study.yaml").write_text(
        TEXT + "factors: {path.buffer: [100packets, 50packets], mtu: [600, 1500]}\n"
    )
    warnings = {
        lab: " ".join(make_plan(load_experiment(folder / "study.yaml", CATALOGUE, file), CATALOGUE).warnings)
        for lab, file in ((True, ROOT / "hosts" / "powerline.yaml"), (False, tmp_path / "powerline.yaml"))
    }
    message = (
        "factor path.buffer has no effect: 100packets and 50packets give the same trials, as samovar cannot "
    )
    assert message + "configure the adapters of link 'powerline', which are not in a lab" in warnings[False]
    assert "no effect" not in warnings[True]
