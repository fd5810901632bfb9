"""Path calibration: the output of its scripts is read, and rate, buffer, delay and losses are checked."""

from __future__ import annotations

import json
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from samovar.campaign.availability.requirements import host_needs
from samovar.campaign.calibration import Calibration
from samovar.campaign.calibration.path_calibration import NO_ENDPOINTS
from samovar.campaign.context import CampaignContext
from samovar.campaign.policy import Policy
from samovar.campaign.verdict import DirectionMeasurement, check_direction, parse_measurement
from samovar.campaign.verdict.path_checks import plausible_losses
from samovar.events import silent
from samovar.hosts import Sessions
from samovar.plan import DirectionPlan, PathPlan
from samovar.recipes import (
    Catalogue,
    TrialScripts,
    calibration_needs,
    loss_states,
    plan_probe,
    render_calibration,
    sampling_s,
)
from tests.unit.campaign.answering_hosts import AnsweringSessions
from tests.unit.plan_values import plan_of, trial
from tests.unit.trials import RESOLVED, TRIAL

ROOT = Path(__file__).parents[3]
CATALOGUE = Catalogue(ROOT / "templates")
DOWN = DirectionPlan(interface="eth2", rate_bps=10_000_000, delay_s=0.02, aqm="pfifo", buffer_packets=60)
PATH = PathPlan(router="rtr", rtt_s=0.04, down=DOWN, up=DirectionPlan(interface="eth1", delay_s=0.02))
PROBE = plan_probe(PATH, DOWN, 1500, paced_packets=1000)
FRAME_S = 1514 * 8 / 10e6
QUEUE_HEAD = "t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes,sent_packets,drops,overlimits\n"


def measurement(
    *,
    frame_s: float = FRAME_S,
    held: int = 60,
    passing: int = 40,
    rtt_ms: float = 40.2,
    lost: frozenset[int] = frozenset(),
    qdisc: str = "x",
) -> DirectionMeasurement:
    """Make the output of calibration scripts on a path with these properties, and parse it."""
    pings = "".join(f"64 bytes from 1.2.3.4: icmp_seq={n} ttl=63 time={rtt_ms} ms\n" for n in range(2, 31))
    first = "64 bytes from 1.2.3.4: icmp_seq=1 ttl=63 time=900 ms\n"
    sent = f"{first}{pings}sent burst 615 0.2\nsent paced 1000 0.3\nsent end 5 0.1\n"
    # The sender's clock is seven seconds behind, and packets reach the queue four times as fast as they leave it.
    leave_ns = [round(n * frame_s * 1e9) for n in range(200)]
    queued_ns = [max(leave_ns[n] // 4, leave_ns[max(0, n - passing)]) for n in range(200)]
    burst = "".join(f"burst {n} {queued_ns[n] - 7 * 10**9} {leave_ns[n]} 1472\n" for n in range(200))
    paced = "".join(f"paced {n} {10**10 + n} {10**10 + n} 64\n" for n in range(1000) if n not in lost)
    rows = ((1, "1:", 99), (2, "10:", 10), (3, "10:", held), (4, "10:", 0))
    queue = "".join(f"{t},eth2,{qdisc},{handle},root,{n * 1514},{n},0,0,0,0\n" for t, handle, n in rows)
    other = "5,eth1,x,10:,root,1000000,700,0,0,0,0\n"
    return parse_measurement(sent, burst + paced, QUEUE_HEAD + queue + other, "eth2", 5000)


def failures(result: DirectionMeasurement, *, fills: bool = True) -> list[str]:
    return [c.reason for c in check_direction(PATH, DOWN, PROBE, result, fills=fills) if not c.ok]


def test_a_measurement_is_read_from_the_output_of_the_calibration_scripts() -> None:
    result = measurement(lost=frozenset({3, 4, 5, 90}))
    assert result.base_rtt_s == pytest.approx(0.0402)
    assert len(result.round_trips_s) == 29, "the first one is left out: it may have waited for ARP"
    assert result.rate_bps == pytest.approx(10e6, rel=1e-4)
    assert (result.sampled_packets, result.sampled_bytes) == (60, 90_840)
    assert (result.sent_paced, result.lost) == (1000, 4)
    assert result.mean_loss_burst_packets == 2


def test_the_longest_queue_is_derived_from_delays_although_the_clocks_differ() -> None:
    assert measurement(held=3, passing=60).in_flight_packets == 60
    assert failures(measurement(held=3, passing=60)) == []
    assert failures(measurement(held=60, passing=63)) == [], "the upper bound applies to the samples alone"
    assert failures(measurement(held=3, passing=50)) == [
        "buffer at eth2 at rtr: requested 60 packets ± 1 packet, observed 10 packets sampled, 50 packets in flight"
    ]


def test_a_path_with_the_requested_values_passes_every_check() -> None:
    assert failures(measurement()) == []


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (
            measurement(frame_s=FRAME_S * 1.03),
            "rate at eth2 at rtr: requested 10 Mbit/s ± 2%, observed 9.709 Mbit/s",
        ),
        (
            measurement(held=62),
            "buffer at eth2 at rtr: requested 60 packets ± 1 packet, observed 62 packets sampled, 40 packets in flight",
        ),
        (
            measurement(held=58),
            "buffer at eth2 at rtr: requested 60 packets ± 1 packet, observed 58 packets sampled, 40 packets in flight",
        ),
        (measurement(rtt_ms=43.5), "base RTT at rtr: requested 40 ms ± 3 ms, observed 43.50 ms"),
        (measurement(lost=frozenset({7})), "loss towards eth2 at rtr: requested 0.0000%, observed 1 of 1000"),
    ],
)
def test_a_deviation_is_reported_with_both_values(result: DirectionMeasurement, reason: str) -> None:
    assert failures(result) == [reason]


@pytest.mark.parametrize(
    ("result", "verdicts"),
    [
        (measurement(frame_s=FRAME_S / 1.03, rtt_ms=50), {"rate at eth2": "suspect", "base RTT": "suspect"}),
        (measurement(frame_s=FRAME_S / 1.11, rtt_ms=56), {"rate at eth2": "invalid", "base RTT": "invalid"}),
    ],
)
def test_a_rate_or_delay_that_is_far_off_makes_a_path_invalid(
    result: DirectionMeasurement, verdicts: dict[str, str]
) -> None:
    checks = check_direction(PATH, DOWN, PROBE, result, fills=True)
    assert {check.name: check.verdict for check in checks if not check.ok} == verdicts


def test_jitter_of_either_direction_widens_the_tolerance_of_the_delay_and_hides_the_queue() -> None:
    result = measurement(held=60, passing=90, rtt_ms=50.9)
    assert failures(result) == ["base RTT at rtr: requested 40 ms ± 3 ms, observed 50.90 ms"]
    jittery = DOWN.model_copy(update={"jitter_s": 0.004})
    path = PATH.model_copy(update={"down": jittery, "up": PATH.up.model_copy(update={"jitter_s": 0.004})})
    rtt, _, buffer, _ = check_direction(path, jittery, PROBE, result, fills=True)
    assert (rtt.ok, rtt.tolerance, buffer.observed) == (True, "± 11 ms", "60 packets sampled")
    reordered = DOWN.model_copy(update={"reorder": 0.01})
    _, _, buffer, _ = check_direction(PATH, reordered, PROBE, result, fills=True)
    assert buffer.observed == "60 packets sampled"


@pytest.mark.parametrize(
    ("buffer_bytes", "ok"), [(90_840, True), (92_300, True), (95_000, False), (89_000, False)]
)
def test_a_buffer_in_bytes_is_compared_with_the_bytes_of_the_longest_queue(
    buffer_bytes: int, ok: bool
) -> None:
    direction = DOWN.model_copy(update={"buffer_packets": None, "buffer_bytes": buffer_bytes})
    _, _, check, _ = check_direction(PATH, direction, PROBE, measurement(), fills=True)
    assert (check.requested, check.observed, check.ok) == (
        f"{buffer_bytes} B",
        f"90840 B sampled, {40 * 1514} B in flight",
        ok,
    )


def test_the_queue_of_an_aqm_that_drops_early_may_be_shorter_than_its_buffer_but_not_longer() -> None:
    assert failures(measurement(held=12), fills=False) == []
    assert failures(measurement(held=62), fills=False) == [
        "buffer at eth2 at rtr: requested at most 60 packets ± 1 packet, observed 62 packets sampled, 40 packets in flight"
    ]


def test_a_probe_of_which_no_packet_arrived_fails_every_check() -> None:
    result = parse_measurement("", "", QUEUE_HEAD, "eth2", 5000)
    assert [text.split(": ")[1] for text in failures(result)] == [
        "requested 40 ms, observed no answer",
        "requested 10 Mbit/s, observed no packets arrived",
        "requested 60 packets, observed nothing",
        "requested 0.0000%, observed nothing",
    ]


@pytest.mark.parametrize(
    ("lost", "sent", "share", "expected"),
    [
        (20, 1000, 0.02, True),
        (36, 1000, 0.02, True),
        (37, 1000, 0.02, False),
        (7, 1000, 0.02, True),
        (6, 1000, 0.02, False),
        (0, 1000, 0.0, True),
        (1, 1000, 0.0, False),
        (10, 10, 1.0, True),
        (9, 10, 1.0, False),
        (2, 2, 0.03, True),
        (2, 2, 0.02, False),
    ],
)
def test_losses_are_plausible_within_the_binomial_interval(
    lost: int, sent: int, share: float, expected: bool
) -> None:
    assert plausible_losses(lost, sent, share) is expected


def test_bursts_of_the_requested_losses_are_refused_in_at_most_5_of_500_probes() -> None:
    draw, states = random.Random(7), loss_states(0.05, 4.0)
    assert states is not None
    refused = sum(not plausible_losses(_gilbert(draw, states, 2000), 2000, 0.05, states) for _ in range(500))
    assert refused <= 5


def _gilbert(draw: random.Random, states: tuple[float, float], packets: int) -> int:
    """Simulate netem's Gilbert model of losses in bursts; return the number of lost packets."""
    bad, lost = False, 0
    for _ in range(packets):
        lost += bad
        bad = draw.random() >= states[1] if bad else draw.random() < states[0]
    return lost


def test_a_probe_overfills_the_buffer_and_leaves_it_time_to_drain() -> None:
    assert PROBE.frame_bytes == 1514
    assert PROBE.burst_gap_s == pytest.approx(FRAME_S / 4)
    assert PROBE.burst_packets * (1 - 1 / 4) > 60
    assert PROBE.drain_s > 60 * FRAME_S + PATH.rtt_s
    assert PROBE.paced_gap_s > 106 * 8 / 10e6
    assert PROBE.duration_s < 5


def test_a_direction_without_rate_is_probed_for_loss_and_delay_only() -> None:
    probe = plan_probe(PATH, PATH.up, None)
    assert (probe.burst_packets, probe.drain_s, probe.paced_packets) == (0, 0.0, 500)


@pytest.mark.parametrize(
    "systems", [("linux", "linux"), ("freebsd-14", "freebsd-14"), ("linux", "freebsd-13")]
)
@pytest.mark.parametrize("name", ["receive", "send", "collect"])
def test_the_calibration_scripts_pass_the_syntax_check_of_the_shell(
    name: str, systems: tuple[str, str]
) -> None:
    text = getattr(render_calibration(PROBE, CATALOGUE, systems, "172.16.11.2", 5300), name)
    done = subprocess.run(["dash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def needs(sender: str, receiver: str) -> frozenset[str]:
    """Return the programs that the sender of a trial needs to calibrate the path, if the ends have these systems."""
    hosts = {
        name: host.model_copy(update={"os": {"src": sender, "dst": receiver}.get(name, "linux")})
        for name, host in RESOLVED.hosts.items()
    }
    return calibration_needs(RESOLVED.model_copy(update={"hosts": hosts}), "src", CATALOGUE)


def test_ends_of_different_systems_are_measured_with_programs_that_both_have() -> None:
    assert needs("linux", "linux") == {"ping", "python3"}
    assert needs("freebsd", "freebsd") == {"iperf3", "ping"}
    assert needs("linux", "freebsd") == {"iperf3", "ping"}
    mixed = render_calibration(PROBE, CATALOGUE, ("linux", "freebsd-14"), "172.16.11.2", 5300)
    assert "python3" not in mixed.send + mixed.receive + mixed.collect


def test_a_direction_can_be_measured_by_the_counts_of_an_iperf3_server_alone(tmp_path: Path) -> None:
    """On the loopback nothing limits the burst: it arrives at its own rate, twice the planned rate of 10 Mbit/s."""
    probe = replace(PROBE, pings=5, drain_s=0.05, paced_packets=200)
    texts = render_calibration(probe, CATALOGUE, ("freebsd", "freebsd"), "127.0.0.1", 5377)
    steps = [CATALOGUE.recipe("step", name, "linux") for name in ("prelude", "listening", "clock")]
    values = {"folder": str(tmp_path / "campaign" / "trial"), "campaign": "c"}
    shared = "".join(step.render("script", values) for step in steps)
    runs = [
        subprocess.run(["dash"], input=shared + text, text=True, capture_output=True, check=True, timeout=60)
        for text in (texts.receive, texts.send, texts.collect)
    ]
    assert [done.stderr for done in runs] == ["", "", ""]
    result = parse_measurement(runs[1].stdout, runs[2].stdout, QUEUE_HEAD, "eth2", 5000)
    assert len(result.round_trips_s) == 4
    assert result.rate_bps == pytest.approx(20e6 * 1514 / 1472, rel=0.05)
    assert 190 <= result.sent_paced <= 210
    assert result.lost == 0
    in_pipe = QUEUE_HEAD + "1,eth2,dummynet,20999:,root,90000,60,0,0,0,0\n"
    dummynet = parse_measurement(runs[1].stdout, runs[2].stdout, in_pipe, "eth2", 5000)
    assert dummynet.sampled_packets == 60
    assert dummynet.rate_bps == pytest.approx(20e6 * 1500 / 1472, rel=0.05)


def test_the_measured_rate_counts_ethernet_headers_only_if_the_router_s_queue_does() -> None:
    assert measurement(qdisc="dummynet").rate_bps == pytest.approx(10e6 * 1500 / 1514, rel=1e-4)


def test_duplicate_and_overtaken_packets_are_counted_and_a_truncated_line_is_not() -> None:
    arrivals = "".join(f"paced {n} {t} {t} 64\n" for t, n in enumerate((0, 2, 1, 1, 3)))
    result = parse_measurement("sent paced 5 0.3\n", f"{arrivals}paced 4 5", QUEUE_HEAD, "eth2", 5000)
    assert (result.lost, result.duplicates, result.overtaken, result.mean_loss_burst_packets) == (1, 1, 1, 1)


def test_the_rate_by_iperf3_leaves_out_intervals_in_which_packets_arrived_part_of_the_time() -> None:
    rates = ((0.1, 3e6), (0.1, 9e6), (0.1, 9.2e6), (0.1, 9.1e6), (0.001, 99e6), (0.1, 4e6))
    sums = [{"sum": {"seconds": s, "bits_per_second": bps, "packets": 9}} for s, bps in rates]
    burst = {"start": {"test_start": {"blksize": 1472}}, "intervals": sums}
    streams = [{"udp": {"packets": 500, "lost_packets": 7, "out_of_order": 2}}]
    text = f"iperf3 burst\n{json.dumps(burst)}\niperf3 paced\n{json.dumps({'end': {'streams': streams}})}\n"
    result = parse_measurement("", text, QUEUE_HEAD, "eth2", 5000)
    assert result.rate_bps == pytest.approx(9.1e6 * 1514 / 1472)
    assert (result.sent_paced, result.lost, result.overtaken) == (500, 7, 2)


@pytest.mark.parametrize("report", ['{"start":', "[]", "{}"])
def test_a_receiver_that_was_stopped_before_it_counted_gives_no_measurement(report: str) -> None:
    result = parse_measurement("", f"iperf3 burst\n{report}\niperf3 paced\n", QUEUE_HEAD, "eth2", 5000)
    assert [text.split(": ")[1] for text in failures(result)] == [
        "requested 40 ms, observed no answer",
        "requested 10 Mbit/s, observed no packets arrived",
        "requested 60 packets, observed nothing",
        "requested 0.0000%, observed nothing",
    ]


def test_the_first_echo_reply_is_left_out_whether_it_has_number_0_or_1() -> None:
    for first in (0, 1):
        echoes = "".join(
            f"64 bytes from 172.16.11.2: icmp_seq={n} ttl=63 time={900 if n == first else 40.2} ms\n"
            for n in range(first, first + 4)
        )
        assert parse_measurement(echoes, "", QUEUE_HEAD, "eth2", 5000).round_trips_s == (0.0402,) * 3


def test_the_buffer_of_an_aqm_that_drops_early_is_not_checked_without_samples_of_its_queue() -> None:
    blind = replace(measurement(passing=90), sampled_packets=None, sampled_bytes=None)
    assert failures(blind, fills=False) == []


def test_the_preflight_requires_programs_of_the_calibration_only_if_paths_are_calibrated() -> None:
    plan = plan_of([trial("cubic")])
    for calibrates in (True, False):
        programs = {
            host: one.names("program") for host, one in host_needs(plan, CATALOGUE, calibrates).items()
        }
        assert ("ping" in programs["src"], "ping" in programs["dst"], "ping" in programs["rtr"]) == (
            calibrates,
            calibrates,
            False,
        )


def test_the_queue_is_sampled_every_2_ms_or_at_the_default_interval_where_samples_are_expensive() -> None:
    intervals_s = {
        system: sampling_s(CATALOGUE.recipe("logger", "queue", system)) for system in ("linux", "freebsd")
    }
    assert intervals_s == {"linux": 0.002, "freebsd": 0.05}


def test_calibration_files_keep_the_names_that_version_0_1_gave_them(tmp_path: Path) -> None:
    """A resumed campaign finds its earlier calibration results by these names."""
    policy = Policy(
        calibrate=True,
        behind={"down": frozenset({"172.16.11.2"}), "up": frozenset({"172.16.10.2"})},
    )
    context = CampaignContext(
        *(tmp_path, Sessions(()), CATALOGUE, lambda *_, **__: None, silent),
        policy=policy,
        boots={"src": "b1", "rtr": "b2"},
        testbed="lab",
        shared=True,
    )
    (tmp_path / "calibration").mkdir()
    for name, stored in (
        ("60d9a04d3a3f", {"checks": [], "left_out": ["up: not measured"]}),
        ("window-85bb288fcf6f", {"ratio": 162}),
    ):
        (tmp_path / "calibration" / f"{name}.json").write_text(json.dumps(stored))
    calibration, scripts = Calibration(context), TrialScripts(TRIAL, CATALOGUE, "c")
    found = calibration.paths.result(RESOLVED)
    assert found is not None
    assert found.left_out == ("up: not measured",)
    probes = calibration.windows.probes(scripts)
    assert (list(probes), calibration.windows.due(probes)) == (["window-85bb288fcf6f"], [])


def test_a_path_of_ipv6_flows_is_not_measured(tmp_path: Path) -> None:
    def answer(host: str, step: str) -> BaseException:
        return AssertionError(f"{step} at {host}")

    flow = RESOLVED.flows[0].model_copy(update={"from_address": "fd00:10::2", "to_address": "fd00:11::2"})
    policy = Policy(calibrate=True, behind={"down": frozenset({"fd00:11::2"})})
    context = CampaignContext(
        tmp_path, AnsweringSessions(answer), CATALOGUE, lambda *_, **__: None, silent, policy=policy
    )
    one = replace(TRIAL, source=RESOLVED.model_copy(update={"flows": (flow,)}))
    result = Calibration(context).paths.measure(TrialScripts(one, CATALOGUE, "c"))
    assert (result.checks, result.left_out) == ((), (f"down: {NO_ENDPOINTS}",))
