"""What a calibration shows is read and judged: rate, buffer, delay, losses, each named when it is not as asked."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from samovar.command import Catalogue
from samovar.command.bottleneck import loss_states
from samovar.command.calibration import CalibrationScripts, calibration_scripts, probe_of
from samovar.plan import DirectionPlan, PathPlan
from samovar.runner.calibrate import Calibration, check_calibration, mean_burst, parse_calibration, plausible

ROOT = Path(__file__).parents[2]
WAY = DirectionPlan(interface="eth2", rate_bps=10_000_000, delay_s=0.02, aqm="pfifo", buffer_packets=60)
PATH = PathPlan(router="rtr", rtt_s=0.04, down=WAY, up=DirectionPlan(interface="eth1", delay_s=0.02))
PROBE = probe_of(PATH, WAY, 1500)
FRAME_S = 1514 * 8 / 10e6
QUEUE_HEAD = "t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes,sent_packets,drops,overlimits\n"


def told(
    *,
    frame_s: float = FRAME_S,
    held: int = 60,
    passing: int = 40,
    rtt_ms: float = 40.2,
    lost: frozenset[int] = frozenset(),
) -> Calibration:
    """Make what the scripts of a calibration print on a path, and read it."""
    pings = "".join(f"64 bytes from 1.2.3.4: icmp_seq={n} ttl=63 time={rtt_ms} ms\n" for n in range(2, 31))
    first = "64 bytes from 1.2.3.4: icmp_seq=1 ttl=63 time=900 ms\n"
    sent = f"{first}{pings}sent burst 615 0.2\nsent paced 1000 0.3\nsent end 5 0.1\n"
    # The sender's clock is seven seconds behind, and packets come four times as fast as they leave.
    leave_ns = [round(n * frame_s * 1e9) for n in range(200)]
    queued_ns = [max(leave_ns[n] // 4, leave_ns[max(0, n - passing)]) for n in range(200)]
    burst = "".join(f"burst {n} {queued_ns[n] - 7 * 10**9} {leave_ns[n]} 1472\n" for n in range(200))
    paced = "".join(f"paced {n} {10**10 + n} {10**10 + n} 64\n" for n in range(1000) if n not in lost)
    rows = ((1, "1:", 99), (2, "10:", 10), (3, "10:", held), (4, "10:", 0))
    queue = "".join(f"{t},eth2,x,{handle},root,{n * 1514},{n},0,0,0,0\n" for t, handle, n in rows)
    other = "5,eth1,x,10:,root,1000000,700,0,0,0,0\n"
    return parse_calibration(sent, burst + paced, QUEUE_HEAD + queue + other, "eth2")


def failures(seen: Calibration, *, fills: bool = True) -> list[str]:
    return [
        str(c) for c in check_calibration(PATH, WAY, PROBE, seen, burst_bytes=5000, fills=fills) if not c.ok
    ]


def test_what_was_seen_is_read_from_what_the_scripts_print() -> None:
    seen = told(lost=frozenset({3, 4, 5, 90}))
    assert seen.base_rtt_s == pytest.approx(0.0402)
    assert len(seen.round_trips_s) == 29, "the first may have waited for a neighbour's answer"
    assert seen.rate_bps(5000) == pytest.approx(10e6, rel=1e-4)
    assert (seen.sampled_packets, seen.sampled_bytes) == (60, 90_840)
    assert (seen.sent_burst, seen.sent_paced, seen.lost) == (615, 1000, (3, 1))
    assert mean_burst(seen.lost) == 2


def test_the_longest_queue_is_seen_from_outside_although_the_clocks_differ() -> None:
    assert told(held=3, passing=60).under_way_packets == 60
    assert failures(told(held=3, passing=60)) == []
    assert failures(told(held=60, passing=63)) == [], "samples never see more than there is"
    assert failures(told(held=3, passing=50)) == [
        "buffer held at eth2 at rtr: requested 60 packets, observed 10 packets sampled, 50 packets under way"
    ]


def test_a_path_that_is_as_asked_is_not_complained_of() -> None:
    assert failures(told()) == []


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (told(frame_s=FRAME_S * 1.03), "rate at eth2 at rtr: requested 10 Mbit/s, observed 9.709 Mbit/s"),
        (
            told(held=62),
            "buffer held at eth2 at rtr: requested 60 packets, observed 62 packets sampled, 40 packets under way",
        ),
        (
            told(held=58),
            "buffer held at eth2 at rtr: requested 60 packets, observed 58 packets sampled, 40 packets under way",
        ),
        (told(rtt_ms=43.5), "base RTT at rtr: requested 40 ms, observed 43.50 ms"),
        (told(lost=frozenset({7})), "loss towards eth2 at rtr: requested 0.0000%, observed 1 of 1000"),
    ],
)
def test_what_is_not_as_asked_is_named_with_both_figures(seen: Calibration, complaint: str) -> None:
    assert failures(seen) == [complaint]


def test_a_discipline_that_drops_early_may_hold_less_and_never_more() -> None:
    assert failures(told(held=12), fills=False) == []
    assert failures(told(held=62), fills=False) == [
        "buffer held at eth2 at rtr: requested at most 60 packets, observed 62 packets sampled, 40 packets under way"
    ]


def test_nothing_that_comes_is_a_complaint_and_not_an_error() -> None:
    seen = parse_calibration("", "", QUEUE_HEAD, "eth2")
    assert [text.split(": ")[1] for text in failures(seen)] == [
        "requested 40 ms, observed no answer",
        "requested 10 Mbit/s, observed nothing came",
        "requested 60 packets, observed nothing",
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
    ],
)
def test_losses_are_plausible_within_the_binomial_interval(
    lost: int, sent: int, share: float, expected: bool
) -> None:
    assert plausible(lost, sent, share) is expected


def test_losses_in_bursts_are_called_implausible_about_as_seldom_as_promised() -> None:
    draw, states = random.Random(7), loss_states(0.05, 4.0)
    assert states is not None
    refused = sum(not plausible(_gilbert(draw, states, 2000), 2000, 0.05, states) for _ in range(500))
    assert refused <= 5


def _gilbert(draw: random.Random, states: tuple[float, float], packets: int) -> int:
    """Count the losses of a chain as netem runs it."""
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


def test_a_way_without_rate_is_probed_for_loss_and_delay_only() -> None:
    probe = probe_of(PATH, PATH.up, None)
    assert (probe.burst_packets, probe.drain_s, probe.paced_packets) == (0, 0.0, 1000)


def _scripts() -> CalibrationScripts:
    return calibration_scripts(PROBE, Catalogue(ROOT / "templates"), ("linux", "linux"), "172.16.11.2", 5300)


@pytest.mark.parametrize("name", ["receive", "send", "collect"])
def test_the_scripts_pass_the_shell_s_own_check(name: str) -> None:
    text = getattr(_scripts(), name)
    done = subprocess.run(["dash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
