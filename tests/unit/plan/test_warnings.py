"""Warnings of plans: each is given once, with the number of treatments that it applies to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from samovar.experiment import load_experiment
from samovar.plan import FlowPlan, HostPlan, PathPlan, Plan, Resolved, make_plan
from samovar.plan.trials import View
from samovar.plan.warning_checks import CHECKS
from samovar.recipes import Catalogue
from tests.unit.trials import RESOLVED, flow

ROOT = Path(__file__).parents[3]
CATALOGUE = Catalogue(ROOT / "templates")
TEXT = """\
experiment: study
testbed: lab
path: {rate: 8Mbit, rtt: 10ms, buffer: 50packets}
duration: 30s
replicates: 6
order: {kind: blocked, seed: 1}
factors: {cc: [newreno, cdg], rwnd: [50KB, 1MB]}
traffic: [{flow: bulk, generator: nuttcp, from: sender, to: receiver}]
captures: [{at: sender}]
loggers: [{logger: tcp-state, at: sender}]
figures: [design]
"""


def planned(folder: Path, *changes: tuple[str, str], testbed: str = "lab") -> Plan:
    """Plan the study above with some of its text changed."""
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "study.yaml").write_text(text)
    study = load_experiment(folder / "study.yaml", CATALOGUE, ROOT / "hosts" / f"{testbed}.yaml")
    return make_plan(study, CATALOGUE)


def test_a_sound_plan_has_no_warning(tmp_path: Path) -> None:
    assert planned(tmp_path).warnings == ()


@pytest.mark.parametrize("key", ["captures", "loggers", "figures"])
def test_an_empty_list_of_captures_loggers_or_figures_has_no_warning(tmp_path: Path, key: str) -> None:
    (line,) = [one for one in TEXT.splitlines() if one.startswith(key)]
    assert planned(tmp_path, (line, f"{key}: []")).warnings == ()


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (
            ("replicates: 6", "replicates: 1"),
            "main: 1 replicate; an interval of the median needs 3, a 95 % interval needs 6",
        ),
        (
            ("replicates: 6", "replicates: 5"),
            "main: 5 replicates give a 93.75 % interval of the median; a 95 % interval needs 6",
        ),
        (
            ("blocked", "sequential"),
            "main: order sequential; drift over time looks like an effect of the factor that changes least often",
        ),
        (
            ("1MB", "5KB"),
            "main: rwnd is below the path's bandwidth-delay product for 2 of 4 treatments, e.g. newreno 5KB: "
            "5KB against 10KB (8Mbit x 10ms), so flow 'bulk' reaches 4Mbit at most",
        ),
        (
            ("50packets", "50packets, classes: [{flow: bulk, rtt: 100ms}]"),
            "main: rwnd is below the path's bandwidth-delay product for 2 of 4 treatments, e.g. newreno 50KB: "
            "50KB against 100KB (8Mbit x 100ms), so flow 'bulk' reaches 4Mbit at most",
        ),
        (
            ("50packets", "1KB, aqm: bfifo"),
            "main: buffer is below one packet for all 4 treatments, e.g. newreno 50KB: "
            "1KB against 1514 bytes with the Ethernet header",
        ),
        (
            ("duration: 30s", "duration: 1s"),
            "main: duration is below 20 RTTs at a full buffer for all 4 treatments, e.g. newreno 50KB: "
            "1s of flow 'bulk' against 20 x 85ms",
        ),
        (
            ("{at: sender}", "{at: sender, snaplen: 68}"),
            "main: snaplen is too short for headers with options for all 4 treatments, e.g. newreno 50KB: "
            "68 bytes at src against 94 (14 Ethernet + 20 IPv4 + 60 TCP)",
        ),
        (
            ("from: sender, to: receiver", "from: receiver, to: sender"),
            "main: flow 'bulk' does not pass the bottleneck's queue",
        ),
        (
            ("to: receiver}]", "to: receiver, start: 40s}]\nstop: {after: 30s}"),
            "main: a flow never starts for all 4 treatments, e.g. newreno 50KB: 'bulk' would start at 40s, but all traffic ends at 30s",
        ),
        (
            ("{logger: tcp-state, at: sender}", "{logger: tcp-state, at: sender, interval: 40s}"),
            "main: a logger samples only once for all 4 treatments, e.g. newreno 50KB: "
            "tcp-info at src samples every 40s, but all traffic ends at 30s",
        ),
        (
            ("cdg]", "dctcp]"),
            "main: dctcp has no queue that marks packets for 2 of 4 treatments, e.g. dctcp 50KB: "
            "flow 'bulk' passes pfifo, through which dctcp behaves like newreno",
        ),
        (
            ("traffic:", "exclude: [{cc: cdg, rwnd: 50KB}, {cc: newreno, rwnd: 1MB}]\ntraffic:"),
            "main: cc and rwnd vary together, so their effects cannot be separated",
        ),
        (
            ("traffic:", "exclude: [{cc: cdg}]\ntraffic:"),
            "main: no treatment has cc cdg",
        ),
        (
            ("captures: [{at: sender}]\n", ""),
            "main: no captures; throughput, RTT and loss cannot be measured; "
            "write `captures: []` if none are intended",
        ),
        (
            ("loggers: [{logger: tcp-state, at: sender}]\n", ""),
            "main: no loggers; the state of TCP, such as cwnd, and of the queue cannot be measured; "
            "write `loggers: []` if none are intended",
        ),
        (
            ("figures: [design]\n", ""),
            "no figures; the report will draw nothing; write `figures: []` if none are intended",
        ),
    ],
)
def test_a_plan_with_one_weakness_has_one_warning(
    tmp_path: Path, change: tuple[str, str], warning: str
) -> None:
    assert planned(tmp_path, change).warnings == (warning,)


SET_WINDOW = ("factors: {cc: [newreno, cdg], rwnd: [50KB, 1MB]}", "settings: {rwnd: 50KB}")
ASYMMETRIC_PATH = "path: {rate: {down: 100Mbit, up: 1Mbit}, rtt: 100ms, buffer: 50packets}"


@pytest.mark.parametrize(
    "changes",
    [
        # the window is large enough for the rate of the direction in which the flow sends
        [
            ("path: {rate: 8Mbit, rtt: 10ms, buffer: 50packets}", ASYMMETRIC_PATH),
            ("sender, to: receiver", "receiver, to: sender"),
        ],
        # a window does not limit flows that are not TCP, or TCP flows with a lower rate than it allows
        [("8Mbit", "80Mbit"), ("generator: nuttcp", "generator: nuttcp, rate: 1Mbit"), SET_WINDOW],
        [("8Mbit", "80Mbit"), ("generator: nuttcp", "generator: iperf-udp, rate: 90Mbit"), SET_WINDOW],
        [("8Mbit", "80Mbit"), ("generator: nuttcp", "generator: ping, interval: 100ms"), SET_WINDOW],
        # a path without a delay has no bandwidth-delay product
        [("rtt: 10ms", "rtt: 0ms")],
        # a flow that is not TCP does not react to marks
        [
            ("cc: [newreno, cdg], rwnd: [50KB, 1MB]", "path.rtt: [10ms, 12ms]"),
            ("generator: nuttcp", "generator: iperf-udp"),
            ("replicates: 6", "settings: {cc: dctcp}\nreplicates: 6"),
        ],
        # the queue discipline marks packets
        [("cdg]", "dctcp]"), ("50packets", "50packets, aqm: fq_codel")],
        # window, socket buffers and duration suffice for the RTT of the flow's class
        [
            ("rtt: 10ms", "rtt: 2s"),
            (
                "50packets}",
                "50packets, classes: [{flow: bulk, rtt: 10ms}]}\nsettings: {buffers.send_max: 100KB}",
            ),
        ],
        # effects can be separated although one combination is excluded
        [("traffic:", "exclude: [{cc: cdg, rwnd: 50KB}]\ntraffic:")],
    ],
)
def test_a_plan_that_resembles_one_with_a_weakness_has_no_warning(
    tmp_path: Path, changes: Sequence[tuple[str, str]]
) -> None:
    assert planned(tmp_path, *changes).warnings == ()


def test_a_send_buffer_below_rwnd_has_a_warning_only_if_path_and_queue_hold_more_than_the_buffer() -> None:
    for send_max, has_warning in (("1MB", False), ("100KB", True)):  # the path holds 30 KB, its queue 82 KB
        host = _host("src", settings={"buffers": {"send_max": send_max}})
        found = [
            check.message for check in CHECKS if check.find(_with(hosts={**HOSTS, "src": host}), CATALOGUE)
        ]
        assert ("send buffer is below rwnd" in found) == has_warning


def test_one_way_delays_of_real_hosts_need_beacons(tmp_path: Path) -> None:
    metric = "expect: [{say: x, metric: owd_median_ms, below: 5}]\nreplicates: 6"
    message = (
        "expect: owd_median_ms needs captures at both ends of a flow and logger beacons at both ends of a flow, "
        "which no trial records; the scorecard will report no data"
    )
    lines = ("testbed: lab", "testbed: example-linux"), ("replicates: 6", metric)
    assert planned(tmp_path, *lines, testbed="example-linux").warnings == (message,)
    beacons = ("{logger: tcp-state, at: sender}", "{logger: beacons, at: [sender, receiver]}")
    captures = ("captures: [{at: sender}]", "captures: [{at: [sender, receiver]}]")
    assert planned(tmp_path, *lines, captures, beacons, testbed="example-linux").warnings == ()


EXPECTED_WARNINGS: Mapping[str, tuple[str, ...]] = {
    "spp-udp": ("1 replicate",),
    "netgear-buffer": (),
    "netgear-txd": (),
    "cdg-wlan": (),
    "cdg-wlan-direction": (),
    "insufficient-rwnd": ("1 replicate", "rwnd is below the path's bandwidth-delay product"),
}


@pytest.mark.parametrize("name", sorted(EXPECTED_WARNINGS))
def test_a_shipped_experiment_has_only_the_expected_warnings(name: str) -> None:
    study = load_experiment(ROOT / "experiments" / f"{name}.yaml", CATALOGUE)
    warnings = make_plan(study, CATALOGUE).warnings
    assert [one for one in warnings if not any(message in one for message in EXPECTED_WARNINGS[name])] == []
    assert all(any(message in one for one in warnings) for message in EXPECTED_WARNINGS[name])


NOT_IN_CHECKS = {
    "a factor has no effect, or levels give the same trials",
    "a figure, table or expectation needs data that no trial records",
    "a flow does not pass the bottleneck's queue",
    "no treatment has a level",
    "two factors vary together",
}
"""Warnings of the reference that do not come from CHECKS."""


def test_the_reference_lists_only_warnings_that_exist() -> None:
    page = (ROOT / "docs" / "reference" / "plan.md").read_text()
    lines = page.partition("## Warnings")[2].partition("\n## ")[0].splitlines()
    explained = {line[2:].partition(": ")[0] for line in lines if line.startswith("- ")}
    assert explained > NOT_IN_CHECKS
    assert explained - NOT_IN_CHECKS <= {check.message for check in CHECKS}


def test_a_warning_about_the_only_treatment_has_no_count_of_treatments(tmp_path: Path) -> None:
    change = ("factors: {cc: [newreno, cdg], rwnd: [50KB, 1MB]}", "factors: {rwnd: [2GB]}")
    assert planned(tmp_path, change).warnings == (
        "main: rwnd is beyond TCP's largest window: 2GB against 1.074GB",
    )


def _host(name: str, **values: Any) -> HostPlan:
    return RESOLVED.hosts[name].model_copy(update=values)


def _with(**values: Any) -> Resolved:
    return RESOLVED.model_copy(update=values)


def _path(**down: Any) -> PathPlan:
    assert RESOLVED.path is not None
    return RESOLVED.path.model_copy(update={"down": RESOLVED.path.down.model_copy(update=down)})


def _flow(**values: Any) -> FlowPlan:
    return flow().model_copy(update=values)


IPV6_ADDRESSES = {"from_address": "2001:db8::1", "to_address": "2001:db8::2"}
HOSTS = RESOLVED.hosts


@pytest.mark.parametrize(
    ("resolved", "message"),
    [
        (_with(flows=(_flow(rwnd_bytes=20_000),)), "rwnd is below the path's bandwidth-delay product"),
        (
            _with(path=_path(rate_bps=10**10)),
            "rwnd is below the path's bandwidth-delay product: 10MB against 25MB",
        ),
        (
            _with(flows=(_flow(rwnd_bytes=1_119),)),
            "rwnd is below two segments: 1.119KB against 2 x 560 bytes",
        ),
        (
            _with(hosts={**HOSTS, "dst": _host("dst", rwnd_bytes=2**30)}),
            "rwnd is beyond TCP's largest window: 1.074GB",
        ),
        (
            _with(path=_path(buffer_packets=20_000)),
            "duration is below 20 RTTs at a full buffer: 6s of flow 'bulk'",
        ),
        (
            _with(mtu_bytes=9000),
            "duration is below 20 RTTs at a full buffer: 6s of flow 'bulk' against 20 x 842ms",
        ),
        (
            _with(hosts={**HOSTS, "src": _host("src", mtu_bytes=9000)}),
            "duration is below 20 RTTs at a full buffer",
        ),
        (
            _with(duration_s=2.0),
            "a flow never starts: 'late' would start at 2.5s, but all traffic ends at 2s",
        ),
        (
            _with(duration_s=0.01),
            "a logger samples only once: tcp-info at src samples every 10ms, but all traffic ends at 10ms",
        ),
        (
            _with(hosts={**HOSTS, "src": _host("src", cc="dctcp")}),
            "dctcp has no queue that marks packets: flow 'bulk'",
        ),
        (
            _with(hosts={**HOSTS, "src": _host("src", settings={"buffers": {"send_max": "50KB"}})}),
            "send buffer is below rwnd: send_max 50KB at src against rwnd 10MB",
        ),
        (
            _with(path=_path(rate_bps=10**11), flows=(_flow(rwnd_bytes=10**8),)),
            "send buffer is below rwnd: send_max 33.6MB at src against rwnd 100MB",  # the default of the recipe
        ),
        (_with(path=_path(buffer_packets=None, buffer_bytes=600)), "buffer is below one packet"),
        (
            _with(flows=(_flow(**IPV6_ADDRESSES),)),
            "snaplen is too short for headers with options: 96 bytes at src against 114 (14 Ethernet + 40 IPv6",
        ),
        (_with(flows=(_flow(**IPV6_ADDRESSES),)), "mtu is below the minimum of IPv6: 600 against 1280 bytes"),
    ],
)
def test_a_check_reports_a_weakness_with_the_compared_values(resolved: Resolved, message: str) -> None:
    found = {
        f"{check.message}: {one}": check.view
        for check in CHECKS
        if (one := check.find(resolved, CATALOGUE)) is not None
    }
    (view,) = (view for one, view in found.items() if one.startswith(message))
    assert _viewed(view, resolved) != _viewed(view, RESOLVED), (
        "treatments that are equal in the view of a check share its result"
    )


def _viewed(view: View, resolved: Resolved) -> list[Hashable]:
    """Return the values of a treatment that a check's view contains."""
    components: Mapping[str, list[Any]] = {
        "run": [resolved],
        "path": [resolved.path],
        "hosts": [*resolved.hosts.values()],
        **{name: [getattr(resolved, name)] for name in ("flows", "captures", "loggers")},
    }
    return [values(one) if values else one for name, values in view.items() for one in components[name]]


def test_the_view_of_the_check_of_dctcp_contains_the_queue_discipline() -> None:
    (check,) = (check for check in CHECKS if check.message.startswith("dctcp"))
    hosts = {**HOSTS, "src": _host("src", cc="dctcp")}
    marking = _with(hosts=hosts, path=_path(aqm="fq_codel"))
    assert check.find(marking, CATALOGUE) is None
    assert _viewed(check.view, marking) != _viewed(check.view, _with(hosts=hosts))


def test_no_check_reports_a_weakness_of_the_sample_trial() -> None:
    assert [check.message for check in CHECKS if check.find(RESOLVED, CATALOGUE) is not None] == []


def test_a_check_runs_once_for_treatments_that_are_equal_in_its_view(tmp_path: Path) -> None:
    windows = ", ".join(f"{size}KB" for size in range(100, 140))
    plan = planned(tmp_path, ("[50KB, 1MB]", f"[{windows}]"))
    runs = {check.message: len(plan.groups(check.view)) for check in CHECKS}
    assert runs["rwnd is below the path's bandwidth-delay product"] == 40
    assert runs["snaplen is too short for headers with options"] == runs["buffer is below one packet"] == 1


OUTPUTS = """\
expect:
  - {say: a, metric: loss_share, below: 1}
  - {say: b, metric: queue_max_packets, below: 9}
  - {say: c, metric: cwnd_median_packets, below: 9}
  - {say: d, metric: throughput_bps, above: 1}
figures: [rtt-cdf, jitter-cdf, trial-time-series, {figure: queue-time, part: main}]
tables: [{table: crossed, metric: owd_median_ms, rows: cc, columns: rwnd}, overhead, buffer-estimates]
"""


@pytest.mark.parametrize(
    ("captures", "loggers", "outputs_without_data"),
    [
        ("[{at: sender}, {at: receiver}]", "[{logger: queue, at: router}, {logger: tcp-info, at: sender}]", ["crossed"]),
        ("[{at: sender}, {at: receiver}]", "[]", ["queue_max_packets", "cwnd_median_packets", "queue-time", "crossed", "buffer-estimates"]),
        ("[{at: sender}]", "[{logger: queue, at: router}, {logger: tcp-info, at: receiver}]", ["loss_share", "cwnd_median_packets", "jitter-cdf", "crossed"]),
        ("[{at: receiver}]", "[{logger: queue, at: router}]", ["loss_share", "cwnd_median_packets", "rtt-cdf", "jitter-cdf", "crossed"]),
        ("[]", "[{logger: queue, at: router}]", ["loss_share", "cwnd_median_packets", "throughput_bps", "rtt-cdf", "jitter-cdf", "crossed"]),
    ],
)  # fmt: skip
def test_outputs_that_need_data_that_no_trial_records_have_a_warning(
    tmp_path: Path, captures: str, loggers: str, outputs_without_data: list[str]
) -> None:
    head, _, _ = TEXT.partition("captures:")
    text = f"{head}captures: {captures}\nloggers: {loggers}\n{OUTPUTS}"
    (tmp_path / "study.yaml").write_text(text)
    study = load_experiment(tmp_path / "study.yaml", CATALOGUE, ROOT / "hosts" / "lab.yaml")
    plan = make_plan(study, CATALOGUE)
    missing_data = [one for one in plan.warnings if "which no trial records" in one]
    assert [one.split(" needs ")[0].split()[-1] for one in missing_data] == outputs_without_data


def test_a_warning_names_the_missing_traces_and_the_consequence(tmp_path: Path) -> None:
    text = TEXT.replace("design", "queue-time") + "expect: [{say: a, metric: loss_share, below: 1}]\n"
    (tmp_path / "study.yaml").write_text(text)
    study = load_experiment(tmp_path / "study.yaml", CATALOGUE, ROOT / "hosts" / "lab.yaml")
    plan = make_plan(study, CATALOGUE)
    assert plan.warnings[-2:] == (
        "expect: loss_share needs captures at both ends of a flow, which no trial records; the scorecard will report no data",
        "figure queue-time needs logger queue at the bottleneck's router, which no trial records; the report will have a note in its place",
    )
