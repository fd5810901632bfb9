"""Compare the packets of a flow in synthetic captures with the pace requested from its generator."""

from __future__ import annotations

import gzip
import struct
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from samovar.campaign import read_plan
from samovar.campaign.policy import Policy
from samovar.campaign.verdict import Check, Evidence
from samovar.campaign.verdict.pace_checks import check_offered_rates
from samovar.errors import RecipeError
from samovar.experiment import keys
from samovar.plan import DevicePlan, FlowPlan, Resolved
from samovar.recipes import Catalogue, Pace, TrialScripts
from samovar.recipes.trial_programs import parse_paces
from tests.unit.campaign.evidence_sample import evidence_of, with_flow
from tests.unit.plans import CATALOGUE
from tests.unit.trials import PATH, RESOLVED, flow

ROOT = Path(__file__).parents[3]
ARCHIVE = ROOT / "tests" / "campaigns" / "v0.1.tar.xz"
HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)
SRC, DST = "172.16.10.2", "172.16.11.2"
PORTS = (40_000, 5001)
LATER_FRAGMENTS = (0x0005, 0x0100)


class Packet(NamedTuple):
    """A packet in a synthetic capture: the time at which it was sent, its payload, addresses and protocol."""

    t_s: float
    payload_bytes: int = 1000
    ends: tuple[str, str] = (SRC, DST)
    ports: tuple[int, int] = PORTS
    protocol: int = 17
    icmp_type: int = 8
    fragment: int = 0

    def record(self) -> bytes:
        transport = {
            1: struct.pack(">BBHI", self.icmp_type, 0, 0, 0),
            6: struct.pack(">HHIIBBHI", *self.ports, 1, 1, 5 << 4, 16, 500, 0),
            17: struct.pack(">HHHH", *self.ports, 8 + self.payload_bytes, 0),
        }[self.protocol]
        size = 20 + len(transport) + self.payload_bytes
        addresses = b"".join(bytes(map(int, one.split("."))) for one in self.ends)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, self.fragment, 64, self.protocol, 0) + addresses
        frame = bytes(12) + b"\x08\x00" + ip + transport + bytes(54)
        t_ns = round(self.t_s * 1e9)
        return struct.pack("<IIII", 100 + t_ns // 10**9, t_ns % 10**9, 96, 14 + size) + frame[:96]


def steady(per_s: float, seconds: float = 6.0, begin_s: float = 0.0, **more: Any) -> list[Packet]:
    """Make packets at a constant rate per second."""
    return [Packet(begin_s + number / per_s, **more) for number in range(round(per_s * seconds))]


def udp(generator: str = "iperf3-udp", rate: str = "800Kbit", **changes: Any) -> FlowPlan:
    """Plan a flow that sends 100 packets of 1000 bytes per second for six seconds."""
    parameters = {"rate": rate, "length": "1000B"}
    return flow(generator=generator).model_copy(update={"parameters": parameters, **changes})


def probe(interval: str = "10ms", **changes: Any) -> FlowPlan:
    return flow("probe", "ping").model_copy(update={"parameters": {"interval": interval}, **changes})


def judge(
    folder: Path,
    plan: FlowPlan,
    packets: Iterable[Packet] = (),
    at: str = "src",
    resolved: Resolved | None = None,
    **fields: Any,
) -> list[Check]:
    """Check the pace of the flow of a trial by a capture of these packets at one end."""
    resolved = resolved or with_flow(plan)
    captures = tuple(one for one in resolved.captures if one.host == at)
    file = folder / "traces" / f"{at}-eth1.pcap.gz"
    file.parent.mkdir(exist_ok=True)
    records = (packet.record() for packet in sorted(packets, key=lambda packet: packet.t_s))
    file.write_bytes(gzip.compress(HEAD + b"".join(records)))
    resolved = resolved.model_copy(update={"captures": captures})
    return list(check_offered_rates(evidence_of(folder, resolved, **fields)))


def verdicts(checks: Sequence[Check]) -> list[str]:
    return [check.verdict for check in checks]


@pytest.mark.parametrize(
    ("per_s", "verdict"),
    [(100, "valid"), (96, "valid"), (104, "valid"), (94, "suspect"), (106, "suspect"), (56, "invalid")],
)
def test_a_flow_with_a_rate_outside_the_tolerance_is_suspect_or_invalid(
    per_s: float, verdict: str, tmp_path: Path
) -> None:
    checks = judge(tmp_path, udp(), steady(per_s))
    assert verdicts(checks) == [verdict, "valid", "valid"]
    assert checks[0].reason.endswith(
        f"requested 0.8 Mbit/s ± 5.0% plus one packet, observed {per_s * 8000 / 1e6:.4g} Mbit/s"
    )


def test_the_last_packet_of_a_short_flow_may_be_missing(tmp_path: Path) -> None:
    plan = udp(duration_s=2.0, parameters={"rate": "80kbit"})
    assert verdicts(judge(tmp_path, plan, steady(10, 1.9)))[0] == "valid"
    assert verdicts(judge(tmp_path, plan, steady(10, 1.7)))[0] == "suspect"


def test_a_flow_that_never_sent_is_invalid(tmp_path: Path) -> None:
    assert judge(tmp_path, udp())[0].verdict == "invalid"


def test_a_flow_that_stops_too_early_is_invalid_although_its_rate_was_right_until_then(
    tmp_path: Path,
) -> None:
    checks = judge(tmp_path, udp(), steady(100, 3.0))
    assert verdicts(checks) == ["invalid", "suspect", "suspect"]
    assert checks[2].observed == "3.01 s"


def test_a_flow_that_catches_up_after_a_pause_is_suspect_only_for_its_longest_pause(tmp_path: Path) -> None:
    late = [
        packet if not 2.0 <= packet.t_s < 2.5 else packet._replace(t_s=2.5 + packet.t_s / 100)
        for packet in steady(100)
    ]
    checks = judge(tmp_path, udp(), late)
    assert verdicts(checks) == ["valid", "valid", "suspect"]


def test_a_flow_with_an_uneven_rate_is_suspect_although_its_mean_rate_is_right(tmp_path: Path) -> None:
    packets = [one for second in range(6) for one in steady(130 if second % 2 else 70, 1.0, second)]
    checks = judge(tmp_path, udp(), packets)
    assert verdicts(checks) == ["valid", "suspect", "valid"]
    assert checks[1].reason == (
        "even seconds of flow bulk at src: requested at least 5 of 6 seconds with a rate within 15.0% plus "
        "one packet of the mean, observed 0"
    )


@pytest.mark.parametrize(
    ("seconds", "uneven", "verdict"),
    [(6, 1, "valid"), (6, 2, "suspect"), (20, 2, "valid"), (20, 3, "suspect")],
)
def test_one_second_or_a_tenth_of_all_seconds_may_have_an_uneven_rate(
    seconds: int, uneven: int, verdict: str, tmp_path: Path
) -> None:
    packets = [
        one for second in range(seconds) for one in steady(75 if second < uneven else 100, 1.0, second)
    ]
    assert judge(tmp_path, udp(duration_s=float(seconds)), packets)[1].verdict == verdict


def test_handshake_packets_before_and_end_packets_after_the_traffic_do_not_count_for_the_pace(
    tmp_path: Path,
) -> None:
    greeting = [Packet(-2.0, 4), Packet(-1.0, 4)]
    ending = [Packet(6.0 + number / 4) for number in range(10)]
    packets = [one._replace(t_s=one.t_s + 2.0) for one in (*greeting, *steady(100), *ending)]
    assert verdicts(judge(tmp_path, udp(), packets)) == ["valid"] * 3


def test_a_flow_with_a_size_is_judged_until_its_size_was_sent(tmp_path: Path) -> None:
    ending = [Packet(4.0 + number / 4) for number in range(10)]
    plan = udp(size_bytes=400_000)
    assert verdicts(judge(tmp_path, plan, [*steady(100, 4.0), *ending])) == ["valid"] * 3
    assert judge(tmp_path, plan, steady(60, 4.0))[0].verdict == "invalid"


def test_a_flow_that_was_stopped_early_is_judged_by_the_time_in_which_it_sent(tmp_path: Path) -> None:
    ended: dict[str, Any] = {"halted": {"bulk-client"}}
    for plan in (udp(duration_s=None, until="other"), udp()):
        assert verdicts(judge(tmp_path, plan, steady(100, 4.0), **ended)) == ["valid"] * 3
        assert judge(tmp_path, plan, steady(50, 4.0), **ended)[0].verdict == "invalid"
    assert judge(tmp_path, udp(), **ended)[0].observed == "unknown: src has no capture of this flow"


def test_a_flow_is_judged_only_up_to_the_last_packet_that_could_be_read_from_its_capture(
    tmp_path: Path,
) -> None:
    policy = Policy(thresholds=keys.Thresholds.model_validate({"capture_packets": "300"}))
    assert verdicts(judge(tmp_path, udp(), steady(100), policy=policy)) == ["valid"] * 3
    evidence = evidence_of(tmp_path, with_flow(udp()))
    file = tmp_path / "traces" / "src-eth1.pcap.gz"
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes())[: 24 + 300 * 112 + 50]))
    (tmp_path / "traces" / "dst-eth1.pcap.gz").write_bytes(b"no gzip")
    assert verdicts(list(check_offered_rates(evidence))) == ["valid"] * 3


def test_packets_in_fragments_count_once_with_all_their_payload(tmp_path: Path) -> None:
    packets = steady(100, payload_bytes=1000, fragment=0x2000)
    for offset in LATER_FRAGMENTS:
        later_fragments = [one._replace(t_s=one.t_s + 1e-5, fragment=offset) for one in packets]
        assert verdicts(judge(tmp_path, udp(), [*packets, *later_fragments])) == ["valid"] * 3


def test_the_pace_of_pings_counts_echo_requests_and_not_echo_replies(tmp_path: Path) -> None:
    requests = steady(100, protocol=1, payload_bytes=56)
    answers = [one._replace(t_s=one.t_s + 1e-5, icmp_type=0) for one in requests]
    assert verdicts(judge(tmp_path, probe(), [*requests, *answers])) == ["valid"] * 3
    assert judge(tmp_path, probe(), [*requests[::2], *answers])[0].verdict == "invalid"


def test_two_ping_flows_between_the_same_addresses_are_not_judged(tmp_path: Path) -> None:
    pings = (probe(), probe("20ms", label="other"))
    resolved = RESOLVED.model_copy(update={"flows": pings})
    started = {f"{one.label}-client": 0.0 for one in pings}
    checks = judge(tmp_path, pings[0], steady(100, protocol=1), resolved=resolved, started=started)
    assert [check.verdict for check in checks] == ["valid", "valid"]
    assert all(check.observed.startswith("unknown") for check in checks)


def test_each_direction_of_a_call_is_judged_at_the_host_that_sends_it(tmp_path: Path) -> None:
    call = flow(generator="voip")
    answers = steady(25, ends=(DST, SRC), ports=PORTS[::-1], payload_bytes=172)
    checks = judge(tmp_path, call, answers, at="dst")
    assert [(check.name, check.host, check.verdict) for check in checks] == [
        ("rate sent in flow bulk", "src", "valid"),
        ("rate sent in flow bulk in answer", "dst", "invalid"),
        ("even seconds of flow bulk in answer", "dst", "valid"),
        ("longest pause of flow bulk in answer", "dst", "valid"),
    ]
    assert checks[0].observed == "unknown: src has no capture of this flow"
    assert (checks[1].requested, checks[1].observed) == ("50 packets/s", "25 packets/s")
    answers = steady(50, 4.0, ends=(DST, SRC), ports=PORTS[::-1], payload_bytes=172)
    assert verdicts(judge(tmp_path, call, answers, at="dst")) == ["valid"] * 4, (
        "the called host sends only while it receives packets"
    )


def test_the_requested_rate_is_an_upper_bound_if_flow_control_may_pause_the_sender(tmp_path: Path) -> None:
    device = DevicePlan(host="src", settable=True, medium="half", flow_control=True, pause_quanta=65535)
    resolved = with_flow(udp()).model_copy(update={"path": PATH.model_copy(update={"device": device})})
    checks = judge(tmp_path, udp(), steady(50), resolved=resolved)
    assert verdicts(checks) == ["valid"]
    assert checks[0].requested == "at most 0.8 Mbit/s"
    assert verdicts(judge(tmp_path, udp(), steady(150), resolved=resolved)) == ["invalid"]


@pytest.mark.parametrize(
    ("settings", "router", "why"),
    [
        ({}, "src", "the bottleneck's queue is at the sender"),
        ({"pause": {"rx": "on"}}, "rtr", "PAUSE frames may hold the sender back"),
        ({"shaper": {"rate": "400Kbit"}}, "rtr", "the setting `shaper` limits the sender"),
    ],
)
def test_the_reason_for_which_a_sender_may_be_slower_than_requested_is_reported(
    settings: dict[str, dict[str, str]], router: str, why: str, tmp_path: Path
) -> None:
    hosts = {**RESOLVED.hosts, "src": RESOLVED.hosts["src"].model_copy(update={"settings": settings})}
    path = PATH.model_copy(update={"router": router})
    resolved = with_flow(udp()).model_copy(update={"hosts": hosts, "path": path})
    (check,) = judge(tmp_path, udp(), steady(50), resolved=resolved)
    assert (check.verdict, check.observed) == ("valid", f"0.4 Mbit/s; {why}")


def test_an_adapter_without_flow_control_does_not_hold_the_sender_back(tmp_path: Path) -> None:
    device = DevicePlan(host="src", settable=True, medium="half", flow_control=False, pause_quanta=65535)
    resolved = with_flow(udp()).model_copy(update={"path": PATH.model_copy(update={"device": device})})
    assert verdicts(judge(tmp_path, udp(), steady(50), resolved=resolved))[0] == "invalid"


OUTPUT = {
    "iperf3-udp": '"sum": {\n "start": 0, "bytes": %d\n}',
    "iperf3": '"sum_sent": {"bytes": %d}, "sum_received": {"bytes": 1}',
}


def write_client_output(folder: Path, generator: str, sent_bytes: int) -> None:
    """Write the output of a generator's client to the logs of a trial."""
    (folder / "logs").mkdir(exist_ok=True)
    text = OUTPUT[generator] % sent_bytes
    (folder / "logs" / "bulk-client.out.gz").write_bytes(gzip.compress(text.encode()))


@pytest.mark.parametrize(("sent_bytes", "verdict"), [(600_000, "valid"), (300_000, "invalid")])
def test_without_a_capture_the_rate_is_computed_from_the_count_of_the_generator(
    sent_bytes: int, verdict: str, tmp_path: Path
) -> None:
    write_client_output(tmp_path, "iperf3-udp", sent_bytes)
    checks = judge(tmp_path, udp(), at="dst")
    assert verdicts(checks) == [verdict]
    assert checks[0].observed.endswith("Mbit/s by the generator's count")


def test_without_capture_and_count_the_rate_is_reported_as_unknown(tmp_path: Path) -> None:
    checks = judge(tmp_path, udp("iperf-udp"), at="dst")
    assert [(check.verdict, check.requested) for check in checks] == [("valid", "0.8 Mbit/s")]
    assert checks[0].observed == "unknown: src has no capture of this flow"


@pytest.mark.parametrize(
    ("changes", "halted"), [({}, {"bulk-client"}), ({"size_bytes": 300_000, "duration_s": None}, set())]
)
def test_no_rate_is_computed_from_the_count_of_a_generator_if_the_time_of_sending_is_unknown(
    changes: dict[str, Any], halted: set[str], tmp_path: Path
) -> None:
    write_client_output(tmp_path, "iperf3-udp", 300_000)
    (check,) = judge(tmp_path, udp(**changes), at="dst", halted=halted)
    assert (check.verdict, check.observed) == ("valid", "unknown: src has no capture of this flow")


def test_the_rate_of_a_user_s_generator_that_does_not_state_its_pace_is_reported_as_unknown(
    tmp_path: Path,
) -> None:
    recipe = tmp_path / "templates" / "posix" / "generator" / "own.sh.j2"
    recipe.parent.mkdir(parents=True)
    header = "{#---\nsummary: Own packets.\ntransport: udp\nneeds: [sh]\n---#}\n"
    recipe.write_text(header + "{% block client %}{% endblock %}\n")
    known = evidence_of(tmp_path, with_flow(flow(generator="own")))
    catalogue = Catalogue(tmp_path / "templates", *CATALOGUE.folders)
    scripts = TrialScripts(known.scripts.trial, catalogue, "verdicts")
    checks = list(check_offered_rates(replace(known, scripts=scripts)))
    assert verdicts(checks) == ["valid"]
    assert checks[0].observed == "unknown: generator own does not state the pace of its packets"


@pytest.mark.parametrize(
    ("sent_bytes", "verdict"), [(100_000, "valid"), (630_000, "valid"), (780_000, "suspect"), (10**6, "invalid")]
)  # fmt: skip
def test_a_rate_limit_of_a_tcp_flow_is_an_upper_bound(sent_bytes: int, verdict: str, tmp_path: Path) -> None:
    limited = flow().model_copy(update={"parameters": {"rate": "800Kbit"}})
    write_client_output(tmp_path, "iperf3", sent_bytes)
    checks = judge(tmp_path, limited, at="dst")
    assert verdicts(checks) == [verdict]
    rate = f"{8 * sent_bytes / 6 / 1e6:.4g} Mbit/s"
    assert (checks[0].requested, checks[0].observed) == ("at most 0.8 Mbit/s", rate)


@pytest.mark.parametrize(
    ("changes", "halted", "observed"),
    [
        ({"size_bytes": 10**6, "duration_s": None}, set(), "the flow has no duration, or was stopped early"),
        ({}, {"bulk-client"}, "the flow has no duration, or was stopped early"),
        ({}, set(), "src was not captured, and the generator printed no count"),
    ],
)
def test_a_rate_limit_of_a_tcp_flow_is_not_judged_if_its_rate_is_unknown(
    changes: dict[str, Any], halted: set[str], observed: str, tmp_path: Path
) -> None:
    limited = flow().model_copy(update={"parameters": {"rate": "800Kbit"}, **changes})
    (check,) = judge(tmp_path, limited, at="dst", halted=halted)
    assert (check.verdict, check.observed) == ("valid", f"unknown: {observed}")


def test_a_rate_limit_of_a_tcp_flow_is_compared_with_the_capture_if_there_is_no_count(tmp_path: Path) -> None:
    limited = flow().model_copy(update={"parameters": {"rate": "800Kbit"}})
    segments = [Packet(n / 100, protocol=6) for n in range(1000)]
    (check,) = judge(tmp_path, limited, segments)
    assert (check.verdict, check.observed) == ("invalid", "1.333 Mbit/s")


def test_a_tcp_flow_without_a_rate_limit_is_not_judged_by_its_rate(tmp_path: Path) -> None:
    assert judge(tmp_path, flow()) == []


def test_every_generator_of_paced_packets_states_its_pace() -> None:
    for name in sorted(CATALOGUE.names("generator", "linux")):
        scripts = evidence_of(resolved=with_flow(flow(generator=name))).scripts
        (ends,) = scripts.flows
        assert bool(scripts.paces(ends)) is (ends.recipe.header.transport != "tcp"), name


def test_a_pace_is_a_number_of_bits_or_packets_per_second_that_one_end_sends() -> None:
    paces = (Pace("from", 2e6, True), Pace("to", 0.5, False))
    assert parse_paces("from 2000000bit\n\n  to 0.5/s\n") == paces
    for wrong in ("from 2Mbit", "from 0/s", "at 2/s", "from e/s", "from 1e999/s"):
        with pytest.raises(RecipeError, match="expected lines such as"):
            parse_paces(wrong)


def test_every_flow_of_the_recorded_campaign_had_its_requested_pace(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    (campaign,) = tmp_path.glob("full-*")
    paced: list[Check] = []
    for trial in read_plan(campaign).trials:
        scripts = TrialScripts(trial, CATALOGUE, campaign.name)
        started = {ends.name("client"): 0.0 for ends in scripts.flows}
        paced += check_offered_rates(Evidence(scripts, campaign / "trials" / trial.id, started=started))
    assert {check.verdict for check in paced} == {"valid"}
    assert sum("observed unknown" not in check.reason for check in paced) == 12
