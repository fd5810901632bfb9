"""The checks of a trial's verdict, on synthetic captures, counters and readings."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from samovar.campaign.calibration.path_calibration import Endpoints, endpoints_of
from samovar.campaign.clocks import ClockOffset, Drift
from samovar.campaign.journal import Entry, fold, is_open
from samovar.campaign.policy import Policy, policy_of
from samovar.campaign.verdict import Check, CounterSpan, Evidence, run_checks, short_reasons, verdict_of
from samovar.campaign.verdict.capture_checks import (
    check_captures_complete,
    check_competing_traffic,
    check_flow_bytes,
    check_frame_sizes,
    check_mss,
    check_receive_windows,
    check_routers,
    compare_flow_bytes,
)
from samovar.campaign.verdict.host_checks import (
    check_clock_drift,
    check_clock_offsets,
    check_clock_steps,
    check_cpus,
    check_foreign_shaping,
    check_network,
    check_restored_states,
    check_settings,
)
from samovar.campaign.verdict.path_checks import (
    check_bottleneck_bytes,
    check_delay_drops,
    check_queue_samples,
)
from samovar.campaign.verdict.pcap_reader import TCP, CaptureSummary, PacketStream, read_capture
from samovar.campaign.verdict.program_checks import check_start_times
from samovar.cli.controller import Controller
from samovar.cli.project import Request
from samovar.errors import DefinitionError
from samovar.experiment import Config, keys, load_experiment, load_testbed
from samovar.hosts import ScriptResult
from samovar.plan import CapturePlan, ClassPlan, LoggerPlan, Resolved, WlanPlan
from samovar.recipes import ByteCounts, CountPatterns, split_finish_output
from samovar.recipes.scripts import FOUND, RESTORED
from tests.unit.campaign.evidence_sample import evidence_of, with_flow
from tests.unit.plans import CATALOGUE
from tests.unit.trials import PATH, RESOLVED

ROOT = Path(__file__).parents[3]
LIMITS = keys.Thresholds()
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
    fragment: int = 0,
) -> tuple[bytes, int]:
    """Make the headers of a frame, and the size that it has on the wire."""
    ends = b"".join(bytes(map(int, address.split("."))) for address in (source, destination))
    tcp = struct.pack(
        ">HHIIBBHHH", *ports, 1, 1, (20 + len(options)) // 4 << 4, flags, window, 0, 0
    ) if protocol == 6 else struct.pack(">HHHH", *ports, 8, 0) + bytes(12)  # fmt: skip
    ip_bytes = 40 + len(options) + payload_bytes
    ip = struct.pack(">BBHHHBBH", 0x45, 0, ip_bytes, 0, fragment or 0x4000, ttl, protocol, 0)
    headers = bytes(12) + b"\x08\x00" + ip + ends + tcp + options
    return headers, len(headers) + payload_bytes


def syn(source: str, destination: str, ports: tuple[int, int], mss: int, scale: int) -> tuple[bytes, int]:
    """Make a SYN with a maximum segment size and a window scale."""
    options = struct.pack(">BBH", 2, 4, mss) + b"\x01" + bytes((3, 3, scale))
    return segment(source, destination, ports, flags=SYN, window=65535, options=options, ttl=63)


def write(folder: Path, name: str, frames: Sequence[tuple[bytes, int]], snaplen: int = 96) -> Path:
    """Write these frames as a capture of a trial, cut to `snaplen` bytes each."""
    file = folder / "traces" / f"{name}.pcap.gz"
    file.parent.mkdir(exist_ok=True)
    packets = ((kept[:snaplen], size) for kept, size in frames)
    records = (struct.pack("<IIII", 1, 2, len(kept), size) + kept for kept, size in packets)
    file.write_bytes(gzip.compress(HEAD + b"".join(records)))
    return file


def requested_flow(mss: int = 560, window: int = 39_058, ttl: int = 63) -> list[tuple[bytes, int]]:
    """Make the sample trial's first flow as captured at its receiver, with a window of 9,998,848 bytes."""
    up, down = (5001, 40_000), (40_000, 5001)
    return [
        syn(SRC, DST, down, 560, 7),
        syn(DST, SRC, up, mss, 8),
        *(segment(SRC, DST, down, 560, ttl=ttl) for _ in range(200)),
        *(segment(DST, SRC, up, window=window) for _ in range(100)),
    ]


def large_flow(window: int) -> list[tuple[bytes, int]]:
    """Make the flow of requested_flow() with this window, and with enough data to open any window."""
    return [*requested_flow(window=window), *[segment(SRC, DST, (40_000, 5001), 560, ttl=63)] * 80_000]


TTL_AT = 14 + 8
"""Offset in a frame of the time to live, which is the ninth byte of the IPv4 header (RFC 791)."""


def before_a_router(frames: Sequence[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    """Return the received frames as they were sent, with a TTL that one router has not yet reduced."""
    return [(data[:TTL_AT] + bytes([data[TTL_AT] + 1]) + data[TTL_AT + 1 :], size) for data, size in frames]


def judge(
    folder: Path,
    frames: Sequence[tuple[bytes, int]],
    policy: Policy | None = None,
    sent: Sequence[tuple[bytes, int]] | None = None,
) -> dict[str, Check]:
    """Run the capture checks on the sample trial with captures of these frames at both ends, one router apart."""
    write(folder, "src-eth1", before_a_router(frames) if sent is None else sent)
    write(folder, "dst-eth1", frames)
    return by_name(capture_checks(evidence_of(folder, policy=policy or Policy(routers={(SRC, DST): 1}))))


def capture_checks(evidence: Evidence) -> list[Check]:
    """Run the checks that need only captures."""
    functions = (
        *(check_captures_complete, check_frame_sizes, check_competing_traffic),
        *(check_mss, check_receive_windows, check_routers),
    )
    return [check for function in functions for check in function(evidence)]


def by_name(checks: list[Check]) -> dict[str, Check]:
    """Return checks by name and host; of two checks with the same name, the failed one."""
    ordered = sorted(checks, key=lambda check: not check.ok)
    return {f"{check.name} at {check.host}": check for check in ordered}


def captured_at_both_ends(folder: Path, policy: Policy | None = None, **fields: Any) -> Evidence:
    """Make evidence of the sample trial with captures of the requested flow at both ends."""
    for name in ("src-eth1", "dst-eth1"):
        write(folder, name, requested_flow())
    return evidence_of(folder, policy=policy, **fields)


def failed(checks: dict[str, Check]) -> dict[str, str]:
    """Return the observed value of each failed check, by the check's name and host."""
    return {name: check.observed for name, check in checks.items() if not check.ok}


def test_packets_bytes_windows_and_options_are_read_from_a_capture_by_direction(tmp_path: Path) -> None:
    capture = read_capture(write(tmp_path, "dst-eth1", requested_flow()), 10_000)
    data, answers = capture
    assert (capture.packets, capture.whole, capture.torn) == (302, True, False)
    assert (str(data), data.packets, data.payload_bytes) == (
        f"TCP {SRC}:40000 > {DST}:5001",
        201,
        200 * 560 + 8,
    )
    assert (data.mss_bytes, data.scale, data.ttls, data.largest_bytes) == (560, 7, {63}, 614)
    assert (answers.window_bytes, answers.mss_bytes) == (9_998_848, 560)


def test_a_capture_is_read_up_to_the_packet_limit(tmp_path: Path) -> None:
    capture = read_capture(write(tmp_path, "dst-eth1", requested_flow()), 100)
    assert (capture.packets, capture.whole) == (100, False)


def test_a_capture_that_ends_within_a_packet_is_torn(tmp_path: Path) -> None:
    file = write(tmp_path, "dst-eth1", requested_flow())
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes())[:-7]))
    capture = read_capture(file, 10_000)
    assert (capture.packets, capture.torn) == (301, True)
    write(tmp_path, "src-eth1", requested_flow())
    checks = {
        check.host: (check.observed, check.ok) for check in check_captures_complete(evidence_of(tmp_path))
    }
    assert checks == {"src": ("302 packets", True), "dst": ("301 packets, the last one cut off", False)}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        gzip.compress(b"no capture, but long enough to be one"),
        gzip.compress(HEAD[:20]),
        gzip.compress(HEAD[:20] + struct.pack("<I", 113)),  # a capture of all interfaces
        gzip.compress(HEAD + struct.pack("<IIII", 1, 2, 300_000, 300_000)),
    ],
)
def test_a_capture_that_cannot_be_read_makes_the_trial_invalid(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "src-eth1", requested_flow())
    write(tmp_path, "dst-eth1", requested_flow()).write_bytes(content)
    checks = check_captures_complete(evidence_of(tmp_path))
    assert [(check.host, check.ok, check.severity) for check in checks] == [
        ("src", True, "invalid"),
        ("dst", False, "invalid"),
    ]


def test_a_captured_packet_may_consist_of_headers_only(tmp_path: Path) -> None:
    udp = bytes(12) + b"\x08\x00\x45" + bytes(8) + b"\x11" + bytes(18)
    file = tmp_path / "short.pcap.gz"
    file.write_bytes(gzip.compress(HEAD + struct.pack("<IIII", 1, 2, len(udp), len(udp)) + udp))
    (stream,) = read_capture(file, 10)
    assert (stream.packets, stream.header_bytes) == (1, 42)


def test_a_capture_with_less_than_the_headers_of_a_packet_is_refused(tmp_path: Path) -> None:
    udp = bytes(12) + b"\x08\x00\x45" + bytes(8) + b"\x11" + bytes(8)
    whole = bytes(60)
    packets = (struct.pack("<IIII", 1, 2, len(one), 60) + one for one in (udp, whole))
    file = tmp_path / "short.pcap.gz"
    file.write_bytes(gzip.compress(HEAD + b"".join(packets)))
    with pytest.raises(ValueError, match="a packet is cut off within its headers"):
        read_capture(file, 10)


@settings(max_examples=200)
@given(st.sampled_from([b"", bytes(12) + b"\x08\x00\x45"]), st.binary(max_size=300))
@example(bytes(12) + b"\x08\x00\x45", b"")
def test_packets_with_any_content_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, start: bytes, rest: bytes
) -> None:
    data, file = start + rest, tmp_path_factory.getbasetemp() / "hostile.pcap.gz"
    file.write_bytes(gzip.compress(HEAD + struct.pack("<IIII", 1, 2, len(data), len(data)) + data))
    try:
        assert read_capture(file, 10).packets == 1
        assert data[12:15] != b"\x08\x00\x45" or len(data) > 23
    except ValueError as error:
        assert "cut off" in str(error)
        assert data[12:15] == b"\x08\x00\x45"


def test_captures_of_the_requested_flow_pass_every_check(tmp_path: Path) -> None:
    checks = judge(tmp_path, requested_flow())
    assert failed(checks) == {}
    assert checks["routers on the path of flow bulk at dst"].observed == "1 (TTL 63)"


@pytest.mark.parametrize(
    ("frames", "name", "observed"),
    [
        (requested_flow(mss=1460), "MSS offered by dst in flow bulk at dst", "1460 B"),
        (requested_flow(window=40_000), "largest window offered to flow bulk at dst", "10240000 B"),
        (large_flow(window=2_000), "largest window offered to flow bulk at dst", "512000 B"),
        ([*requested_flow(), segment(SRC, DST, (40_000, 5001), 9000)], "largest frame in the capture at eth1 (offloads) at src", "9054 B"),
    ],
)  # fmt: skip
def test_a_deviation_from_the_request_is_reported_with_the_observed_value(
    tmp_path: Path, frames: list[tuple[bytes, int]], name: str, observed: str
) -> None:
    assert failed(judge(tmp_path, frames))[name] == observed


@pytest.mark.parametrize(
    ("mss", "offered", "requested", "ok"),
    [
        ("500B", (500, 560), "500 or 560 B", True),  # iperf and nuttcp set the MSS at the client only
        ("500B", (500, 500), "500 or 560 B", True),  # iperf3 sets the MSS at both ends
        ("500B", (536, 560), "500 or 560 B", False),
        ("1000B", (560, 560), "560 B", True),  # the kernel offers no larger MSS than the MTU allows
    ],
)
def test_the_mss_that_a_generator_sets_is_accepted_beside_that_of_the_mtu(
    tmp_path: Path, mss: str, offered: tuple[int, int], requested: str, ok: bool
) -> None:
    resolved = with_flow(RESOLVED.flows[0].model_copy(update={"parameters": {"mss": mss}}))
    write(
        tmp_path, "dst-eth1", [syn(SRC, DST, (40_000, 5001), offered[0], 7), *requested_flow(offered[1])[1:]]
    )
    by_src, by_dst = check_mss(evidence_of(tmp_path, resolved))
    assert (by_src.requested, by_src.observed, by_src.ok) == (requested, f"{offered[0]} B", ok)
    assert by_dst.ok


@pytest.mark.parametrize(("rwnd_bytes", "least"), [(65_535, 0), (65_536, 1), (9_999_000, 8)])
def test_the_window_scale_must_be_large_enough_for_the_requested_window(
    tmp_path: Path, rwnd_bytes: int, least: int
) -> None:
    resolved = with_receiver(rwnd_bytes=rwnd_bytes)
    unscaled = segment(DST, SRC, (5001, 40_000), flags=SYN, options=struct.pack(">BBH", 2, 4, 560))
    for answer, scale in ((requested_flow()[1], 8), (unscaled, 0)):
        write(tmp_path, "dst-eth1", [requested_flow()[0], answer, *requested_flow()[2:]])
        check, *_ = check_receive_windows(evidence_of(tmp_path, resolved))
        assert (check.requested, check.observed, check.ok) == (
            f"{least} or more",
            str(scale),
            scale >= least,
        )


def with_receiver(**changes: Any) -> Resolved:
    """Return the resolved values of the sample trial with these changes of its receiver."""
    return RESOLVED.model_copy(
        update={"hosts": {**RESOLVED.hosts, "dst": RESOLVED.hosts["dst"].model_copy(update=changes)}}
    )


def test_windows_and_mss_that_a_trial_does_not_set_are_not_judged(tmp_path: Path) -> None:
    write(tmp_path, "dst-eth1", requested_flow(mss=1460, window=40_000))
    evidence = evidence_of(tmp_path, with_receiver(rwnd_bytes=None, mtu_bytes=None))
    assert list(check_receive_windows(evidence)) == []
    assert [check.host for check in check_mss(evidence)] == ["src"]


def test_a_flow_is_judged_by_the_capture_at_its_sender_if_the_receiver_has_none(tmp_path: Path) -> None:
    write(tmp_path, "src-eth1", requested_flow(mss=1460))
    evidence = evidence_of(tmp_path, policy=Policy(routers={(SRC, DST): 1}))
    checks = by_name(capture_checks(evidence))
    assert checks["MSS offered by dst in flow bulk at dst"].observed == "1460 B"
    assert not [name for name in checks if name.startswith("routers")]


@pytest.mark.parametrize(
    ("own_bytes", "of_trial_bytes", "requested"),
    [(600, 1500, "at most 614 B"), (None, 600, "at most 614 B"), (None, None, None)],
)
def test_frames_are_compared_with_the_mtu_of_their_host_or_else_of_the_trial(
    tmp_path: Path, own_bytes: int | None, of_trial_bytes: int | None, requested: str | None
) -> None:
    write(tmp_path, "dst-eth1", requested_flow())
    (tmp_path / "traces" / "src-eth1.pcap.gz").write_bytes(b"no gzip")
    resolved = with_receiver(mtu_bytes=own_bytes).model_copy(update={"mtu_bytes": of_trial_bytes})
    checks = [
        (check.host, check.requested, check.ok)
        for check in check_frame_sizes(evidence_of(tmp_path, resolved))
    ]
    assert checks == ([("dst", requested, True)] if requested else [])


@pytest.mark.parametrize("interfaces", [("eth0", "eth1"), ("eth1", "eth0")])
def test_a_flow_is_judged_by_the_capture_at_the_interface_that_it_passes(
    tmp_path: Path, interfaces: tuple[str, ...]
) -> None:
    captures = tuple(CapturePlan(host="dst", interface=one, snaplen_bytes=96) for one in interfaces)
    write(tmp_path, "dst-eth0", other_traffic(22))
    write(tmp_path, "dst-eth1", requested_flow(mss=1460, window=40_000))
    resolved = RESOLVED.model_copy(update={"captures": captures})
    checks = capture_checks(evidence_of(tmp_path, resolved, Policy(routers={(SRC, DST): 2})))
    assert failed(by_name(checks)) == {
        "MSS offered by dst in flow bulk at dst": "1460 B",
        "largest window offered to flow bulk at dst": "10240000 B",
        "routers on the path of flow bulk at dst": "1 (TTL 63)",
    }


def test_tcp_options_that_are_cut_off_in_a_capture_are_not_judged(tmp_path: Path) -> None:
    """The first 68 bytes of a SYN from Linux lack the window scale, which is its last option."""
    options = struct.pack(">BBHBBBBII", 2, 4, 560, 4, 2, 8, 10, 1, 0) + bytes((1, 3, 3, 8))
    syns = [
        segment(*ends, flags=SYN, window=65535, options=options, ttl=63)
        for ends in ((SRC, DST, (40_000, 5001)), (DST, SRC, (5001, 40_000)))
    ]
    frames = [*syns, *requested_flow()[2:]]
    for snaplen, names in ((68, []), (74, ["MSS offered by dst", "MSS offered by src", "window scale of"])):
        write(tmp_path, "src-eth1", before_a_router(frames), snaplen)
        write(tmp_path, "dst-eth1", frames, snaplen)
        checks = by_name(capture_checks(evidence_of(tmp_path)))
        assert failed(checks) == {}
        found = (name.partition(" flow")[0] for name in checks)
        assert (
            sorted(name.removesuffix(" in") for name in found if name.startswith(("MSS", "window"))) == names
        )


def test_the_window_of_a_flow_with_too_little_data_to_open_it_is_not_judged(tmp_path: Path) -> None:
    assert failed(judge(tmp_path, requested_flow(window=2_000))) == {}


def test_a_flow_on_another_path_is_detected_by_its_time_to_live(tmp_path: Path) -> None:
    frames = [segment(SRC, DST, (40_000, 5001), 560, ttl=ttl) for ttl in (64, 64)]
    observed = failed(judge(tmp_path, frames, sent=frames))
    assert observed == {"routers on the path of flow bulk at dst": "0 (TTL 64)"}


def test_routers_are_counted_from_the_sender_s_time_to_live(tmp_path: Path) -> None:
    frames = [segment(SRC, DST, (40_000, 5001), 560, ttl=ttl) for ttl in (49, 49)]
    assert failed(judge(tmp_path, frames)) == {}
    without_sender = failed(judge(tmp_path, frames, sent=[]))
    assert without_sender == {"routers on the path of flow bulk at dst": "15 (TTL 49)"}, (
        "without packets at the sender, its TTL is taken as 64"
    )


def other_traffic(port: int, packets: int = 100, **fields: Any) -> list[tuple[bytes, int]]:
    """Make traffic that belongs to no flow."""
    return [segment(SRC, DST, (50_000, port), 560, **fields) for _ in range(packets)]


def test_competing_traffic_is_reported_with_its_addresses_and_ports(tmp_path: Path) -> None:
    found = failed(judge(tmp_path, [*requested_flow(), *other_traffic(5999)]))
    assert found["competing traffic at eth1 at dst"] == (
        f"61400 B of 189724 B, most of it TCP {SRC}:50000 > {DST}:5999 (100 packets, 61400 B)"
    )


@pytest.mark.parametrize(
    "more",
    [
        other_traffic(22),
        other_traffic(123, protocol=17),
        other_traffic(5999, packets=20),
        [(bytes(12) + b"\x08\x06" + bytes(46), 60)] * 500,
        [segment(SRC, "224.0.0.251", (5999, 5999), 560, protocol=17)] * 100,
        [segment(SRC, "172.16.10.255", (5999, 5999), 560, protocol=17)] * 100,
        [segment(SRC, DST, (0, 0), 560, protocol=2)] * 100,
    ],
    ids=["ssh", "ntp", "few packets", "arp", "multicast", "broadcast", "igmp"],
)
def test_housekeeping_and_small_amounts_of_other_traffic_do_not_count_as_competing(
    tmp_path: Path, more: list[tuple[bytes, int]]
) -> None:
    assert failed(judge(tmp_path, [*requested_flow(), *more])) == {}


@pytest.mark.parametrize(
    ("generator", "more", "belongs"),
    [
        ("nuttcp", segment(SRC, DST, (40_001, 7001), 560), True),
        ("nuttcp", segment(SRC, DST, (40_001, 3001), 560), False),
        ("iperf3", segment(SRC, DST, (40_001, 7001), 560), False),
        ("iperf3", segment(SRC, "172.16.11.3", (40_000, 5001), 560), False),
        ("iperf3", segment(SRC, DST, (0, 0), 560, protocol=1), False),
        ("ping", segment(SRC, DST, (0, 0), 560, protocol=1), True),
        ("command", segment(SRC, DST, (7, 7), 560), True),
        ("iperf3-udp", segment(SRC, DST, (8192, 8193), 560, protocol=17), False),
        ("iperf3-udp", segment(SRC, DST, (8192, 8193), 560, protocol=17, fragment=0x2005), True),
        ("iperf3-udp", segment(SRC, DST, (8192, 8193), 560, protocol=17, fragment=0x0100), True),
    ],
)
def test_packets_belong_to_a_flow_by_addresses_protocol_and_the_ports_of_its_generator(
    tmp_path: Path, generator: str, more: tuple[bytes, int], belongs: bool
) -> None:
    write(tmp_path, "dst-eth1", [more] * 100)
    resolved = with_flow(RESOLVED.flows[0].model_copy(update={"generator": generator}))
    (check,) = (one for one in check_competing_traffic(evidence_of(tmp_path, resolved)) if one.host == "dst")
    assert (check.ok, check.verdict) == ((True, "valid") if belongs else (False, check.severity))


def test_the_header_of_a_generator_lists_its_ports() -> None:
    headers = {name: CATALOGUE.header("generator", name, "linux") for name in ("nuttcp", "command", "iperf3")}
    assert {name: header.ports for name, header in headers.items()} == {
        "nuttcp": (0, 2000),
        "command": (),
        "iperf3": (0,),
    }


@pytest.mark.parametrize(
    ("counted", "dropped", "ok"),
    [
        (ByteCounts(112_000, 112_000), 0, True),
        (ByteCounts(400_000, 100_000), 0, True),
        (ByteCounts(250_000, 250_000), 0, False),
        (ByteCounts(250_000, None), 0, True),  # iperf ended while the rest was in its socket buffer
        (ByteCounts(20_000, 20_000), 0, False),
        (ByteCounts(20_000, 20_000), 40, True),
    ],
)
def test_the_bytes_that_a_generator_counted_are_compared_with_a_capture(
    tmp_path: Path, counted: ByteCounts, dropped: int, ok: bool
) -> None:
    span = CounterSpan({"queue.down": "0 0 0"}, {"queue.down": f"0 0 {dropped}"})
    evidence = captured_at_both_ends(tmp_path, counters={"rtr": span})
    ends = evidence.scripts.flows[0]
    ends = replace(ends, flow=ends.flow.model_copy(update={"parameters": {"length": "8000B"}}))
    checks = compare_flow_bytes(evidence, ends, counted)
    assert [check.ok for check in checks] == [ok]


@pytest.mark.parametrize(("sent_bytes", "ok"), [(114_400, True), (250_000, False), (20_000, False)])
def test_the_bytes_of_a_udp_flow_are_compared_with_the_capture_at_its_sender(
    tmp_path: Path, sent_bytes: int, ok: bool
) -> None:
    frames = [segment(SRC, DST, (40_000, 5001), 560, protocol=17)] * 200  # 572 bytes of UDP each
    write(tmp_path, "src-eth1", frames)
    write(tmp_path, "dst-eth1", frames[:9])
    evidence = evidence_of(
        tmp_path, with_flow(RESOLVED.flows[0].model_copy(update={"generator": "iperf3-udp"}))
    )
    (check,) = compare_flow_bytes(evidence, evidence.scripts.flows[0], ByteCounts(sent_bytes, None))
    assert check.reason == (
        f"bytes of flow bulk in the capture at src: requested {sent_bytes} B sent by the generator's count "
        "± 2.0%, observed 114400 B"
    )
    assert check.ok == ok


def test_the_counted_bytes_of_a_flow_are_read_from_the_output_of_its_generator(tmp_path: Path) -> None:
    evidence = captured_at_both_ends(tmp_path)
    assert list(check_flow_bytes(evidence)) == []
    (tmp_path / "logs").mkdir()
    text = b'"sum_sent": {"bytes": 300000}, "sum_received": {"bytes": 290000}'
    (tmp_path / "logs" / "bulk-client.out.gz").write_bytes(gzip.compress(text))
    (check,) = check_flow_bytes(evidence)
    assert (check.requested, check.observed, check.ok) == (
        "300000 B sent and 290000 B received by the generator's count",
        "112008 B",
        False,
    )
    six = RESOLVED.flows[0].model_copy(update={"from_address": "fd00::1", "to_address": "fd00::2"})
    assert list(check_flow_bytes(evidence_of(tmp_path, with_flow(six)))) == []


@pytest.mark.parametrize("duplicate", [None, 0.0, 0.5])
def test_packets_that_the_path_duplicates_may_be_captured_twice(
    tmp_path: Path, duplicate: float | None
) -> None:
    frames = [*requested_flow(), *[segment(SRC, DST, (40_000, 5001), 560, ttl=63)] * 400]
    write(tmp_path, "dst-eth1", frames)
    path = (
        None
        if duplicate is None
        else PATH.model_copy(update={"up": PATH.up.model_copy(update={"duplicate": duplicate})})
    )
    evidence = evidence_of(tmp_path, RESOLVED.model_copy(update={"path": path}))
    ends = evidence.scripts.flows[0]
    ends = replace(ends, flow=ends.flow.model_copy(update={"parameters": {"length": "8000B"}}))
    (check,) = compare_flow_bytes(evidence, ends, ByteCounts(200_000, 200_000))
    assert check.ok == (duplicate == 0.5)


@pytest.mark.parametrize(
    ("parameters", "size_bytes", "ok"),
    [
        ({}, None, True),
        ({"length": "1MiB"}, None, True),
        ({"length": "8000B"}, None, False),
        ({}, 1_966_080, False),
    ],
)
def test_a_capture_may_have_one_block_more_than_iperf3_counted_in_a_flow_with_a_duration(
    monkeypatch: pytest.MonkeyPatch, parameters: dict[str, str], size_bytes: int | None, ok: bool
) -> None:
    """The numbers are from a flow of 10 s on FreeBSD 14.0-STABLE, in which iperf3 counted 15 blocks of 128 KiB."""
    stream = PacketStream(TCP, SRC, DST, (40000, 5001), frame_bytes=2_082_402)
    capture = CaptureSummary({(TCP, b""): stream})
    monkeypatch.setattr(Evidence, "captures_at", lambda *_, **__: [capture])
    evidence = evidence_of()
    ends = evidence.scripts.flows[0]
    flow = ends.flow.model_copy(update={"parameters": parameters, "size_bytes": size_bytes})
    check, *_ = compare_flow_bytes(evidence, replace(ends, flow=flow), ByteCounts(1_966_080, 1_966_080))
    assert check.ok == ok


@pytest.mark.parametrize(
    ("size_bytes", "oks"), [(100_000, [True, True]), (200_000, [True, False]), (500_000, [True])]
)
def test_a_flow_that_has_sent_its_requested_size_is_suspect_unless_that_size_arrived(
    tmp_path: Path, size_bytes: int, oks: list[bool]
) -> None:
    """A flow that was stopped early has not sent its requested size, so the arrived size is not checked."""
    evidence = captured_at_both_ends(tmp_path)
    ends = evidence.scripts.flows[0]
    sized = replace(ends, flow=ends.flow.model_copy(update={"size_bytes": size_bytes}))
    checks = list(compare_flow_bytes(evidence, sized, ByteCounts(400_000, 0)))
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
        (
            "nuttcp-udp",
            "megabytes=0.3712 real_seconds=3.16 rate_Mbps=0.9840 tx_cpu=29 rx_cpu=0 drop=794 pkt=1072 "
            "data_loss=74.06553\n",
            (1_500_800, None),
        ),
        ("iperf", "2026,a,1,b,2,3,0.0-1.0,5,9\n2026,a,1,b,2,3,0.0-9.1,3000000,9\n", (3_000_000, None)),
        ("iperf3", '"sum_sent": {"a": 1, "bytes": 30}, "sum_received": {"bytes": 20}', (30, 20)),
        ("iperf3", '{"error": "unable to connect"}', None),
    ],
)
def test_the_bytes_that_a_generator_counted_are_read_from_its_output(
    generator: str, text: str, counted: tuple[int, int] | None
) -> None:
    recipe = CATALOGUE.recipe("generator", generator, "linux")
    assert recipe.header.counts is not None
    assert recipe.header.counts.read(text, recipe.defaults) == counted


@pytest.mark.parametrize("pattern", ["(", "no group", "(two) (groups)"])
def test_a_count_pattern_must_be_a_regular_expression_with_one_group(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"expression|one group"):
        CountPatterns(sent=pattern)


@pytest.mark.parametrize(
    ("sent_bytes", "waiting", "ok"),
    [
        (123_000, 0, True),
        (230_000, 0, False),
        (230_000, 40, False),
        (30_000, 0, False),
        (30_000, 40, True),
    ],
)
def test_the_bytes_sent_by_the_bottleneck_equal_the_captured_ones_or_are_fewer_while_packets_wait(
    tmp_path: Path, sent_bytes: int, waiting: int, ok: bool
) -> None:
    policy = Policy(behind={"down": frozenset({DST}), "up": frozenset({SRC})})
    span = CounterSpan({"queue.down": "0 0 0 0"}, {"queue.down": f"{sent_bytes} 0 0 {waiting}"})
    (check,) = check_bottleneck_bytes(captured_at_both_ends(tmp_path, policy, counters={"rtr": span}))
    assert (check.ok, check.severity) == (ok, "suspect")
    still = ", in which 40 packets still waited" if waiting else ""
    assert check.observed == f"{sent_bytes} B sent by the queue{still}"
    without_captures = evidence_of(tmp_path / "none", policy=policy, counters={"rtr": span})
    assert list(check_bottleneck_bytes(without_captures)) == []


@pytest.mark.parametrize(
    ("sent_bytes", "ok"), [(100_900_000, True), (99_100_000, True), (101_300_000, False)]
)
def test_the_bytes_sent_by_the_bottleneck_may_differ_from_the_captured_ones_by_one_percent(
    monkeypatch: pytest.MonkeyPatch, sent_bytes: int, ok: bool
) -> None:
    stream = PacketStream(TCP, SRC, DST, (40_000, 5001), frame_bytes=100_000_000)
    monkeypatch.setattr(Evidence, "captures_at", lambda *_, **__: [CaptureSummary({(TCP, b""): stream})])
    policy = Policy(behind={"down": frozenset({DST})})
    span = CounterSpan({"queue.down": "0 0 0 0"}, {"queue.down": f"{sent_bytes} 0 0 0"})
    (check,) = check_bottleneck_bytes(evidence_of(policy=policy, counters={"rtr": span}))
    assert check.ok == ok


def test_only_packets_that_passed_the_bottleneck_are_compared_with_its_bytes(tmp_path: Path) -> None:
    others = [segment(*ends, (1, 2), 560) for ends in ((DST, SRC), ("172.16.11.3", DST))]
    write(tmp_path, "dst-eth1", [*requested_flow(), *others * 2000])
    policy = Policy(behind={"down": frozenset({DST, "172.16.11.3"})})
    span = CounterSpan({"queue.down": "0 0 0 0"}, {"queue.down": "123000 0 0 0"})
    (check,) = check_bottleneck_bytes(evidence_of(tmp_path, policy=policy, counters={"rtr": span}))
    assert (check.ok, check.requested) == (True, "122862 B captured downstream")
    six = RESOLVED.flows[0].model_copy(update={"from_address": "fd00::1", "to_address": "fd00::2"})
    tso = RESOLVED.hosts["src"].model_copy(update={"settings": {"offloads": {"tso": "on"}}})
    for changes in (
        {"path": None},
        {"flows": (RESOLVED.flows[0], six)},
        {"hosts": {**RESOLVED.hosts, "src": tso}},
    ):
        resolved = RESOLVED.model_copy(update=changes)
        assert (
            list(check_bottleneck_bytes(evidence_of(tmp_path, resolved, policy, counters={"rtr": span})))
            == []
        )


def test_the_padding_of_short_frames_is_not_counted_as_bytes_through_the_bottleneck(tmp_path: Path) -> None:
    """A queue counts an ACK without options as 54 bytes; the capture has it padded to 60 bytes."""
    headers, size = segment(DST, SRC, (5001, 40_000))
    write(tmp_path, "src-eth1", [(headers, 60)] * 20_000)
    write(tmp_path, "dst-eth1", requested_flow())
    policy = Policy(behind={"down": frozenset({DST}), "up": frozenset({SRC})})
    span = CounterSpan({"queue.up": "0 0 0 0"}, {"queue.up": f"{20_000 * size} 20000 0 0"})
    (check,) = check_bottleneck_bytes(evidence_of(tmp_path, policy=policy, counters={"rtr": span}))
    assert check.reason == (
        "bytes through the bottleneck, up at rtr: requested 1080000 B captured downstream ± 1.0%, "
        "observed 1080000 B sent by the queue"
    )
    assert check.ok


@pytest.mark.parametrize(
    ("sent_packets", "trace", "verdict"),
    [
        (201, "rtr,0,0\nrtr,0,0\n", "valid"),
        (9_201, "rtr,0,0\nrtr,0,0\n", "suspect"),
        (9_201, "rtr,500,10\ndst,0,0\nrtr,9400,110\ndst,7,7\n", "valid"),
        (9_201, "rtr,0,0\n", "suspect"),
        (201, "rtr,none,0\n", "invalid"),
    ],
)
def test_frames_that_an_access_point_dropped_behind_the_bottleneck_are_added_to_the_captured_ones(
    tmp_path: Path, sent_packets: int, trace: str, verdict: str
) -> None:
    air = LoggerPlan(logger="air", host="rtr", interface="eth1", parameters={"link": "air"})
    wlan = WlanPlan(link="air", hosts=("rtr", "dst"), standard="802.11g", rate_bps=None, seed=1)
    router = RESOLVED.hosts["rtr"].model_copy(update={"wlans": (wlan,)})
    resolved = RESOLVED.model_copy(
        update={"hosts": {**RESOLVED.hosts, "rtr": router}, "loggers": (*RESOLVED.loggers, air)}
    )
    for name in ("src-eth1", "dst-eth1"):
        write(tmp_path, name, requested_flow())
    with gzip.open(tmp_path / "traces" / "rtr-air.csv.gz", "wt") as file:
        file.write(f"station,drops,given_up\n{trace}")
    policy = Policy(behind={"down": frozenset({DST}), "up": frozenset({SRC})})
    span = CounterSpan({"queue.down": "0 0 0 0"}, {"queue.down": f"700000 {sent_packets} 0 0"})
    checks = check_bottleneck_bytes(
        evidence_of(tmp_path, resolved=resolved, policy=policy, counters={"rtr": span})
    )
    assert verdict_of(checks)[0] == verdict


@pytest.mark.parametrize(
    ("link", "stations", "requested"),
    [
        ("air", ("rtr", "dst"), "201 packets captured downstream, 40 dropped by access points"),
        ("air", ("rtr", "src"), "122862 B captured downstream"),
        ("other", ("rtr", "dst"), "122862 B captured downstream"),
    ],
)
def test_frames_dropped_by_access_points_count_only_on_the_wlan_of_the_receivers(
    tmp_path: Path, link: str, stations: tuple[str, ...], requested: str
) -> None:
    air = LoggerPlan(logger="air", host="rtr", interface="eth1", parameters={"link": link})
    wlan = WlanPlan(link="air", hosts=stations, standard="802.11g", rate_bps=None, seed=1)
    router = RESOLVED.hosts["rtr"].model_copy(update={"wlans": (wlan,)})
    resolved = RESOLVED.model_copy(update={"hosts": {**RESOLVED.hosts, "rtr": router}, "loggers": (air,)})
    write(tmp_path, "dst-eth1", requested_flow())
    with gzip.open(tmp_path / "traces" / "rtr-air.csv.gz", "wt") as file:
        file.write("station,drops,given_up\nrtr,0,0\nrtr,30,10\n")
    policy = Policy(behind={"down": frozenset({DST})})
    span = CounterSpan({"queue.down": "0 0 0 0"}, {"queue.down": "123000 241 0 0"})
    (check,) = check_bottleneck_bytes(evidence_of(tmp_path, resolved, policy, counters={"rtr": span}))
    what = "packets" if "packets" in requested else "bytes"
    assert (check.name, check.requested) == (f"{what} through the bottleneck, down", requested)


@pytest.mark.parametrize(("idle", "ok"), [("1000 700", True), ("1000 610", False)])
def test_a_cpu_that_was_busy_all_the_time_makes_a_trial_suspect(idle: str, ok: bool) -> None:
    span = CounterSpan({"cpu.0": "0 0", "cpu.1": "500 600"}, {"cpu.0": "10 90", "cpu.1": idle})
    (check,) = check_cpus(evidence_of(counters={"src": span}))
    assert (check.ok, check.severity, check.observed[:5]) == (ok, "suspect", "CPU 1")


def test_a_cpu_that_counted_no_time_was_not_busy() -> None:
    span = CounterSpan({"cpu.0": "5 5"}, {"cpu.0": "5 5"})
    (check,) = check_cpus(evidence_of(counters={"rtr": span}))
    assert (check.ok, check.observed) == (True, "CPU 0 0.0% busy")


@pytest.mark.parametrize(
    ("behind", "rate_bps", "address"),
    [
        ((DST, SRC), 12_000_000, DST),
        ((), 12_000_000, DST),
        ((DST,), None, DST),
        ((DST, "fd00::2"), 12_000_000, "fd00::2"),
    ],
    ids=["two captures", "no capture", "no rate", "IPv6"],
)
def test_a_busy_router_is_suspect_unless_one_capture_shows_all_packets_that_it_forwarded(
    tmp_path: Path, behind: tuple[str, ...], rate_bps: int | None, address: str
) -> None:
    write_seconds(tmp_path, [1_500_000] * 8, 60_000)
    back = RESOLVED.flows[1].model_copy(update={"to_host": "src", "to_address": SRC})
    flows = (RESOLVED.flows[0].model_copy(update={"from_address": address, "to_address": address}), back)
    down = PATH.down.model_copy(update={"rate_bps": rate_bps})
    path = PATH.model_copy(update={"down": down})
    resolved = RESOLVED.model_copy(update={"flows": flows, "path": path})
    policy = Policy(behind={"down": frozenset(behind)})
    counters = {"rtr": CounterSpan({"cpu.0": "0 0"}, {"cpu.0": "988 12"})}
    (check,) = check_cpus(evidence_of(tmp_path, resolved, policy, counters=counters))
    unknown = "its effect is unknown: no capture shows all that passed the bottleneck"
    assert (check.verdict, check.observed) == ("suspect", f"CPU 0 98.8% busy; {unknown}")
    (check,) = check_cpus(
        evidence_of(tmp_path, RESOLVED.model_copy(update={"path": None}), counters=counters)
    )
    assert (check.verdict, check.observed) == ("suspect", "CPU 0 98.8% busy")


def test_a_busy_router_is_suspect_if_the_capture_behind_it_cannot_be_read(tmp_path: Path) -> None:
    policy = Policy(behind={"down": frozenset({DST})})
    counters = {"rtr": CounterSpan({"cpu.0": "0 0"}, {"cpu.0": "988 12"})}
    (check,) = check_cpus(evidence_of(tmp_path, policy=policy, counters=counters))
    assert check.verdict == "suspect"
    assert "; its effect is unknown: FileNotFoundError: " in check.observed


def write_seconds(folder: Path, sizes: Sequence[int], packet_bytes: int) -> None:
    """Write a capture behind the bottleneck; `sizes` has the bytes of its IP packets in each second."""
    file = folder / "traces" / "dst-eth1.pcap.gz"
    file.parent.mkdir()
    kept, _ = segment(SRC, DST, (40_000, 5001))
    records = []
    for second, size in enumerate(sizes):
        header = kept[:16] + struct.pack(">H", packet_bytes) + kept[18:]
        back, arp = (
            header[:26] + header[30:34] + header[26:30] + header[34:],
            header[:13] + b"\x06" + header[14:],
        )
        record, *others = (
            struct.pack("<IIII", 100 + second, 5, len(one), packet_bytes + 14) + one
            for one in (header, back, arp)
        )
        records += [record] * (size // packet_bytes) + others * 9
    file.write_bytes(gzip.compress(HEAD + b"".join(records)))


@pytest.mark.parametrize(
    ("sizes", "verdict", "observed"),
    [
        # The first and the last second are left out, because they may be incomplete.
        ([300_000, *[1_500_000] * 5, 60_000], "valid", "median rate per second 12 of 12 Mbit/s"),
        (
            [1_500_000, 1_500_000, *[1_200_000] * 5, 60_000],
            "suspect",
            "its effect is unknown: median rate per second 9.602 of 12 Mbit/s; the flows may have sent less than that",
        ),
        ([1_500_000] * 5, "suspect", "its effect is unknown: 3 s of traffic, but the check needs 4 s"),
        ([1_500_000] * 6, "valid", "median rate per second 12 of 12 Mbit/s"),
        ([0] * 9, "suspect", "its effect is unknown: 0 s of traffic, but the check needs 4 s"),
    ],
)
def test_a_busy_router_is_valid_if_it_forwarded_at_the_rate_of_its_bottleneck(
    tmp_path: Path, sizes: list[int], verdict: str, observed: str
) -> None:
    write_seconds(tmp_path, sizes, 60_000)
    span = CounterSpan({"cpu.0": "0 0"}, {"cpu.0": "988 12"})
    # The interface also has an IPv6 address.
    policy = Policy(behind={"down": frozenset({DST, "fd00::2"})})
    (check,) = check_cpus(evidence_of(tmp_path, policy=policy, counters={"rtr": span}))
    assert (check.verdict, check.observed) == (verdict, f"CPU 0 98.8% busy; {observed}")
    (check,) = check_cpus(evidence_of(tmp_path, policy=policy, counters={"dst": span}))
    assert (check.verdict, check.observed) == ("suspect", "CPU 0 98.8% busy")


@pytest.mark.parametrize(("os", "packet_bytes"), [("linux", 286), ("freebsd", 300)])
def test_the_rate_of_a_busy_router_counts_the_headers_that_its_bottleneck_counts(
    tmp_path: Path, os: str, packet_bytes: int
) -> None:
    write_seconds(tmp_path, [5_000 * packet_bytes] * 8, packet_bytes)
    router = RESOLVED.hosts["rtr"].model_copy(update={"os": os})
    resolved = RESOLVED.model_copy(update={"hosts": {**RESOLVED.hosts, "rtr": router}})
    counters = {"rtr": CounterSpan({"cpu.0": "0 0"}, {"cpu.0": "988 12"})}
    policy = Policy(behind={"down": frozenset({DST})})
    (check,) = check_cpus(evidence_of(tmp_path, resolved, policy, counters=counters))
    assert (check.ok, check.observed) == (True, "CPU 0 98.8% busy; median rate per second 12 of 12 Mbit/s")


@pytest.mark.parametrize(
    ("gap_s", "profile", "ok"), [(1.9, None, True), (4.1, None, False), (4.1, "emulated", True)]
)
def test_gaps_in_the_samples_of_a_queue_are_judged_by_their_length(
    tmp_path: Path, gap_s: float, profile: str | None, ok: bool
) -> None:
    times = [1, 1 + round(gap_s * 1e9), 2 + round(gap_s * 1e9)]
    write_queue(tmp_path, *(f"{t},eth2,pfifo,10:,1:1,0,0,{t}" for t in times))
    thresholds = keys.Thresholds.model_validate({"profile": profile} if profile else {}).with_profile()
    evidence = evidence_of(tmp_path, policy=Policy(thresholds=thresholds))
    (check,) = (one for one in check_queue_samples(evidence) if one.name.startswith("longest gap"))
    assert (check.ok, check.severity, check.observed) == (ok, "suspect", f"{gap_s:.2f} s")


@pytest.mark.parametrize(
    ("over_s", "observed", "ok"),
    [(2.7, "0.50 s", True), (4.9, "1.90 s", True), (7.0, "3.00 s", False), (603.5, "600.50 s", False)],
)
def test_the_time_from_the_last_sample_to_the_end_of_the_traffic_counts_as_a_gap(
    tmp_path: Path, over_s: float, observed: str, ok: bool
) -> None:
    """If the end of the traffic is in whole seconds, it may be one second late, and this second is subtracted."""
    write_queue(tmp_path, *(f"{n * 500_000_000},eth2,pfifo,10:,1:1,0,0,{n}" for n in range(7)))
    evidence = evidence_of(tmp_path, traffic_over={"rtr": over_s})
    (check,) = (one for one in check_queue_samples(evidence) if one.name.startswith("longest gap"))
    assert (check.observed, check.ok, check.severity) == (observed, ok, "suspect")


def test_a_verdict_profile_of_a_testbed_sets_bounds_that_other_keys_override_and_manifests_list() -> None:
    testbed = load_testbed(ROOT / "hosts" / "lab.yaml")
    study = load_experiment(ROOT / "experiments" / "demo.yaml", CATALOGUE).experiment
    assert policy_of(study, testbed, Config()).loosened == {}
    emulated = testbed.model_copy(update={"verdict": keys.Thresholds.model_validate({"profile": "emulated"})})
    stricter = Config.model_validate({"verdict": {"late": "500ms"}})
    policy = policy_of(study, emulated, stricter)
    assert (policy.thresholds.late_s, policy.thresholds.gap_s, policy.thresholds.cpu) == (0.5, 5.0, 1.0)
    assert policy.loosened == {
        "profile": "emulated",
        "loosened": {
            "late": {"bound": "500ms", "default": "200ms"},
            "cpu": {"bound": "100%", "default": "95%"},
            "gap": {"bound": "5s", "default": "2s"},
        },
    }
    weaker = Config.model_validate({"verdict": {"duration": "50%", "window": "95%"}})
    assert policy_of(study, testbed, weaker).loosened == {
        "loosened": {"duration": {"bound": "50%", "default": "95%"}}
    }


@pytest.mark.parametrize(
    ("early", "late", "step"),
    [
        ("999000000000 9.00 9.00", "1000000000000 10.00 10.00", "+0.0 ms"),
        ("999000000000 9.00 9.00", "1000500000000 10.00 10.01", "+480.0 ms"),
        ("999000000000 9.00 9.00", "999500000000 10.00 10.01", "-490.0 ms"),
        ("999000000000 9.00 9.50", "999500000000 10.00 10.00", "+0.0 ms"),
        ("999000000000 9.00 9.00", "999500000000 9.50 10.00", "+0.0 ms"),
        # FreeBSD prints the time of its boot.
        ("990000000000 0 0", "990000000000 0 0", "+0.0 ms"),
        ("990000000000 0 0", "990006000000 0 0", "+6.0 ms"),
    ],
)
def test_a_clock_that_was_set_is_distinguished_from_one_that_was_read_slowly(
    early: str, late: str, step: str
) -> None:
    (check,) = check_clock_steps(
        evidence_of(counters={"src": CounterSpan({"clock": early}, {"clock": late})})
    )
    assert (check.requested, check.observed) == ("no step above 50 ms", step)
    assert check.ok == (abs(float(step.removesuffix(" ms"))) <= 50)


@pytest.mark.parametrize("readings", [("", "990000000000 0 0"), ("990000000000 0 0", "990000000000")])
def test_a_clock_without_two_readings_is_not_compared(readings: tuple[str, str]) -> None:
    early, late = ({"clock": reading} for reading in readings)
    assert list(check_clock_steps(evidence_of(counters={"src": CounterSpan(early, late)}))) == []


def test_a_delay_that_drops_packets_without_a_requested_loss_is_reported() -> None:
    path = PATH.model_copy(update={"down": PATH.down.model_copy(update={"loss": 0.0})})
    span = CounterSpan({"stage.down": "0 0 0"}, {"stage.down": "60000 100 3"})
    resolved = RESOLVED.model_copy(update={"path": path})
    (check,) = check_delay_drops(evidence_of(resolved=resolved, counters={"rtr": span}))
    assert check.reason == "drops in the delay stage down at rtr: requested 0, observed 3 of 103"
    assert not check.ok


@pytest.mark.parametrize(("drops", "ok"), [(0, True), (9, True), (12, True), (60, False)])
def test_drops_of_a_delay_stage_with_random_loss_are_accepted_within_the_binomial_interval(
    drops: int, ok: bool
) -> None:
    span = CounterSpan({"stage.down": "0 0 0"}, {"stage.down": f"600000 {10_000 - drops} {drops}"})
    (check,) = check_delay_drops(evidence_of(counters={"rtr": span}))
    assert check.ok == ok


def test_drops_of_delay_stages_are_not_judged_without_counters_or_with_traffic_classes() -> None:
    span = CounterSpan({"stage.down": "0 0 0"}, {"stage.down": "60000 100 90"})
    one = ClassPlan(match=(), delay_down_s=0.01, delay_up_s=0.01, loss=0.5)
    for path, counters in (
        (PATH.model_copy(update={"classes": (one,)}), {"rtr": span}),
        (PATH, {"rtr": CounterSpan({}, {})}),
        (PATH, {}),
        (None, {"rtr": span}),
    ):
        resolved = RESOLVED.model_copy(update={"path": path})
        assert list(check_delay_drops(evidence_of(resolved=resolved, counters=counters))) == []


@pytest.mark.parametrize(
    ("rate_bps", "verdict"), [(12e6, "valid"), (11.9e6, "valid"), (11e6, "suspect"), (6e6, "invalid")]
)
def test_the_rate_while_packets_wait_is_compared_with_the_requested_one(
    tmp_path: Path, rate_bps: float, verdict: str
) -> None:
    rows = [
        f"{n * 10_000_000},eth2,pfifo,10:,1:1,60000,{100 if n else 0},{int(n * rate_bps / 800)}"
        for n in range(200)
    ]
    write_queue(tmp_path, *rows)
    assert verdict_of(rate_checks(evidence_of(tmp_path)))[0] == verdict


def test_samples_100_ms_apart_give_the_rate_if_packets_waited_for_seconds(tmp_path: Path) -> None:
    rows = [
        f"{n * 100_000_000},eth2,dummynet,20999:,root,600000,{100 if n else 0},{n * 80_000}"
        for n in range(60)
    ]
    write_queue(tmp_path, *rows)
    verdict, failed = verdict_of(rate_checks(evidence_of(tmp_path)))
    assert verdict == "invalid"
    assert failed == (
        "rate at eth2 while packets wait at rtr: requested 12 Mbit/s ± 4.0%, observed 6.4 Mbit/s over 5.8 s",
    )


@pytest.mark.parametrize(("host", "interface"), [("rtr", "eth1"), ("src", "eth2")])
def test_the_samples_of_another_queue_are_not_compared_with_the_rate_of_the_bottleneck(
    tmp_path: Path, host: str, interface: str
) -> None:
    rows = [f"{n * 10**8},{interface},pfifo,10:,1:1,600000,100,{n * 80_000}" for n in range(60)]
    write_queue(tmp_path, *rows, host=host)
    logger = LoggerPlan(logger="queue", host=host, interface=interface)
    resolved = RESOLVED.model_copy(update={"loggers": (logger,)})
    (check,) = check_queue_samples(evidence_of(tmp_path, resolved))
    assert check.name == f"longest gap in the samples of the queue at {interface}"
    (check,) = check_queue_samples(evidence_of(tmp_path, resolved.model_copy(update={"path": None})))
    assert check.ok


@pytest.mark.parametrize(("gap_s", "ok"), [(14.0, True), (16.0, False)])
def test_the_longest_accepted_gap_is_three_intervals_of_the_logger(
    tmp_path: Path, gap_s: float, ok: bool
) -> None:
    logger = LoggerPlan(logger="queue", host="rtr", interface="eth2", interval_s=5.0)
    resolved = RESOLVED.model_copy(update={"loggers": (logger,)})
    write_queue(tmp_path, *(f"{round(n * gap_s * 1e9)},eth2,pfifo,10:,1:1,0,0,0" for n in range(3)))
    check = list(check_queue_samples(evidence_of(tmp_path, resolved)))[-1]
    assert (check.requested, check.ok) == ("at most 15 s", ok)


def rate_checks(evidence: Evidence) -> list[Check]:
    """Return the checks of the bottleneck's rate, without those of gaps between samples of its queue."""
    return [check for check in check_queue_samples(evidence) if check.name.startswith("rate at ")]


def write_queue(folder: Path, *rows: str, host: str = "rtr") -> None:
    """Write the trace of a queue, such as the one at the router's eth2."""
    trace = folder / "traces" / f"{host}-queue.csv.gz"
    trace.parent.mkdir()
    head = "t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes"
    trace.write_bytes(gzip.compress("\n".join([head, *rows]).encode()))


@pytest.mark.parametrize("interface", ["eth2", "eth3"])
def test_samples_of_any_queue_must_be_readable(tmp_path: Path, interface: str) -> None:
    write_queue(tmp_path)
    (tmp_path / "traces" / "rtr-queue.csv.gz").write_bytes(b"no gzip")
    logger = LoggerPlan(logger="queue", host="rtr", interface=interface)
    resolved = RESOLVED.model_copy(update={"loggers": (logger,)})
    (check,) = check_queue_samples(evidence_of(tmp_path, resolved))
    assert (check.name, check.verdict) == ("trace rtr-queue.csv.gz", "invalid")


@pytest.mark.parametrize(
    ("samples", "observed"),
    [
        # Two trials of 4 Mbit/s on FreeBSD 14.0-STABLE, sampled on a slow host: 40 packets leave within 120 ms.
        (
            [
                (1795379210590961000, 33000, 22, 639978),
                (1795379213919427000, 57000, 38, 1844478),
                (1795379216271163000, 42000, 28, 3110478),
                (1795379218549726000, 0, 0, 4066728),
            ],
            "unknown: the queue is known to have been busy for 0.0 s, but the check needs 0.5 s",
        ),
        (
            [
                (1795376764095523000, 0, 0, 1658178),
                (1795376765068478000, 2400, 4, 1872978),
                (1795376765734565000, 2400, 4, 2071578),
                (1795376766373510000, 0, 0, 2280865),
            ],
            "unknown: the queue is known to have been busy for 0.0 s, but the check needs 0.5 s",
        ),
        (
            [(1795376764095523000, 0, 0, 1658178), (1795376766373510000, 0, 0, 2280865)],
            "unknown: packets waited for 0.0 s, but the check needs 0.5 s",
        ),
        ([], "unknown: packets waited for 0.0 s, but the check needs 0.5 s"),
        # The same on FreeBSD 15.0, where reading a sample took 0.15 to 0.5 s; its times would give 4.94 Mbit/s.
        (
            [
                (1795433057080877000, 44400, 37, 1516359),
                (1795433057254215000, 45600, 38, 1602759),
                (1795433057411769000, 39600, 33, 1689159),
                (1795433057712949000, 45600, 38, 1829559),
                (1795433060671006000, 40800, 34, 3174863),
                (1795433060838884000, 43200, 36, 3254063),
                (1795433060989452000, 44400, 37, 3402863),
                (1795433061494565000, 0, 0, 3568463),
            ],
            "unknown: packets waited for 0.6 s, uncertain by 0.81 s",
        ),
    ],
)
def test_the_rate_is_reported_as_unknown_if_samples_are_too_far_apart(
    tmp_path: Path, samples: list[tuple[int, int, int, int]], observed: str
) -> None:
    down = PATH.down.model_copy(update={"rate_bps": 4_000_000})
    resolved = RESOLVED.model_copy(update={"path": PATH.model_copy(update={"down": down})})
    write_queue(
        tmp_path,
        *(f"{t},eth2,dummynet,20999:,root,{size},{packets},{sent}" for t, size, packets, sent in samples),
    )
    (check,) = rate_checks(evidence_of(tmp_path, resolved))
    assert (check.ok, check.observed) == (True, observed)


TBF = {"shaping.qdisc.eth2.1:": "tbf rate 12Mbit burst 6000b lat 658ms"}


@pytest.mark.parametrize(
    ("after", "observed"),
    [
        ({"network.mtu.eth1": "1400"}, "mtu.eth1: 1500 before, 1400 after"),
        (
            {"network.route.172.16.11.2": "via 172.16.10.7 dev eth1"},
            "route.172.16.11.2: via 172.16.10.1 dev eth1 before, via 172.16.10.7 dev eth1 after",
        ),
        (
            {"shaping.ipfw.00100.1": "pipe 1 ip from any to any"},
            "shaping.ipfw.00100.1: nothing before, pipe 1 ip from any to any after",
        ),
        ({}, "unchanged"),
    ],
)
def test_a_change_of_mtu_route_or_shaping_during_the_traffic_makes_a_trial_invalid(
    after: dict[str, str], observed: str
) -> None:
    before = {"network.mtu.eth1": "1500", "network.route.172.16.11.2": "via 172.16.10.1 dev eth1"}
    span = CounterSpan({"clock": "1 2 3", **before}, {"clock": "2 3 4", **before, **after})
    (check,) = check_network(evidence_of(counters={"src": span}))
    assert (check.observed, check.severity, check.ok) == (observed, "invalid", not after)


def test_a_route_that_is_gone_after_the_traffic_makes_a_trial_invalid() -> None:
    mtu = {"network.mtu.eth1": "1500"}
    span = CounterSpan({**mtu, "network.route.172.16.11.2": "dev eth1"}, mtu)
    (check,) = check_network(evidence_of(counters={"src": span}))
    assert (check.observed, check.verdict) == ("route.172.16.11.2: dev eth1 before, nothing after", "invalid")


def test_a_host_whose_network_state_is_not_read_is_not_judged_by_it() -> None:
    evidence = evidence_of(counters={"src": CounterSpan({"clock": "1 2 3"}, {"clock": "2 3 4", **TBF})})
    assert [*check_network(evidence), *check_foreign_shaping(evidence)] == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_network_state_that_a_host_could_not_read_makes_a_trial_suspect(when: str) -> None:
    read = {"network.mtu.eth1": "1500", "network.route.172.16.11.2": "dev eth1", **TBF}
    failed = {"network.mtu.eth1": "1500", "network.unknown": "ip ended", "shaping.unknown": "tc ended"}
    span = CounterSpan(failed, read) if when == "before" else CounterSpan(read, failed)
    (check,) = check_network(evidence_of(counters={"rtr": span}))
    assert (check.observed, check.verdict) == ("unknown: ip ended", "suspect")
    mtu = CounterSpan({**span.before, "network.mtu.eth1": "1400"}, span.after)
    # Keys that were read at both times are compared nevertheless.
    (check,) = check_network(evidence_of(counters={"rtr": mtu}))
    assert (check.observed, check.verdict) == ("mtu.eth1: 1400 before, 1500 after", "invalid")


@pytest.mark.parametrize(
    ("key", "why", "verdict"),
    [("unknown", "tc ended with exit code 1", "suspect"), ("unseen", "tc is not installed", "valid")],
)
def test_shaping_that_a_host_could_not_read_is_reported_as_unknown(key: str, why: str, verdict: str) -> None:
    state = {"network.mtu.eth1": "1500", f"shaping.{key}": why}
    (check,) = check_foreign_shaping(evidence_of(counters={"src": CounterSpan(state, state)}))
    assert (check.observed, check.verdict) == (f"unknown: {why}", verdict)


def test_a_lasting_change_of_the_network_makes_later_trials_suspect() -> None:
    first = {"network.mtu.eth1": "1500", "network.route.172.16.12.2": "dev eth1"}
    now = {"network.mtu.eth1": "1400", "network.options.eth1": "LRO"}
    evidence = evidence_of(counters={"src": CounterSpan(now, now)}, network={"src": first})
    during, before = check_network(evidence)
    assert during.ok
    assert (before.observed, before.severity, before.ok) == (
        "mtu.eth1: 1500 before, 1400 after",
        "suspect",
        False,
    )


def test_an_offload_that_no_setting_changes_must_not_change_during_the_traffic() -> None:
    span = CounterSpan({"network.mtu.eth1": "1500"}, {"network.mtu.eth1": "1500"})
    early, late = {"offload.eth1.tx": "on", "offload.eth1.gro": "off"}, {"offload.eth1.tx": "off"}
    evidence = evidence_of(counters={"src": span}, as_set={"src": early}, found={"src": late})
    (check,) = check_network(evidence)  # gro is a setting, which another check compares
    assert check.observed == "offload.eth1.tx: on before, off after"


@pytest.mark.parametrize(
    ("host", "lines", "foreign"),
    [
        ("rtr", TBF, "none"),
        ("rtr", {"shaping.filter.eth1.60000.1": "u32 mirred (Egress Redirect to device sv-up)"}, "none"),
        ("src", TBF, "shaping.qdisc.eth2.1:=tbf rate 12Mbit burst 6000b lat 658ms"),
        (
            "rtr",
            {**TBF, "shaping.qdisc.eth1.8001:": "netem delay 5ms"},
            "shaping.qdisc.eth1.8001:=netem delay 5ms",
        ),
        (
            "rtr",
            {"shaping.ipfw.00100.1": "pipe 1 ip from any to any"},
            "shaping.ipfw.00100.1=pipe 1 ip from any to any",
        ),
    ],
)
def test_queues_and_rules_that_the_trial_did_not_set_are_reported_if_present_before_the_traffic(
    host: str, lines: dict[str, str], foreign: str
) -> None:
    state, later = (
        {"network.mtu.eth1": "1500", **lines},
        {"shaping.ipfw.00101.1": "pipe 2 ip from any to any"},
    )
    (check,) = check_foreign_shaping(evidence_of(counters={host: CounterSpan(state, later)}))
    assert (check.observed, check.severity, check.ok) == (foreign, "suspect", foreign == "none")


def test_the_ipfw_rules_that_samovar_sets_on_freebsd_are_not_reported_as_foreign() -> None:
    router = RESOLVED.hosts["rtr"].model_copy(update={"os": "freebsd", "release": "14.0", "mtu_bytes": None})
    down = PATH.down.model_copy(update={"loss": 0.0})
    path = PATH.model_copy(update={"down": down})
    resolved = RESOLVED.model_copy(update={"hosts": {**RESOLVED.hosts, "rtr": router}, "path": path})
    own = {
        "shaping.ipfw.00042.1": "pipe 20001 ip from any to any out xmit em2",
        "shaping.ipfw.00043.1": "pipe 20999 ip from any to any out xmit em2",
        "shaping.ipfw.00047.1": "pipe 21001 ip from any to any out xmit em1",
    }
    state = {"network.mtu.em1": "1500", **own, "shaping.ipfw.00051.1": "pipe 22001 ip from any to any"}
    (check,) = check_foreign_shaping(
        evidence_of(resolved=resolved, counters={"rtr": CounterSpan(state, state)})
    )
    assert check.observed == "shaping.ipfw.00051.1=pipe 22001 ip from any to any"


def test_each_setting_is_compared_with_its_value_after_the_traffic() -> None:
    evidence = evidence_of(found={"src": {"cc": "cubic", "mtu.eth1": "600"}})
    checks = by_name(list(check_settings(evidence)))
    found = {name: checks[f"{name} after the traffic at src"] for name in ("cc", "mtu.eth1")}
    assert [(check.ok, check.observed) for check in found.values()] == [(False, "cubic"), (True, "600")]
    assert verdict_of(checks.values())[0] == "invalid"
    without_cc = by_name(list(check_settings(evidence_of(found={"src": {"mtu.eth1": "600"}}))))
    assert without_cc["cc after the traffic at src"].observed == "nothing"


def test_a_host_whose_state_was_not_restored_makes_a_trial_suspect() -> None:
    before = {"src": {"cc": "cubic"}, "dst": {"cc": "cubic"}}
    evidence = evidence_of(before=before, restored={**before, "src": {"cc": "reno"}})
    (check,) = check_restored_states(evidence)
    assert (check.host, check.observed, check.verdict) == (
        "src",
        "cc: wanted 'cubic', found 'reno'",
        "suspect",
    )


@pytest.mark.parametrize(("late_s", "ok"), [(0.05, True), (-0.05, True), (0.5, False), (-0.5, False)])
def test_a_flow_that_did_not_start_on_time_makes_a_trial_suspect(late_s: float, ok: bool) -> None:
    clocks = {"src": ClockOffset("src", 0.0, 0.001)}
    evidence = evidence_of(clocks=clocks, t_start_s=100.0, started={"bulk-client": 100.0 + late_s})
    (check,) = check_start_times(evidence)
    assert (check.ok, check.severity) == (ok, "suspect")


@pytest.mark.parametrize(
    ("offset_s", "stepped", "observed"),
    [
        (0.2, False, "+200.0 ms ± 1.0 ms, no step"),
        (-1.5, False, "-1500.0 ms ± 1.0 ms, no step"),
        (0.0, True, "+0.0 ms ± 1.0 ms, but the latest reading contradicts earlier ones"),
    ],
)
def test_a_clock_that_is_far_off_or_was_set_makes_a_trial_suspect(
    offset_s: float, stepped: bool, observed: str
) -> None:
    (check,) = check_clock_offsets(evidence_of(clocks={"src": ClockOffset("src", offset_s, 0.001, stepped)}))
    assert (check.observed, check.verdict) == (observed, "valid" if offset_s == 0.2 else "suspect")


@pytest.mark.parametrize(
    ("drift", "ok", "observed"),
    [
        (None, True, "unknown: too few readings, or too close together"),
        (Drift(-3.04, 12.0), True, "-3.0 to +12.0 ppm"),
        (Drift(-40.0, 70.0), True, "-40.0 to +70.0 ppm"),
        (Drift(49.0, 75.0), True, "+49.0 to +75.0 ppm"),
        (Drift(61.0, 75.0), False, "+61.0 to +75.0 ppm"),
        (Drift(-400.0, -200.0), False, "-400.0 to -200.0 ppm"),
    ],
)
def test_a_clock_that_certainly_drifts_makes_a_trial_suspect(
    drift: Drift | None, ok: bool, observed: str
) -> None:
    evidence = evidence_of(clocks={"dst": ClockOffset("dst", 0.0, 0.001, drift=drift)})
    (check,) = check_clock_drift(evidence)
    assert (check.ok, check.observed) == (ok, observed)
    verdict, reasons = verdict_of([check])
    reason = f"clock drift at dst: requested at most 50 ppm from the controller's, observed {observed}"
    assert (verdict, reasons) == (("valid", ()) if ok else ("suspect", (reason,)))


@pytest.mark.parametrize(("threshold", "ok"), [("50ppm", False), ("70ppm", True)])
def test_the_drift_of_clocks_is_judged_by_the_threshold_of_the_experiment(
    tmp_path: Path, threshold: str, ok: bool
) -> None:
    clocks = {"dst": ClockOffset("dst", 0.0, 0.001, drift=Drift(61.0, 75.0))}
    policy = Policy(thresholds=keys.Thresholds.model_validate({"clock_drift": threshold}))
    evidence = evidence_of(tmp_path, policy=policy, clocks=clocks)
    checks = [one for one in run_checks(evidence) if one.name == "clock drift"]
    assert [(one.host, one.ok) for one in checks] == [("dst", ok)]


def test_thresholds_of_an_experiment_override_configured_ones() -> None:
    site = keys.Thresholds.model_validate({"cpu": "80%", "late": "1s"})
    both = site.under(keys.Thresholds.model_validate({"late": "10ms"}))
    assert (both.cpu, both.late_s, both.competing) == (0.8, 0.01, LIMITS.competing)


def test_a_testbed_file_defines_the_addresses_behind_its_bottleneck_and_the_routers_between_hosts() -> None:
    testbed = load_testbed(ROOT / "hosts" / "lab.yaml")
    study = load_experiment(ROOT / "experiments" / "demo.yaml", CATALOGUE).experiment
    policy = policy_of(study, testbed, Config())
    assert policy.behind == {"down": frozenset({DST}), "up": frozenset({SRC})}
    assert policy.routers[SRC, DST] == 1
    assert not policy.calibrate
    assert policy_of(study, testbed.model_copy(update={"lab": None}), Config()).calibrate
    assert policy_of(study, testbed, Config.model_validate({"calibrate": "on"})).calibrate
    assert policy.config.retries == 2


def test_the_endpoints_of_a_calibration_are_those_of_a_flow_through_the_bottleneck_in_either_direction() -> (
    None
):
    assert endpoints_of(RESOLVED, frozenset({DST})) == Endpoints("src", "dst", DST)
    assert endpoints_of(RESOLVED, frozenset({SRC})) == Endpoints("dst", "src", SRC)
    assert endpoints_of(RESOLVED, frozenset()) is None


def test_a_host_whose_shaper_limits_it_does_not_measure_a_path() -> None:
    slow = RESOLVED.hosts["src"].model_copy(update={"settings": {"shaper": {"rate": "5Mbit"}}})
    other = RESOLVED.flows[1].model_copy(update={"from_host": "src2", "from_address": "172.16.10.3"})
    hosts = {**RESOLVED.hosts, "src": slow, "src2": RESOLVED.hosts["src"]}
    resolved = RESOLVED.model_copy(update={"hosts": hosts, "flows": (RESOLVED.flows[0], other)})
    assert endpoints_of(resolved, frozenset({DST})) == Endpoints("src2", "dst", DST)
    assert endpoints_of(with_flow(RESOLVED.flows[0], resolved), frozenset({DST})) is None
    assert endpoints_of(resolved, frozenset({SRC})) == Endpoints("dst", "src", SRC)


def test_the_output_of_the_restore_script_has_three_parts() -> None:
    text = f"cpu.0=1 2\n{FOUND}\ncc=reno\n{RESTORED}\ncc=cubic\n"
    assert split_finish_output(text) == ("cpu.0=1 2\n", "cc=reno\n", "cc=cubic\n")


def test_a_capture_at_a_host_without_a_flow_is_checked_too(tmp_path: Path) -> None:
    plan = CapturePlan(host="rtr", interface="eth2", snaplen_bytes=96)
    resolved = RESOLVED.model_copy(update={"captures": (plan,)})
    write(tmp_path, "rtr-eth2", [*requested_flow(), *other_traffic(5999)])
    found = [check.host for check in capture_checks(evidence_of(tmp_path, resolved)) if not check.ok]
    assert found == ["rtr"]


def test_a_trial_that_was_refused_for_its_path_is_open_with_the_reason() -> None:
    entry = Entry(1.0, "trial-refused", {"id": "a", "reasons": ["the path differs from the request"]})
    trial = fold([entry]).trials["a"]
    assert (trial.status, trial.reasons, trial.attempts) == (
        "failed",
        ("the path differs from the request",),
        0,
    )
    assert is_open(trial)


def test_a_threshold_can_be_set_on_the_command_line() -> None:
    study = Controller(ROOT).project.plan(Request("demo", "", "", ["verdict.cpu=80%", "calibrate=on"]))
    assert (study.experiment.verdict.cpu, study.experiment.calibrate) == (0.8, "on")
    with pytest.raises(DefinitionError, match="did you mean 'cpu'"):
        Controller(ROOT).project.plan(Request("demo", "", "", ["verdict.cpuu=80%"]))


def test_large_segments_are_accepted_if_an_offload_was_requested(tmp_path: Path) -> None:
    host = RESOLVED.hosts["src"].model_copy(update={"settings": {"offloads": {"tso": "on"}}})
    resolved = RESOLVED.model_copy(update={"hosts": {**RESOLVED.hosts, "src": host}})
    for name in ("src-eth1", "dst-eth1"):
        write(tmp_path, name, [*requested_flow(), segment(SRC, DST, (40_000, 5001), 9000, ttl=63)])
    assert [check for check in capture_checks(evidence_of(tmp_path, resolved)) if not check.ok] == []


def test_bytes_are_not_compared_where_a_capture_was_not_read_to_its_end(tmp_path: Path) -> None:
    policy = Policy(thresholds=keys.Thresholds.model_validate({"capture_packets": "10"}))
    evidence = captured_at_both_ends(tmp_path, policy)
    assert list(compare_flow_bytes(evidence, evidence.scripts.flows[0], ByteCounts(9, 9))) == []
    checks = check_captures_complete(evidence)
    assert [(check.ok, check.observed) for check in checks] == [(True, "first 10 packets read")] * 2
    assert "MSS offered by dst in flow bulk at dst" in by_name(capture_checks(evidence))


def result_of_stop(host: str, text: str) -> ScriptResult:
    return ScriptResult(host, "stop", "", 0, text.encode(), b"", 1795271645.0, 0.1)


def test_each_host_reports_by_its_own_clock_when_its_clients_started_and_when_all_traffic_was_over() -> None:
    evidence = evidence_of(started={})
    evidence.add_program_endings(
        {
            "src": result_of_stop(
                "src", "exit bulk-client 0\nbulk-client.pid 1795271600.25\norder-stop 1795271606.125\n"
            ),
            "dst": result_of_stop("dst", "exit bulk-server 0\norder-stop 1795271606.375\n"),
            "rtr": result_of_stop("rtr", "exit rtr-queue 0\n"),
        }
    )
    assert evidence.traffic_over == {"src": 1795271606.125, "dst": 1795271606.375}
    assert evidence.started == {"bulk-client": 1795271600.25}
    assert evidence.halted == set()
    evidence.add_program_endings({"src": result_of_stop("src", "exit bulk-client 0\nfinished bulk-client\n")})
    assert evidence.halted == {"bulk-client"}
    assert (len(evidence.started_flows), evidence.completed_flows) == (1, [])


def test_an_end_of_the_traffic_in_whole_seconds_counts_as_the_next_second() -> None:
    evidence = evidence_of()
    evidence.add_program_endings({"src": result_of_stop("src", "order-stop 1795271606.000000000\n")})
    assert evidence.traffic_over == {"src": 1795271607.0}


@pytest.mark.parametrize(("hosts", "listed"), [(3, 3), (4, 1), (25, 1)])
def test_of_many_similar_failed_checks_one_is_a_reason_and_the_others_are_counted(
    hosts: int, listed: int
) -> None:
    busy = [
        Check("CPU", f"sta{number}", "at most 95%", f"CPU 0 {95.5 + number / 10:.1f}%", False, "suspect")
        for number in range(hosts)
    ]
    other = Check("link of flow bulk-1", "src", "up", "down", False, "suspect")
    verdict, reasons = verdict_of([*busy, other])
    assert verdict == "suspect"
    assert len(reasons) == listed + 1
    assert reasons[0].startswith("CPU at sta0: requested at most 95%, observed CPU 0 95.5%")
    assert reasons[0].endswith(f" ({hosts - 1} more checks like this failed)") == (listed == 1)
    assert short_reasons(reasons) == list(reasons)
