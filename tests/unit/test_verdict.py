"""The verdict: captures read, counters compared, thresholds laid over each other, strangers and liars named."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samovar.campaign.calibration.path_calibration import Endpoints, endpoints_of
from samovar.campaign.clocks import ClockOffset, Drift
from samovar.campaign.host_state import compared
from samovar.campaign.journal import Entry, fold, is_open
from samovar.campaign.policy import Policy, policy_of
from samovar.campaign.verdict.capture_counts import read_capture
from samovar.campaign.verdict.counters import Span, Through, check_cpu, check_rate, check_stages, check_step
from samovar.campaign.verdict.evidence import Evidence, checks_of
from samovar.campaign.verdict.judge import (
    Check,
    check_clocks,
    check_drift,
    check_settings,
    check_starts,
    verdict_of,
)
from samovar.campaign.verdict.wire import Seen, check_bottleneck, check_counted, check_wire, read_captures
from samovar.cli import Controller
from samovar.errors import DefinitionError
from samovar.experiment import load_experiment, load_testbed
from samovar.experiment.keys.config_file import Config
from samovar.experiment.keys.verdict_thresholds import Thresholds
from samovar.hosts import ScriptResult
from samovar.plan import CapturePlan
from samovar.recipes import ByteCounts, Catalogue, CountPatterns, TrialScripts, split_finish_output
from samovar.recipes.scripts import FOUND, RESTORED
from samovar.recipes.trial_programs import trial_flows
from tests.unit.trials import PATH, RESOLVED, TRIAL

ROOT = Path(__file__).parents[2]
CATALOGUE = Catalogue(ROOT / "templates")
FLOWS = trial_flows(RESOLVED, CATALOGUE)[:1]
LIMITS = Thresholds()
SRC, DST = "172.16.10.2", "172.16.11.2"
HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)
SYN, ACK = 2, 16


def segment(
    source: str,
    destination: str,
    ports: tuple[int, int],
    payload_bytes: int = 0,
    *,
    flags: int = ACK,
    window: int = 500,
    options: bytes = b"",
    ttl: int = 64,
    protocol: int = 6,
) -> tuple[bytes, int]:
    """Make the headers of a frame, and the size that it has on the wire."""
    ends = b"".join(bytes(map(int, address.split("."))) for address in (source, destination))
    tcp = struct.pack(
        ">HHIIBBHHH", *ports, 1, 1, (20 + len(options)) // 4 << 4, flags, window, 0, 0
    ) if protocol == 6 else struct.pack(">HHHH", *ports, 8, 0) + bytes(12)  # fmt: skip
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(options) + payload_bytes, 0, 0x4000, ttl, protocol, 0)
    headers = bytes(12) + b"\x08\x00" + ip + ends + tcp + options
    return headers, len(headers) + payload_bytes


def syn(source: str, destination: str, ports: tuple[int, int], mss: int, scale: int) -> tuple[bytes, int]:
    """Make a SYN with a maximum segment size and a window scale."""
    options = struct.pack(">BBH", 2, 4, mss) + b"\x01" + bytes((3, 3, scale))
    return segment(source, destination, ports, flags=SYN, window=65535, options=options, ttl=63)


def write(folder: Path, name: str, frames: Sequence[tuple[bytes, int]]) -> Path:
    """Write a capture as a trial leaves it."""
    file = folder / "traces" / f"{name}.pcap.gz"
    file.parent.mkdir(exist_ok=True)
    records = (struct.pack("<IIII", 1, 2, len(kept[:96]), size) + kept[:96] for kept, size in frames)
    file.write_bytes(gzip.compress(HEAD + b"".join(records)))
    return file


def sound(mss: int = 560, window: int = 39_058, ttl: int = 63) -> list[tuple[bytes, int]]:
    """Make what the sample trial's first flow is at its receiver: a window of 9,998,848 bytes."""
    up, down = (5001, 40_000), (40_000, 5001)
    return [
        syn(SRC, DST, down, 560, 7),
        syn(DST, SRC, up, mss, 8),
        *(segment(SRC, DST, down, 560, ttl=ttl) for _ in range(200)),
        *(segment(DST, SRC, up, window=window) for _ in range(100)),
    ]


def bulk(window: int) -> list[tuple[bytes, int]]:
    """Make the same flow with as much data as opens any window."""
    return [*sound(window=window), *[segment(SRC, DST, (40_000, 5001), 560, ttl=63)] * 80_000]


TTL_AT = 14 + 8
"""Where a frame has its time to live: in the ninth byte of its IPv4 header, RFC 791."""


def before_a_router(frames: Sequence[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    """Make of frames as they arrived what they were before one router passed them on."""
    return [(data[:TTL_AT] + bytes([data[TTL_AT] + 1]) + data[TTL_AT + 1 :], size) for data, size in frames]


def judged(
    folder: Path,
    frames: Sequence[tuple[bytes, int]],
    policy: Policy | None = None,
    sent: Sequence[tuple[bytes, int]] | None = None,
) -> dict[str, Check]:
    """Judge the sample trial by what is captured at both of its ends, one router apart."""
    write(folder, "src-eth1", before_a_router(frames) if sent is None else sent)
    write(folder, "dst-eth1", frames)
    seen = read_captures(RESOLVED, folder, LIMITS)
    policy = policy or Policy(routers={(SRC, DST): 1})
    found = sorted(check_wire(RESOLVED, FLOWS, seen, policy), key=lambda check: not check.ok)
    return {f"{check.check} at {check.host}": check for check in found}


def failed(checks: dict[str, Check]) -> dict[str, str]:
    """What was observed by each check that failed."""
    return {name: check.observed for name, check in checks.items() if not check.ok}


def test_a_capture_tells_packets_bytes_windows_and_options_of_each_direction(tmp_path: Path) -> None:
    capture = read_capture(write(tmp_path, "dst-eth1", sound()), 10_000)
    data, answers = capture
    assert (capture.packets, capture.whole, capture.torn) == (302, True, False)
    assert (str(data), data.packets, data.payload_bytes) == (
        f"TCP {SRC}:40000 > {DST}:5001",
        201,
        200 * 560 + 8,
    )
    assert (data.mss_bytes, data.scale, data.ttls, data.largest_bytes) == (560, 7, {63}, 614)
    assert (answers.window_bytes, answers.mss_bytes) == (9_998_848, 560)


def test_a_capture_is_read_as_far_as_is_allowed_and_says_so(tmp_path: Path) -> None:
    capture = read_capture(write(tmp_path, "dst-eth1", sound()), 100)
    assert (capture.packets, capture.whole) == (100, False)


def test_a_capture_that_ends_within_a_packet_is_torn(tmp_path: Path) -> None:
    file = write(tmp_path, "dst-eth1", sound())
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes())[:-7]))
    capture = read_capture(file, 10_000)
    assert (capture.packets, capture.torn) == (301, True)


@pytest.mark.parametrize(
    "content", [b"", b"no gzip", gzip.compress(b"no capture, but long enough to be one")]
)
def test_what_is_no_capture_makes_the_trial_invalid(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "src-eth1", sound())
    write(tmp_path, "dst-eth1", sound()).write_bytes(content)
    checks = read_captures(RESOLVED, tmp_path, LIMITS).checks
    assert [(check.host, check.ok, check.severity) for check in checks] == [
        ("src", True, "invalid"),
        ("dst", False, "invalid"),
    ]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_content_of_packets_breaks_the_reading(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "hostile.pcap.gz"
    file.write_bytes(gzip.compress(HEAD + struct.pack("<IIII", 1, 2, len(data), len(data)) + data))
    try:
        assert read_capture(file, 10).packets <= 1
    except ValueError as error:
        assert "cut off" in str(error)


def test_what_was_asked_for_is_found_on_the_wire(tmp_path: Path) -> None:
    checks = judged(tmp_path, sound())
    assert failed(checks) == {}
    assert checks["routers that flow bulk passed at dst"].observed == "1 (TTL 63)"


@pytest.mark.parametrize(
    ("frames", "name", "observed"),
    [
        (sound(mss=1460), "MSS that dst offered to flow bulk at dst", "1460 B"),
        (sound(window=40_000), "largest window offered to flow bulk at dst", "10240000 B"),
        (bulk(window=2_000), "largest window offered to flow bulk at dst", "512000 B"),
        ([*sound(), segment(SRC, DST, (40_000, 5001), 9000)], "largest segment in the capture at eth1 (offloads) at src", "9054 B"),
    ],
)  # fmt: skip
def test_what_was_not_asked_for_is_named_with_what_was_seen(
    tmp_path: Path, frames: list[tuple[bytes, int]], name: str, observed: str
) -> None:
    assert failed(judged(tmp_path, frames))[name] == observed


def test_a_window_that_a_flow_sent_too_little_to_open_is_no_fault(tmp_path: Path) -> None:
    assert failed(judged(tmp_path, sound(window=2_000))) == {}


def test_a_flow_that_went_another_way_is_named_by_its_time_to_live(tmp_path: Path) -> None:
    frames = [segment(SRC, DST, (40_000, 5001), 560, ttl=ttl) for ttl in (64, 64)]
    told = failed(judged(tmp_path, frames, sent=frames))
    assert told == {"routers that flow bulk passed at dst": "0 (TTL 64)"}


def test_routers_are_counted_from_the_time_to_live_that_the_sender_gave(tmp_path: Path) -> None:
    frames = [segment(SRC, DST, (40_000, 5001), 560, ttl=ttl) for ttl in (49, 49)]
    assert failed(judged(tmp_path, frames)) == {}
    untold = failed(judged(tmp_path, frames, sent=[]))
    assert untold == {"routers that flow bulk passed at dst": "15 (TTL 49)"}, "by what systems send with"


def strangers(port: int, packets: int = 100, **given: Any) -> list[tuple[bytes, int]]:
    """Make traffic of somebody else."""
    return [segment(SRC, DST, (50_000, port), 560, **given) for _ in range(packets)]


def test_traffic_that_nobody_asked_for_is_named_with_its_ends(tmp_path: Path) -> None:
    found = failed(judged(tmp_path, [*sound(), *strangers(5999)]))
    assert found["traffic of no flow at eth1 at dst"] == (
        f"61400 B of 189724 B, most of it TCP {SRC}:50000 > {DST}:5999 (100 packets, 61400 B)"
    )


@pytest.mark.parametrize(
    "more",
    [
        strangers(22),
        strangers(123, protocol=17),
        strangers(5999, packets=20),
        [(bytes(12) + b"\x08\x06" + bytes(46), 60)] * 500,
    ],
    ids=["ssh", "ntp", "little", "arp"],
)
def test_what_keeps_a_network_going_is_no_competition(tmp_path: Path, more: list[tuple[bytes, int]]) -> None:
    assert failed(judged(tmp_path, [*sound(), *more])) == {}


def test_a_generator_that_uses_more_ports_says_so_in_its_header() -> None:
    headers = {name: CATALOGUE.header("generator", name, "linux") for name in ("nuttcp", "command", "iperf3")}
    assert {name: header.ports for name, header in headers.items()} == {
        "nuttcp": (0, 2000),
        "command": (),
        "iperf3": (0,),
    }


@pytest.mark.parametrize(
    ("counted", "again_bytes", "ok"),
    [
        (ByteCounts(112_000, 112_000), 0, True),
        (ByteCounts(400_000, 100_000), 0, True),
        (ByteCounts(250_000, 250_000), 0, False),
        (ByteCounts(20_000, 20_000), 0, False),
        (ByteCounts(20_000, 20_000), 60_000, True),
    ],
)
def test_bytes_of_the_generator_and_of_the_capture_belong_together(
    tmp_path: Path, counted: ByteCounts, again_bytes: int, ok: bool
) -> None:
    for name in ("src-eth1", "dst-eth1"):
        write(tmp_path, name, sound())
    seen = read_captures(RESOLVED, tmp_path, LIMITS)
    assert [c.ok for c in check_counted(FLOWS[0], counted, seen, again_bytes, LIMITS)] == [ok]


@pytest.mark.parametrize(
    ("size_bytes", "oks"), [(100_000, [True, True]), (200_000, [True, False]), (500_000, [True])]
)
def test_a_flow_that_has_sent_its_size_is_suspect_unless_that_size_arrived(
    tmp_path: Path, size_bytes: int, oks: list[bool]
) -> None:
    """A flow that was stopped has not sent its size, and is not judged by it."""
    for name in ("src-eth1", "dst-eth1"):
        write(tmp_path, name, sound())
    seen = read_captures(RESOLVED, tmp_path, LIMITS)
    sized = replace(FLOWS[0], flow=FLOWS[0].flow.model_copy(update={"size_bytes": size_bytes}))
    checks = list(check_counted(sized, ByteCounts(400_000, 0), seen, 0, LIMITS))
    assert [check.ok for check in checks] == oks
    assert all(check.severity == "suspect" for check in checks if not check.ok)


@pytest.mark.parametrize(
    ("generator", "text", "counted"),
    [
        (
            "nuttcp",
            "megabytes=2.0 real_sec=1.00\nmegabytes=43.5 real_seconds=20.26\n",
            (45_613_056, 45_613_056),
        ),
        ("iperf", "2026,a,1,b,2,3,0.0-1.0,5,9\n2026,a,1,b,2,3,0.0-9.1,3000000,9\n", (3_000_000, 3_000_000)),
        ("iperf3", '"sum_sent": {"a": 1, "bytes": 30}, "sum_received": {"bytes": 20}', (30, 20)),
        ("iperf3", '{"error": "unable to connect"}', None),
    ],
)
def test_generators_tell_their_bytes(generator: str, text: str, counted: tuple[int, int] | None) -> None:
    counts = CATALOGUE.header("generator", generator, "linux").counts
    assert counts is not None
    assert counts.read(text) == counted


@pytest.mark.parametrize("pattern", ["(", "no group", "(two) (groups)"])
def test_a_pattern_of_a_header_holds_one_number(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"expression|one group"):
        CountPatterns(sent=pattern)


@pytest.mark.parametrize(
    ("sent_bytes", "left_packets", "ok"),
    [
        (123_000, 0, True),
        (230_000, 0, False),
        (230_000, 40, False),
        (30_000, 0, False),
        (30_000, 40, True),
    ],
)
def test_what_the_bottleneck_counted_is_what_arrived_and_more_only_while_packets_waited(
    tmp_path: Path, sent_bytes: int, left_packets: int, ok: bool
) -> None:
    for name in ("src-eth1", "dst-eth1"):
        write(tmp_path, name, sound())
    seen = read_captures(RESOLVED, tmp_path, LIMITS)
    policy = Policy(behind={"down": frozenset({DST}), "up": frozenset({SRC})})
    (check,) = check_bottleneck("down", "rtr", Through(sent_bytes, 0, 0, left_packets), seen, ["dst"], policy)
    assert (check.ok, check.severity) == (ok, "suspect")
    assert list(check_bottleneck("down", "rtr", Through(sent_bytes, 0, 0), Seen(), ["dst"], policy)) == []


@pytest.mark.parametrize(("idle", "ok"), [("1000 700", True), ("1000 610", False)])
def test_a_cpu_that_was_busy_all_the_time_makes_a_trial_suspect(idle: str, ok: bool) -> None:
    span = Span({"cpu.0": "0 0", "cpu.1": "500 600"}, {"cpu.0": "10 90", "cpu.1": idle})
    (check,) = check_cpu("src", span, LIMITS)
    assert (check.ok, check.severity, check.observed[:5]) == (ok, "suspect", "CPU 1")


@pytest.mark.parametrize(
    ("late", "step"),
    [("1000000000000 10.00 10.00", "+0.0 ms"), ("1000500000000 10.00 10.01", "+480.0 ms")],
)
def test_a_clock_that_stepped_is_told_from_one_that_was_read_slowly(late: str, step: str) -> None:
    span = Span({"clock": "999000000000 9.00 9.00"}, {"clock": late})
    (check,) = check_step("src", span, LIMITS)
    assert check.observed == step
    assert check.ok == (step == "+0.0 ms")


def test_a_delay_that_dropped_what_was_not_to_be_lost_is_named() -> None:
    way = PATH.down.model_copy(update={"loss": 0.0})
    path = PATH.model_copy(update={"down": way})
    span = Span({"stage.down": "0 0 0"}, {"stage.down": "60000 100 3"})
    (check,) = check_stages(path, span)
    assert str(check) == "drops at the delay down at rtr: requested 0, observed 3 of 103"
    assert not check.ok


@pytest.mark.parametrize(("drops", "ok"), [(9, True), (60, False)])
def test_losses_at_random_may_be_as_many_as_chance_allows(drops: int, ok: bool) -> None:
    span = Span({"stage.down": "0 0 0"}, {"stage.down": f"600000 {10_000 - drops} {drops}"})
    (check,) = check_stages(PATH, span)
    assert check.ok == ok


@pytest.mark.parametrize(
    ("rate_bps", "verdict"), [(12e6, "valid"), (11.9e6, "valid"), (11e6, "suspect"), (6e6, "invalid")]
)
def test_the_rate_while_packets_wait_is_that_of_the_path(
    tmp_path: Path, rate_bps: float, verdict: str
) -> None:
    rows = [
        f"{n * 10_000_000},eth2,pfifo,10:,1:1,60000,{100 if n else 0},{int(n * rate_bps / 800)}"
        for n in range(200)
    ]
    trace = tmp_path / "rtr-queue.csv.gz"
    head = "t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes"
    trace.write_bytes(gzip.compress("\n".join([head, *rows]).encode()))
    assert verdict_of(check_rate(PATH.down, "rtr", trace, LIMITS))[0] == verdict


def test_settings_are_compared_one_by_one_with_what_was_found_after_the_traffic() -> None:
    wanted, found = (
        ["cc=reno", "qdisc.eth2.10:*=limit 5p"],
        {"cc": "cubic", "qdisc.eth2.10:": "pfifo limit 5p"},
    )
    checks = list(check_settings("src", compared(wanted, found)))
    assert [(check.ok, check.observed) for check in checks] == [(False, "cubic"), (True, "pfifo limit 5p")]
    assert verdict_of(checks)[0] == "invalid"


@pytest.mark.parametrize(("late_s", "ok"), [(0.05, True), (-0.05, True), (0.5, False), (-0.5, False)])
def test_a_flow_that_began_at_another_time_makes_a_trial_suspect(late_s: float, ok: bool) -> None:
    (check,) = check_starts([{"flow": "bulk", "host": "src", "late_s": late_s}], LIMITS.late_s)
    assert (check.ok, check.severity) == (ok, "suspect")


@pytest.mark.parametrize(
    ("offset_s", "stepped", "ok"), [(0.2, False, True), (1.5, False, False), (0.0, True, False)]
)
def test_a_clock_far_off_or_unsteady_makes_a_trial_suspect(offset_s: float, stepped: bool, ok: bool) -> None:
    (check,) = check_clocks([ClockOffset("src", offset_s, 0.001, stepped)], 1.0)
    assert check.ok == ok


@pytest.mark.parametrize(
    ("drift", "ok", "observed"),
    [
        (None, True, "not known from its readings"),
        (Drift(-3.04, 12.0), True, "-3.0 to +12.0 ppm"),
        (Drift(-40.0, 70.0), True, "-40.0 to +70.0 ppm, too wide to tell"),
        (Drift(49.0, 75.0), True, "+49.0 to +75.0 ppm, too wide to tell"),
        (Drift(61.0, 75.0), False, "at least 61.0 ppm (+61.0 to +75.0 ppm)"),
        (Drift(-400.0, -200.0), False, "at least 200.0 ppm (-400.0 to -200.0 ppm)"),
    ],
)
def test_a_clock_that_certainly_drifts_makes_a_trial_suspect(
    drift: Drift | None, ok: bool, observed: str
) -> None:
    (check,) = check_drift([ClockOffset("dst", 0.0, 0.001, drift=drift)], LIMITS.clock_drift_ppm)
    assert (check.ok, check.observed) == (ok, observed)
    verdict, reasons = verdict_of([check])
    said = f"clock drift at dst: requested at most 50 ppm against this machine's, observed {observed}"
    assert (verdict, reasons) == (("valid", ()) if ok else ("suspect", (said,)))


@pytest.mark.parametrize(("threshold", "ok"), [("50ppm", False), ("70ppm", True)])
def test_a_trial_is_judged_by_the_drift_that_its_experiment_lets_pass(
    tmp_path: Path, threshold: str, ok: bool
) -> None:
    seen = Evidence(clocks={"dst": ClockOffset("dst", 0.0, 0.001, drift=Drift(61.0, 75.0))})
    policy = Policy(thresholds=Thresholds.model_validate({"clock_drift": threshold}))
    scripts = TrialScripts(TRIAL, CATALOGUE, "verdicts")
    checks = [one for one in checks_of(seen, scripts, tmp_path, policy) if one.check == "clock drift"]
    assert [(one.host, one.ok) for one in checks] == [("dst", ok)]


def test_what_an_experiment_says_of_the_verdict_lies_over_what_is_configured() -> None:
    site = Thresholds.model_validate({"cpu": "80%", "late": "1s"})
    both = site.under(Thresholds.model_validate({"late": "10ms"}))
    assert (both.cpu, both.late_s, both.competing) == (0.8, 0.01, LIMITS.competing)


def test_a_testbed_tells_what_lies_behind_its_bottleneck_and_how_many_routers_between() -> None:
    testbed = load_testbed(ROOT / "hosts" / "lab.yaml")
    study = load_experiment(ROOT / "experiments" / "demo.yaml", CATALOGUE).experiment
    policy = policy_of(study, testbed, Config(), {})
    assert policy.behind == {"down": frozenset({DST}), "up": frozenset({SRC})}
    assert policy.routers[SRC, DST] == 1
    assert not policy.calibrate
    assert policy_of(study, testbed.model_copy(update={"lab": None}), Config(), {}).calibrate
    assert policy_of(study, testbed, Config.model_validate({"calibrate": "on"}), {}).calibrate
    assert policy.retries == 2


def test_the_ends_of_a_way_are_those_of_a_flow_through_it_in_either_direction() -> None:
    assert endpoints_of(RESOLVED, frozenset({DST})) == Endpoints("src", "dst", DST)
    assert endpoints_of(RESOLVED, frozenset({SRC})) == Endpoints("dst", "src", SRC)
    assert endpoints_of(RESOLVED, frozenset()) is None


def test_what_the_end_of_a_trial_printed_has_three_parts() -> None:
    text = f"cpu.0=1 2\n{FOUND}\ncc=reno\n{RESTORED}\ncc=cubic\n"
    assert split_finish_output(text) == ("cpu.0=1 2\n", "cc=reno\n", "cc=cubic\n")


def test_a_capture_at_a_host_that_is_no_end_of_a_flow_is_judged_too(tmp_path: Path) -> None:
    plan = CapturePlan(host="rtr", interface="eth2", snaplen_bytes=96)
    resolved = RESOLVED.model_copy(update={"captures": (plan,)})
    write(tmp_path, "rtr-eth2", [*sound(), *strangers(5999)])
    seen = read_captures(resolved, tmp_path, LIMITS)
    found = [check.host for check in check_wire(resolved, FLOWS, seen, Policy()) if not check.ok]
    assert found == ["rtr"]


def test_a_trial_that_was_not_started_for_its_path_is_open_with_the_reason() -> None:
    entry = Entry(1.0, "trial-refused", {"id": "a", "reasons": ["the path is not as asked for"]})
    trial = fold([entry]).trials["a"]
    assert (trial.status, trial.reasons, trial.attempts) == ("failed", ("the path is not as asked for",), 0)
    assert is_open(trial)


def test_a_threshold_is_set_on_the_command_line_too() -> None:
    study = Controller(ROOT).project.plan("demo", "", "", ["verdict.cpu=80%", "calibrate=on"])
    assert (study.experiment.verdict.cpu, study.experiment.calibrate) == (0.8, "on")
    with pytest.raises(DefinitionError, match="did you mean 'cpu'"):
        Controller(ROOT).project.plan("demo", "", "", ["verdict.cpuu=80%"])


def test_large_segments_are_no_fault_where_an_offload_was_asked_for(tmp_path: Path) -> None:
    host = RESOLVED.hosts["src"].model_copy(update={"settings": {"offloads": {"tso": "on"}}})
    resolved = RESOLVED.model_copy(update={"hosts": {**RESOLVED.hosts, "src": host}})
    for name in ("src-eth1", "dst-eth1"):
        write(tmp_path, name, [*sound(), segment(SRC, DST, (40_000, 5001), 9000, ttl=63)])
    checks = check_wire(resolved, FLOWS, read_captures(resolved, tmp_path, LIMITS), Policy())
    assert [check for check in checks if not check.ok] == []


def test_bytes_are_not_compared_where_a_capture_was_not_read_to_its_end(tmp_path: Path) -> None:
    for name in ("src-eth1", "dst-eth1"):
        write(tmp_path, name, sound())
    seen = read_captures(RESOLVED, tmp_path, Thresholds.model_validate({"capture_packets": "10"}))
    assert list(check_counted(FLOWS[0], ByteCounts(9, 9), seen, 0, LIMITS)) == []
    assert [(check.ok, check.observed) for check in seen.checks] == [(True, "the first 10 packets read")] * 2


def told(host: str, text: str) -> ScriptResult:
    return ScriptResult(host, "stop", "", 0, text.encode(), b"", 1795271645.0, 0.1)


def test_each_host_tells_by_its_own_clock_when_all_traffic_was_over_and_when_its_clients_began() -> None:
    seen = Evidence()
    seen.hear(
        {
            "src": told(
                "src", "exit bulk-client 0\nbulk-client.pid 1795271600.25\norder-stop 1795271606.125\n"
            ),
            "dst": told("dst", "exit bulk-server 0\norder-stop 1795271606.375\n"),
            "rtr": told("rtr", "exit rtr-queue 0\n"),
        }
    )
    assert seen.over == {"src": 1795271606.125, "dst": 1795271606.375}
    assert seen.began == {"bulk-client": 1795271600.25}


def test_a_file_system_that_keeps_whole_seconds_may_have_cut_one_off() -> None:
    seen = Evidence()
    seen.hear({"src": told("src", "order-stop 1795271606.000000000\n")})
    assert seen.over == {"src": 1795271607.0}
