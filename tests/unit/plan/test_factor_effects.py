"""Factors whose levels give the same trials: one warning, which names the reason and its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from samovar.experiment import LoadOptions, load_experiment
from samovar.plan import make_plan
from samovar.recipes import Catalogue

ROOT = Path(__file__).parents[3]
CATALOGUE = Catalogue(ROOT / "templates")
TEXT = """\
experiment: study
testbed: TESTBED
path: {rate: 20Mbit, rtt: 20ms, buffer: 100packetsPATH}
duration: 20s
replicates: 6
captures: [{at: sender}]
loggers: [{logger: tcp-state, at: sender}]
figures: [design]
factors: FACTORS
traffic: TRAFFIC
"""
BULK = "{flow: bulk, generator: iperf3, from: sender, to: receiver}"
VOICE = "{flow: voice, generator: iperf3-udp, from: sender, to: receiver, rate: 1Mbit}"


def warnings(
    folder: Path,
    factors: str,
    traffic: str = BULK,
    path: str = "",
    testbed: str = "lab",
    overrides: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Plan the study above with some factors, and return its warnings with paths relative to the folder."""
    text = TEXT.replace("TESTBED", testbed).replace("PATH", path).replace("FACTORS", factors)
    (folder / "study.yaml").write_text(text.replace("TRAFFIC", traffic))
    options = LoadOptions(overrides=overrides or {})
    hosts = ROOT / "hosts" / f"{testbed}.yaml"
    plan = make_plan(load_experiment(folder / "study.yaml", CATALOGUE, hosts, options), CATALOGUE)
    return tuple(warning.replace(f"{folder}/", "") for warning in plan.warnings)


WARNINGS = {
    "cc of a host whose flow has its own cc": (
        "{cc: [newreno, cubic]}",
        f"[{BULK[:-1]}, cc: cubic}}]",
        "",
        "main: factor cc has no effect: newreno and cubic give the same trials, "
        "as flow 'bulk' has its own cc (study.yaml:10:75)",
    ),
    "cc of a host whose flow gets its cc from another factor": (
        "{cc: [newreno, cubic], traffic.bulk.cc: [cdg, cubic]}",
        f"[{BULK}]",
        "",
        "main: factor cc has no effect: newreno and cubic give the same trials, "
        "as flow 'bulk' has its own cc (study.yaml:9:50)",
    ),
    "two names of one congestion control": (
        "{cc: [reno, newreno, cubic]}",
        f"[{BULK}]",
        "",
        "main: cc reno and newreno give the same trials, "
        "as reno and newreno are the same congestion control (study.yaml:9:15)",
    ),
    "cc of a receiver": (
        "{cc: [{receiver: cubic}, {receiver: newreno}]}",
        f"[{BULK}]",
        "",
        "main: factor cc has no effect: cubic and newreno give the same trials, "
        "as no flow sends from dst (study.yaml:9:15)",
    ),
    "rwnd with UDP flows only": (
        "{rwnd: [100KB, 200KB]}",
        f"[{VOICE}]",
        "",
        "main: factor rwnd has no effect: 100KB and 200KB give the same trials, "
        "as flow 'voice' is not TCP (study.yaml:10:36)",
    ),
    "rwnd of a UDP flow": (
        "{traffic.voice.rwnd: [100KB, 200KB]}",
        f"[{VOICE}]",
        "",
        "main: factor traffic.voice.rwnd has no effect: 100KB and 200KB give the same trials, "
        "as flow 'voice' is not TCP (study.yaml:10:36)",
    ),
    "rwnd of a host whose flow has its own rwnd": (
        "{rwnd: [100KB, 200KB]}",
        f"[{BULK[:-1]}, rwnd: 150KB}}]",
        "",
        "main: factor rwnd has no effect: 100KB and 200KB give the same trials, "
        "as flow 'bulk' has its own rwnd (study.yaml:10:77)",
    ),
    "settings of TCP with UDP flows only": (
        "{tcp.sack: [on, off]}",
        f"[{VOICE}]",
        "",
        "main: factor tcp.sack has no effect: on and off give the same trials, "
        "as no TCP flow begins or ends at src (study.yaml:9:21) "
        "and no TCP flow begins or ends at dst (study.yaml:9:21)",
    ),
    "buffers of the same number of packets": (
        "{path.buffer: [1 BDP, 1.001 BDP, 2 BDP]}",
        f"[{BULK}]",
        "",
        "main: path.buffer 1 BDP and 1.001 BDP give the same trials, "
        "as pfifo counts packets, and both buffers are 33 packets (study.yaml:9:24)",
    ),
    "buffers that are equal at one of two rates": (
        "{path.rate: [1Mbit, 20Mbit], path.buffer: [1 BDP, 1.1 BDP]}",
        f"[{BULK}]",
        "",
        "main: path.buffer 1 BDP and 1.1 BDP give the same trials in 1 of 2 combinations of the other factors, "
        "e.g. where path.rate is 1Mbit, as pfifo counts packets, and both buffers are 2 packets (study.yaml:9:52)",
    ),
    "rtt of a path whose class has its own rtt": (
        "{path.rtt: [10ms, 30ms]}",
        f"[{BULK}]",
        ", classes: [{flow: bulk, rtt: 40ms}]",
        "main: factor path.rtt has no effect: 10ms and 30ms give the same trials, "
        "as flow 'bulk' has its rtt from a traffic class of the path (study.yaml:3:81)",
    ),
    "rtt of a path whose class gets its rtt from another factor": (
        "{path.rtt: [10ms, 30ms], path.classes.far.rtt: [40ms, 80ms]}",
        f"[{BULK}]",
        ", classes: [{name: far, flow: bulk, rtt: 40ms}]",
        "main: factor path.rtt has no effect: 10ms and 30ms give the same trials, "
        "as flow 'bulk' has its rtt from a traffic class of the path (study.yaml:9:57)",
    ),
    "rtt of a path whose class of addresses has its own rtt": (
        "{path.rtt: [10ms, 30ms]}",
        f"[{BULK}]",
        ", classes: [{name: x, from: 172.16.10.0/24, rtt: 40ms}]",
        "main: factor path.rtt has no effect: 10ms and 30ms give the same trials, "
        "as flow 'bulk' has its rtt from a traffic class of the path (study.yaml:3:100)",
    ),
    "loss of a path whose class has its own loss": (
        "{path.loss: [1%, 2%]}",
        f"[{BULK}]",
        ", classes: [{flow: bulk, loss: 3%}]",
        "main: factor path.loss has no effect: 1% and 2% give the same trials, "
        "as flow 'bulk' has its loss from a traffic class of the path (study.yaml:3:82)",
    ),
    "one value in two units": (
        "{path.target: [5ms, 0.005s]}",
        f"[{BULK}]",
        ", aqm: codel",
        "main: factor path.target has no effect: 5ms and 0.005s give the same trials, "
        "as target 5ms is the same as 0.005s (study.yaml:9:24)",
    ),
    "a stop after the ends of all flows": (
        "{stop.after: [30s, 40s]}",
        f"[{BULK[:-1]}, duration: 15s}}]",
        "",
        "main: factor stop.after has no effect: 30s and 40s give the same trials, "
        "as all flows end within 15s (study.yaml:10:81)",
    ),
    "a stop after the end of a flow that ends another": (
        "{stop.after: [30s, 40s]}",
        f"[{BULK[:-1]}, duration: 15s}}, {VOICE[:-1]}, until: bulk}}]",
        "",
        "main: factor stop.after has no effect: 30s and 40s give the same trials, "
        "as all flows end within 15s (study.yaml:10:81)",
    ),
    "durations beyond the stop": (
        "{traffic.bulk.duration: [20s, 40s]}",
        f"[{BULK}]\nstop: {{after: 10s}}",
        "",
        "main: factor traffic.bulk.duration has no effect: 20s and 40s give the same trials, "
        "as all traffic stops before the flow ends (study.yaml:11:15)",
    ),
    "durations of a late flow beyond the stop": (
        "{traffic.bulk.duration: [9s, 20s]}",
        f"[{BULK[:-1]}, start: 2s}}]\nstop: {{after: 10s}}",
        "",
        "main: factor traffic.bulk.duration has no effect: 9s and 20s give the same trials, "
        "as all traffic stops before the flow ends (study.yaml:11:15)",
    ),
    "only one of two factors without effect": (
        "{cc: [newreno, cubic], rwnd: [100KB, 200KB]}",
        f"[{BULK[:-1]}, cc: cubic}}]",
        "",
        "main: factor cc has no effect: newreno and cubic give the same trials, "
        "as flow 'bulk' has its own cc (study.yaml:10:75)",
    ),
    "two names of a flow's congestion control": (
        "{traffic.bulk.cc: [reno, newreno]}",
        f"[{BULK}]",
        "",
        "main: factor traffic.bulk.cc has no effect: reno and newreno give the same trials, "
        "as reno and newreno are the same congestion control (study.yaml:9:28)",
    ),
    "a parameter of a flow in two units": (
        "{traffic.bulk.length: [8KB, 8000B]}",
        f"[{BULK}]",
        "",
        "main: factor traffic.bulk.length has no effect: 8KB and 8000B give the same trials, "
        "as length 8KB is the same as 8000B (study.yaml:9:32)",
    ),
    "a setting of a host in two units": (
        "{shaper.rate: [8Mbit, 8000Kbit]}",
        f"[{BULK}]",
        "",
        "main: factor shaper.rate has no effect: 8Mbit and 8000Kbit give the same trials, "
        "as rate 8Mbit is the same as 8000Kbit (study.yaml:9:24)",
    ),
    "a parameter of a congestion control that no flow uses": (
        "{cc.backoff_beta: [512, 724]}",
        f"[{BULK[:-1]}, cc: cubic}}]\nsettings: {{cc: cdg}}",
        "",
        "main: factor cc.backoff_beta has no effect: 512 and 724 give the same trials, "
        "as no flow from src uses cdg (study.yaml:9:28)",
    ),
    "linked levels without effect": (
        "{home: [{cc: cubic, rwnd: 100KB, label: a}, {cc: newreno, rwnd: 100KB, label: b}]}",
        f"[{BULK[:-1]}, cc: cubic}}]",
        "",
        "main: factor home has no effect: a and b give the same trials, "
        "as flow 'bulk' has its own cc (study.yaml:10:75)",
    ),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_levels_that_give_the_same_trials_are_reported_with_the_reason(tmp_path: Path, name: str) -> None:
    factors, traffic, path, warning = WARNINGS[name]
    assert warnings(tmp_path, factors, traffic, path) == (warning,)


def test_equal_treatments_that_differ_in_several_factors_are_reported(tmp_path: Path) -> None:
    exclude = "exclude: [{cc: newreno, path.buffer: 1.001 BDP}, {cc: cubic, path.buffer: 1 BDP}]"
    factors = "{cc: [newreno, cubic], path.buffer: [1 BDP, 1.001 BDP]}"
    found = warnings(tmp_path, factors, f"[{BULK[:-1]}, cc: cubic}}]\n{exclude}")
    assert found[1:] == (
        "main: newreno 1 BDP and cubic 1.001 BDP give the same trial, as flow 'bulk' has its own cc "
        "(study.yaml:10:75) and pfifo counts packets, and both buffers are 33 packets",
    )


def test_a_warning_names_the_host_that_no_flow_passes(tmp_path: Path) -> None:
    one = BULK.replace("sender", "src1").replace("receiver", "dst1")
    found = warnings(tmp_path, "{txd: [{src2: 80}, {src2: 256}]}", f"[{one}]", testbed="dumbbell")
    assert [line for line in found if "factor" in line] == [
        "main: factor txd has no effect: 80 and 256 give the same trials, "
        "as no flow passes src2 (study.yaml:9:16)"
    ]


def test_a_warning_names_the_override_of_the_command_line_that_makes_a_factor_ineffective(
    tmp_path: Path,
) -> None:
    overrides = {"traffic.bulk.cc": "cubic"}
    assert warnings(tmp_path, "{cc: [newreno, cubic]}", f"[{BULK}]", overrides=overrides) == (
        "main: factor cc has no effect: newreno and cubic give the same trials, "
        "as flow 'bulk' has its own cc (--set traffic.bulk.cc=cubic)",
    )


@pytest.mark.parametrize(
    ("factors", "traffic", "path"),
    [
        # one of two flows takes the host's congestion control
        ("{cc: [newreno, cubic]}", f"[{BULK[:-1]}, cc: cubic}}, {BULK.replace('bulk', 'more')}]", ""),
        # a window applies to one of two flows
        ("{rwnd: [100KB, 200KB]}", f"[{BULK}, {VOICE}]", ""),
        # the class contains one of two flows
        (
            "{path.rtt: [10ms, 30ms]}",
            f"[{BULK}, {BULK.replace('bulk', 'more')}]",
            ", classes: [{flow: bulk, rtt: 40ms}]",
        ),
        # the class has the delay of the path
        ("{path.rtt: [10ms, 30ms]}", f"[{BULK}]", ", classes: [{flow: bulk, loss: 1%}]"),
        # the buffer depends on the RTT, which a class overrides
        (
            "{path.rtt: [10ms, 30ms], path.buffer: [1 BDP]}",
            f"[{BULK}]",
            ", classes: [{flow: bulk, rtt: 40ms}]",
        ),
        # the queue discipline counts bytes, and the buffers differ in bytes
        ("{path.buffer: [1 BDP, 1.001 BDP]}", f"[{BULK}]", ", aqm: bfifo"),
        # flows that end before the stop, or begin late, or have no end of their own
        ("{traffic.bulk.duration: [5s, 10s]}", f"[{BULK}]", ""),
        ("{traffic.bulk.duration: [5s, 10s]}", f"[{BULK}]\nstop: {{after: 8s}}", ""),
        ("{traffic.bulk.duration: [5s, 7s]}", f"[{BULK[:-1]}, start: 2s}}]\nstop: {{after: 8s}}", ""),
        ("{stop.after: [16s, 18s]}", f"[{BULK[:-1]}, start: 2s, duration: 15s}}]", ""),
        ("{stop.after: [15s, 16s]}", f"[{BULK[:-1]}, size: 10MB}}]", ""),
        # factors of a flow and of its hosts have an effect
        ("{traffic.bulk.cc: [newreno, cubic]}", f"[{BULK}]", ""),
        ("{traffic.bulk.rwnd: [100KB, 200KB]}", f"[{BULK}]", ""),
        ("{traffic.bulk.length: [8KB, 16KB]}", f"[{BULK}]", ""),
        ("{cc.backoff_beta: [512, 724]}", f"[{BULK}]\nsettings: {{cc: cdg}}", ""),
        ("{cc.backoff_beta: [512, 724]}", f"[{BULK[:-1]}, cc: cdg}}]\nsettings: {{cc: cdg}}", ""),
        ("{tcp.sack: [on, off]}", f"[{BULK}, {VOICE}]", ""),
        ("{offloads.tso: [on, off]}", f"[{VOICE}]", ""),
        ("{txd: [80, 256]}", f"[{VOICE}]", ""),
        ("{mtu: [{router: 1500}, {router: 600}]}", f"[{BULK}]", ""),
        # factors of the path have an effect
        ("{path.loss: [1%, 2%]}", f"[{BULK}]", ""),
        ("{path.loss: [1%, 2%]}", f"[{BULK}, {VOICE}]", ", classes: [{flow: bulk, loss: 3%}]"),
        (
            "{path.loss: [{down: 1%, up: 1%}, {down: 1%, up: 2%}]}",
            f"[{BULK}]",
            ", classes: [{flow: bulk, loss: 3%}]",
        ),
        ("{path.jitter: [1ms, 2ms]}", f"[{BULK}]", ""),
        ("{path.aqm: [pfifo, codel]}", f"[{BULK}]", ""),
        ("{path.target: [5ms, 10ms]}", f"[{BULK}]", ", aqm: codel"),
        ("{path.rtt: [10ms, 30ms]}", f"[{BULK}]", ", classes: [{name: x, from: 172.16.10.9/32, rtt: 40ms}]"),
    ],
)
def test_levels_that_give_different_trials_have_no_warning(
    tmp_path: Path, factors: str, traffic: str, path: str
) -> None:
    assert warnings(tmp_path, factors, traffic, path) == ()


@pytest.mark.parametrize("factor", ["path.rate: [10Mbit, 20Mbit]", "path.buffer: [10packets, 20packets]"])
def test_levels_of_adapters_in_a_lab_have_no_warning(tmp_path: Path, factor: str) -> None:
    assert warnings(tmp_path, f"{{{factor}}}", testbed="powerline", traffic=f"[{BULK}]") == ()
