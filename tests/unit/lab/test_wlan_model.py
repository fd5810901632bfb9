"""The model of a wireless network in virtual time, against theory: Bianchi, Heusse, and arithmetic of the standard."""

from __future__ import annotations

import json
import math
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

SOURCES = Path(__file__).parents[3] / "samovar" / "lab" / "devices"
FRAME_BYTES, HEADER_BYTES, ADDED_BYTES = 1514, 14, 22
"""The size of a full Ethernet frame, the size of its header, and what a data frame of 802.11 adds: 24 + 8 + 4 - 14 bytes."""
ACK_BYTES, CTS_BYTES, RTS_BYTES = 14, 14, 20
TRIES, LARGEST_WINDOW = 7, 1023
OFDM_MBIT = (6, 9, 12, 18, 24, 36, 48, 54)
SENSITIVITY_DBM = (-82, -81, -79, -77, -74, -70, -66, -65)
"""Table 17-13: the input level at which at most 10 % of frames of 1000 bytes are lost, at each rate of OFDM."""

Simulate = Callable[..., "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """The counters of one simulation."""

    ports: tuple[dict[str, Any], ...]
    time_ns: int
    length_bytes: int

    def mbit(self, *ports: int) -> float:
        """Return the rate of the IP packets that these ports have sent, by default of all."""
        frames = sum(self.ports[port]["out_frames"] for port in ports or range(len(self.ports)))
        return int(frames) * (self.length_bytes - HEADER_BYTES) * 8e3 / self.time_ns

    @property
    def collision_share(self) -> float:
        """The share of tries that collided."""
        collisions, attempts = (
            sum(int(port[counter]) for port in self.ports) for counter in ("collisions", "attempts")
        )
        return collisions / attempts


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    program = tmp_path_factory.mktemp("wlan") / "virtual"
    subprocess.run(["make", "-s", "-C", SOURCES, f"OUT={program.parent}", program], check=True)

    def run(flows: Iterable[str], seconds: int, *settings: str, length_bytes: int = FRAME_BYTES) -> Outcome:
        flows = tuple(flows)
        ports = 1 + max(int(end) for flow in flows for end in flow.split(":"))
        words = (str(seconds), str(ports), str(length_bytes), ",".join(flows), *settings)
        done = subprocess.run([program, *words], check=True, capture_output=True, text=True)
        *counters, medium = (json.loads(line) for line in done.stdout.splitlines())
        return Outcome(tuple(counters), medium["time_ns"], length_bytes)

    return run


def uplinks(stations: int) -> list[str]:
    return [f"{station}:0" for station in range(1, stations + 1)]


@dataclass(frozen=True)
class Timing:
    """Durations in µs that a standard prescribes for frames of one size."""

    slot: int
    sifs: int
    windows: int
    data: float
    ack: float
    lowest_ack: float

    @property
    def difs(self) -> int:
        return self.sifs + 2 * self.slot

    @property
    def success(self) -> float:
        return self.data + self.sifs + self.ack + self.difs

    @property
    def collision(self) -> float:
        """The duration of a frame and of EIFS."""
        return self.data + self.sifs + self.lowest_ack + self.difs


def dsss_us(mbit: float, length_bytes: int, preamble_us: int = 192) -> float:
    return preamble_us + math.ceil(8 * length_bytes / mbit)


def ofdm_us(mbit: float, length_bytes: int, extension_us: int = 0) -> float:
    return 20 + 4 * math.ceil((16 + 8 * length_bytes + 6) / (4 * mbit)) + extension_us


MPDU_BYTES = FRAME_BYTES + ADDED_BYTES
TIMINGS = {
    "standard=0": Timing(20, 10, 32, dsss_us(11, MPDU_BYTES), dsss_us(11, ACK_BYTES), dsss_us(1, ACK_BYTES)),
    "standard=1": Timing(
        9, 10, 16, ofdm_us(54, MPDU_BYTES, 6), ofdm_us(24, ACK_BYTES, 6), dsss_us(1, ACK_BYTES)
    ),
    "standard=2": Timing(9, 16, 16, ofdm_us(54, MPDU_BYTES), ofdm_us(24, ACK_BYTES), ofdm_us(6, ACK_BYTES)),
}
"""802.11b at 11 Mbit/s with the long preamble; 802.11g without stations of 802.11b and 802.11a at 54 Mbit/s."""


def fixed_point(stations: int, windows: int, unused_slots: int = 0) -> tuple[float, float]:
    """Return the probability tau that a station sends in a slot, and the probability p that its try collides.

    G. Bianchi, "Performance Analysis of the IEEE 802.11 Distributed Coordination Function", IEEE JSAC 18(3),
    2000, equations 7 and 9, here with a limit of tries: try i, which happens with probability p^i, follows a
    backoff of (W_i - 1) / 2 slots on average, so that tau = sum p^i / sum p^i (1 + (W_i - 1) / 2). The left side
    of p = 1 - (1 - tau)^(n-1) rises and the right side falls in p, so that bisection finds the only solution.
    """
    least, most = 0.0, 1.0
    while most - least > 1e-12:
        collides = (least + most) / 2
        tries = [(collides**i, min(2**i * windows, LARGEST_WINDOW + 1) - unused_slots) for i in range(TRIES)]
        sends = sum(share for share, _ in tries) / sum(
            share * (1 + (slots - 1) / 2) for share, slots in tries
        )
        least, most = (collides, most) if 1 - (1 - sends) ** (stations - 1) > collides else (least, collides)
    return sends, collides


def saturation(stations: int, timing: Timing) -> tuple[float, float]:
    """Return throughput in Mbit/s (equation 13) and collision probability of Bianchi's model."""
    sends, collides = fixed_point(stations, timing.windows)
    return _throughput(stations, sends, timing.slot, timing.success, timing.collision), collides


def refined_saturation(stations: int, timing: Timing) -> tuple[float, float]:
    """Return both values for a refined model, in which only the last sender may use the first slot after an exchange.

    G. Bianchi, I. Tinnirello, Y. Xiao, "Refinements on IEEE 802.11 DCF Modeling Approaches", IEEE Trans. Veh.
    Tech. 59(3), 2010: a station that draws 0 after a success, with probability b = 1 / W, sends again at once
    and cannot collide; others lose a slot. Of the other tries a share of 1 - p succeeds, and b / (1 - b) immediate
    tries follow each success on average.
    """
    sends, collides = fixed_point(stations, timing.windows, unused_slots=1)
    immediate_share = 1 / timing.windows
    burst = 1 / (1 - immediate_share)
    success, collision = timing.success * burst + timing.slot, timing.collision + timing.slot
    throughput = _throughput(stations, sends, timing.slot, success, collision, burst)
    return throughput, collides / (1 + (1 - collides) * (burst - 1))


def _throughput(
    stations: int, sends: float, slot: float, success: float, collision: float, frames: float = 1
) -> float:
    some, one = 1 - (1 - sends) ** stations, stations * sends * (1 - sends) ** (stations - 1)
    bits = 8 * (FRAME_BYTES - HEADER_BYTES) * frames
    return one * bits / ((1 - some) * slot + one * success + (some - one) * collision)


@pytest.mark.parametrize("stations", range(1, 21))
def test_throughput_and_collisions_of_saturated_802_11b_agree_with_bianchis_model(
    simulate: Simulate, stations: int
) -> None:
    result = simulate(uplinks(stations), 300, "standard=0", "rate_mbit=11")
    throughput, collides = saturation(stations, TIMINGS["standard=0"])
    assert result.mbit() == pytest.approx(throughput, rel=0.03)
    assert result.collision_share == pytest.approx(collides, rel=0.03, abs=0.003)


@pytest.mark.parametrize("stations", [1, 2, 3, 5, 8, 12, 16, 20])
@pytest.mark.parametrize("standard", ["standard=1", "standard=2"])
def test_throughput_and_collisions_with_short_windows_agree_with_bianchis_refined_model(
    simulate: Simulate, standard: str, stations: int
) -> None:
    """The original model ignores the first slot after an exchange, which matters more for windows of 16 slots than for 32."""
    result = simulate(uplinks(stations), 200, standard)
    throughput, collides = refined_saturation(stations, TIMINGS[standard])
    original, _ = saturation(stations, TIMINGS[standard])
    assert result.mbit() == pytest.approx(throughput, rel=0.03)
    assert result.mbit() == pytest.approx(original, rel=0.03)
    # The model assumes that a collision does not depend on earlier ones. With two stations, its error is 6 %.
    assert result.collision_share == pytest.approx(collides, rel=0.07 if stations == 2 else 0.03)


@pytest.mark.parametrize("stations", [2, 5, 10, 20])
def test_throughput_with_rts_agrees_with_bianchis_model(simulate: Simulate, stations: int) -> None:
    timing = TIMINGS["standard=0"]
    rts, cts = dsss_us(11, RTS_BYTES), dsss_us(11, CTS_BYTES)
    success = rts + cts + 2 * timing.sifs + timing.success
    collision = rts + timing.collision - timing.data
    sends, _ = fixed_point(stations, timing.windows)
    result = simulate(uplinks(stations), 300, "standard=0", "rate_mbit=11", "rts_bytes=500")
    assert result.mbit() == pytest.approx(
        _throughput(stations, sends, timing.slot, success, collision), rel=0.03
    )


@pytest.mark.parametrize("stations", [1, 2, 5, 10, 20])
@pytest.mark.parametrize(("category", "aifs_slots"), [(0, 7), (1, 3)])
def test_throughput_and_collisions_with_edca_agree_with_bianchis_model(
    simulate: Simulate, category: int, aifs_slots: int, stations: int
) -> None:
    """With EDCA, the backoff also counts the slot in which another station begins to send, as in the original model."""
    timing = TIMINGS["standard=1"]
    later_us = (aifs_slots - 2) * timing.slot
    success, collision = timing.success + later_us, timing.collision + later_us
    sends, collides = fixed_point(stations, timing.windows)
    result = simulate([f"{flow}:{category}" for flow in uplinks(stations)], 300, "edca=1")
    assert result.mbit() == pytest.approx(
        _throughput(stations, sends, timing.slot, success, collision), rel=0.03
    )
    assert result.collision_share == pytest.approx(collides, rel=0.07 if stations == 2 else 0.03)


@dataclass
class Backoff:
    """The backoff of one category at a port, by the rules of clause 9.9.1.3 and Table 7-37, where aCWmin is 15."""

    port: int
    category: int
    random: Random
    tries: int = 0
    slots: int = 0

    def __post_init__(self) -> None:
        self.draw()

    @property
    def late_slots(self) -> int:
        return (5, 1, 0, 0)[self.category]

    def draw(self) -> None:
        windows, most = ((16, 1024), (16, 1024), (8, 16), (4, 8))[self.category]
        self.slots = self.random.randrange(min(2**self.tries * windows, most))

    def end_try(self, success: bool) -> None:
        self.tries = 0 if success or self.tries + 1 == TRIES else self.tries + 1
        self.draw()


def edca_mbit(flows: Iterable[str], timing: Timing, exchanges: int) -> dict[int, float]:
    """Simulate the rules of EDCA slot by slot; return the throughput of each port in Mbit/s."""
    random = Random(1)
    waiting = [Backoff(int(flow.split(":")[0]), int(flow.split(":")[2]), random) for flow in flows]
    received, now_us, slot = Counter[int](), 0.0, 0
    while exchanges:
        contending = [one for one in waiting if one.late_slots <= slot]
        ready = [one for one in contending if one.slots == 0]
        for one in contending:
            one.slots = max(one.slots - 1, 0)
        slot += 1
        if not ready:
            now_us += timing.slot
            continue
        senders = {one.port: one for one in sorted(ready, key=lambda one: one.category)}
        success = len(senders) == 1
        now_us += timing.success if success else timing.collision
        for one in ready:
            one.end_try(success and one is senders[one.port])
        received.update(list(senders) if success else [])
        exchanges, slot = exchanges - 1, 0
    return {port: frames * 8 * (FRAME_BYTES - HEADER_BYTES) / now_us for port, frames in received.items()}


@pytest.mark.parametrize(
    ("flows", "groups"),
    [
        (("1:0:3", "2:0:3"), ((1, 2),)),
        (("1:0:2", "2:0:2", "3:0:1", "4:0:1"), ((1, 2), (3, 4))),
        (("1:0:3", "2:0:1", "3:0:1", "4:0:1", "5:0:1", "6:0:1"), ((1,), (2, 3, 4, 5, 6))),
        (("1:0:3", "1:0:2", "2:0:3", "2:0:1"), ((1,), (2,))),
    ],
    ids=["voice", "video and best effort", "voice and best effort", "several categories of a port"],
)
def test_categories_share_the_medium_as_the_rules_of_edca_say(
    simulate: Simulate, flows: tuple[str, ...], groups: tuple[tuple[int, ...], ...]
) -> None:
    result = simulate(flows, 200, "edca=1")
    expected = edca_mbit(flows, TIMINGS["standard=1"], 200_000)
    assert [result.mbit(*group) for group in groups] == pytest.approx(
        [sum(expected[port] for port in group) for group in groups], rel=0.05
    )  # the throughput of a category with few exchanges varies by 2 %


def test_categories_of_one_port_do_not_collide_on_the_medium(simulate: Simulate) -> None:
    result = simulate([f"1:0:{category}" for category in range(4)], 100, "edca=1")
    assert result.collision_share == 0


@pytest.mark.parametrize("stations", [2, 3, 4, 5, 8, 10])
def test_one_slow_station_slows_all_others_as_heusse_predicts(simulate: Simulate, stations: int) -> None:
    """M. Heusse et al., "Performance Anomaly of 802.11b", INFOCOM 2003, section II.

    One station sends at 1 Mbit/s with the long preamble, the others at 11 Mbit/s with the short one; ACKs have the
    rate of their station.
    """
    bits, slot_us, windows = 8 * MPDU_BYTES, 20, 31
    collides = 1 - (1 - 1 / windows) ** (stations - 1)
    contention_us = slot_us * (1 + collides) / (2 * stations) * windows / 2
    fast_us, slow_us = (
        50 + 10 + 2 * preamble + 112 / rate + bits / rate + contention_us
        for rate, preamble in ((11, 96), (1, 192))
    )
    jam_us = 2 / stations * slow_us + (1 - 2 / stations) * fast_us
    each_mbit = bits / ((stations - 1) * fast_us + slow_us + collides * jam_us * stations)
    result = simulate(
        uplinks(stations), 600, "standard=0", "short_preamble=1", "rate_mbit=11", "rate_mbit@1=1"
    )
    fast = result.mbit(*range(2, stations + 1)) / (stations - 1)
    on_air = MPDU_BYTES / (FRAME_BYTES - HEADER_BYTES)
    assert fast * on_air == pytest.approx(each_mbit, rel=0.05)
    assert result.mbit(1) * on_air == pytest.approx(each_mbit, rel=0.05)


def test_the_throughput_of_one_station_follows_from_the_durations_of_the_standard(simulate: Simulate) -> None:
    for standard, timing in TIMINGS.items():
        cycle_us = timing.success + (timing.windows - 1) / 2 * timing.slot
        result = simulate(
            ["1:0"], 100, standard, "rate_mbit=11" if standard == "standard=0" else "rate_mbit=54"
        )
        assert result.mbit() == pytest.approx(8 * (FRAME_BYTES - HEADER_BYTES) / cycle_us, rel=0.01)


@pytest.mark.parametrize("mbit", [6, 24, 54])
@pytest.mark.parametrize("length_bytes", [60, 200, 1514])
def test_protection_costs_a_cts_and_the_long_slot(simulate: Simulate, mbit: int, length_bytes: int) -> None:
    """With protection, a CTS-to-self at 11 Mbit/s precedes each frame of OFDM, and slots last 20 µs."""
    control = {6: 6, 24: 24, 54: 24}[mbit]
    data_us = ofdm_us(mbit, length_bytes + ADDED_BYTES, 6) + 10 + ofdm_us(control, ACK_BYTES, 6)
    cycle_us = 50 + 7.5 * 20 + dsss_us(11, CTS_BYTES) + 10 + data_us
    settings = ("standard=1", "protection=1", f"rate_mbit={mbit}")
    result = simulate(["1:0"], 100, *settings, length_bytes=length_bytes)
    assert result.mbit() == pytest.approx(8 * (length_bytes - HEADER_BYTES) / cycle_us, rel=0.01)


def test_the_access_point_has_no_more_of_the_medium_than_a_station(simulate: Simulate) -> None:
    result = simulate(["0:1", *uplinks(4)], 300, "standard=1")
    assert [result.mbit(port) for port in range(5)] == pytest.approx([result.mbit() / 5] * 5, rel=0.02)


def test_a_frame_from_one_station_to_another_crosses_the_medium_twice(simulate: Simulate) -> None:
    """The access point competes for its turn like a second station."""
    both, relayed = (simulate(flows, 100, "standard=1") for flows in (["0:1", "1:0"], ["1:2"]))
    assert relayed.mbit(0) == pytest.approx(both.mbit(0), rel=0.02)


def test_runs_with_the_same_seed_are_equal_and_runs_with_different_seeds_differ(simulate: Simulate) -> None:
    first, repeated, other = (simulate(uplinks(3), 5, f"seed={seed}") for seed in (7, 7, 8))
    assert first == repeated
    assert first != other


def _snr_db(simulate: Simulate, standard: int, mbit: float, length_bytes: int, share: float) -> float:
    """Return the SNR at which this share of data frames is lost."""
    least, most = -10.0, 40.0
    settings = (f"standard={standard}", f"rate_mbit={mbit}", "basic_mbit=1")
    while most - least > 0.05:
        snr_db = (least + most) / 2
        port = simulate(["1:0"], 10, *settings, f"snr_db={snr_db}", length_bytes=length_bytes).ports[1]
        least, most = (snr_db, most) if port["errors"] > share * port["attempts"] else (least, snr_db)
    return most


def test_the_signal_that_each_rate_needs_agrees_with_the_sensitivities_of_the_standard(
    simulate: Simulate,
) -> None:
    length_bytes = 1000 - ADDED_BYTES
    needed_db = [_snr_db(simulate, 2, mbit, length_bytes, 0.1) for mbit in OFDM_MBIT]
    simulated_db = [snr_db - needed_db[-1] for snr_db in needed_db]
    assert simulated_db == pytest.approx([level - SENSITIVITY_DBM[-1] for level in SENSITIVITY_DBM], abs=2)


def test_a_lost_frame_is_repeated_until_the_limit_of_tries(simulate: Simulate) -> None:
    port = simulate(["1:0"], 200, "standard=1", "loss=0.3", "tries=3").ports[1]
    frames = port["out_frames"] + port["discarded"]
    assert port["errors"] / port["attempts"] == pytest.approx(0.3, rel=0.02)
    assert port["discarded"] / frames == pytest.approx(0.3**3, rel=0.05)
    assert port["attempts"] / frames == pytest.approx(1 + 0.3 + 0.3**2, rel=0.02)


@pytest.mark.parametrize("snr_db", [8, 12, 16, 20, 24, 40])
@pytest.mark.parametrize(("adaptation", "least_share"), [(1, 0.7), (2, 0.85)])
def test_an_adapted_rate_has_nearly_the_throughput_of_the_best_fixed_rate(
    simulate: Simulate, snr_db: int, adaptation: int, least_share: float
) -> None:
    signal = f"snr_db={snr_db}"
    best = max(simulate(["1:0"], 20, "standard=1", signal, f"rate_mbit={mbit}").mbit() for mbit in OFDM_MBIT)
    adapted = simulate(["1:0"], 60, "standard=1", signal, f"adaptation={adaptation}").mbit()
    assert least_share * best < adapted < 1.02 * best


@pytest.mark.parametrize("tries", [1, 3])
def test_sampling_abandons_a_rate_at_which_no_frame_arrives_even_with_few_tries(
    simulate: Simulate, tries: int
) -> None:
    few, usual = (
        simulate(["1:0"], 5, "adaptation@1=2", "snr_db=12", f"tries={n}").mbit() for n in (tries, 7)
    )
    assert few == pytest.approx(usual, rel=0.1)


def test_collisions_reduce_the_rate_of_sampling_little_and_that_of_arf_much(simulate: Simulate) -> None:
    """J. Kim et al., "CARA", INFOCOM 2006: stations with ARF that collide often fall to the lowest rate."""
    fixed, arf, sampling = (simulate(uplinks(8), 100, f"adaptation={number}").mbit() for number in range(3))
    assert 0.85 * fixed < sampling < fixed
    assert arf < 0.1 * fixed
