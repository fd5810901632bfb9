"""Check the ends of programs and the samples of sockets."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from samovar.campaign.clocks import ClockOffset
from samovar.campaign.trial.traffic import FAILURES
from samovar.campaign.verdict import TrafficFailure, Verdict, verdict_of
from samovar.campaign.verdict.program_checks import (
    check_duration,
    check_exit_codes,
    check_loggers,
    check_start_times,
    check_traffic_failures,
)
from samovar.campaign.verdict.socket_checks import check_largest_window, check_tcp_info
from samovar.plan import LoggerPlan
from tests.unit.campaign.evidence_sample import evidence_of, with_flow
from tests.unit.trials import RESOLVED, flow

SAMPLES = "t_ns,src,dst,dport,cc,snd_wnd_bytes\n"
ROW = "1,172.16.10.2,172.16.11.2,{port},{cc},{window}\n"


@pytest.mark.parametrize(("codes", "observed"), [({"bulk-client": "1"}, "1"), ({}, "none")])
def test_a_generator_that_failed_or_never_ended_makes_the_trial_invalid(
    codes: dict[str, str], observed: str
) -> None:
    evidence = evidence_of(resolved=with_flow(flow()), exit_codes=codes)
    verdict, reasons = verdict_of(check_exit_codes(evidence))
    assert verdict == "invalid"
    assert reasons == (f"exit code of bulk-client at src: requested 0, observed {observed}",)


def test_each_failure_that_stops_the_traffic_early_makes_the_trial_invalid() -> None:
    requests = {
        "failed": "generators at src: requested run to their end",
        "lost": "loggers at src: requested record until the traffic has ended",
        "disk": "disk during the traffic at src: requested at least 50MB free",
        "clock": "clock during the traffic at src: requested no step above 50 ms",
    }
    assert requests.keys() == FAILURES
    failures = [TrafficFailure(word, "src", f"{word} it is") for word in requests]
    verdict, reasons = verdict_of(check_traffic_failures(evidence_of(failures=failures)))
    assert verdict == "invalid"
    assert reasons == tuple(f"{text}, observed {word} it is" for word, text in requests.items())


@pytest.mark.parametrize(("late_s", "observed"), [(0.05, "50.0 ms late"), (-0.25, "250.0 ms early")])
def test_the_start_time_of_a_flow_is_compared_by_the_clock_of_its_client_s_host(
    late_s: float, observed: str
) -> None:
    clocks = {"src": ClockOffset("src", 7.0, 0.001)}
    evidence = evidence_of(clocks=clocks, t_start_s=100.0, started={"late-client": 109.5 + late_s})
    (check,) = check_start_times(evidence)
    assert check.reason == f"start of flow late at src: requested on time ± 200 ms, observed {observed}"
    assert check.ok == (late_s > 0)


def logger_verdict(
    folder: Path,
    logger: str,
    code: str,
    text: str,
    seconds: float = 6.0,
    os: str = "linux",
    aqm: str = "pfifo",
) -> tuple[Verdict, tuple[str, ...]]:
    """Judge a logger of the router by its exit code and its trace."""
    (folder / "traces").mkdir(exist_ok=True)
    (folder / "traces" / f"rtr-{logger}.csv.gz").write_bytes(gzip.compress(text.encode()))
    path, router = RESOLVED.path, RESOLVED.hosts["rtr"].model_copy(update={"os": os})
    assert path is not None
    path = path.model_copy(update={"down": path.down.model_copy(update={"aqm": aqm})})
    loggers = (LoggerPlan(logger=logger, host="rtr", interface="eth2"),)
    update = {"loggers": loggers, "path": path, "hosts": {**RESOLVED.hosts, "rtr": router}}
    evidence = evidence_of(
        folder,
        RESOLVED.model_copy(update=update),
        exit_codes={f"rtr-{logger}": code},
        messages={f"rtr-{logger}": ["Traceback", "OSError: disk full", ""]},
        phases=[("traffic", seconds)],
    )
    return verdict_of(check_loggers(evidence))


ROWS = "t_ns,interface\n1,eth2\n"
EMPTY = "t_ns,interface\n"


@pytest.mark.parametrize(("logger", "code"), [("nic", "0"), ("air", "143")])
def test_a_logger_that_ends_when_it_is_stopped_is_valid(tmp_path: Path, logger: str, code: str) -> None:
    assert logger_verdict(tmp_path, logger, code, ROWS) == ("valid", ())


@pytest.mark.parametrize(("code", "observed"), [("1", "1"), ("124", "124"), ("137", "137 (SIGKILL)")])
def test_a_logger_that_failed_or_was_killed_makes_the_trial_invalid(
    tmp_path: Path, code: str, observed: str
) -> None:
    verdict, reasons = logger_verdict(tmp_path, "nic", code, ROWS)
    assert verdict == "invalid"
    expected = f"exit code of logger rtr-nic at rtr: requested 0, or 143 (SIGTERM), observed {observed}"
    expected += ": OSError: disk full"
    assert reasons == (expected,)


@pytest.mark.parametrize("text", [EMPTY, ""])
def test_a_sampler_without_samples_makes_the_trial_suspect(tmp_path: Path, text: str) -> None:
    reason = "samples of logger rtr-nic at rtr: requested one or more, observed none"
    assert logger_verdict(tmp_path, "nic", "0", text) == ("suspect", (reason,))


def test_traces_that_may_be_empty_are_valid(tmp_path: Path) -> None:
    assert logger_verdict(tmp_path, "nic", "0", EMPTY, seconds=0.05)[0] == "valid"
    for logger in ("pause-frames", "beacons", "tcp-info"):
        assert logger_verdict(tmp_path, logger, "0", EMPTY)[0] == "valid"
    assert logger_verdict(tmp_path, "queue", "0", EMPTY, os="freebsd")[0] == "suspect"
    assert logger_verdict(tmp_path, "queue", "0", EMPTY, os="freebsd", aqm="fq_codel")[0] == "valid"


@pytest.mark.parametrize(("seconds", "ok"), [(6.0, True), (5.8, True), (5.0, False)])
def test_traffic_that_ended_early_makes_the_trial_invalid(seconds: float, ok: bool) -> None:
    evidence = evidence_of(resolved=with_flow(flow()), phases=[("traffic", seconds)])
    assert [check.ok for check in check_duration(evidence)] == [ok]


@pytest.mark.parametrize(
    ("changes", "halted"),
    [
        ({"size_bytes": 9}, set()),
        ({"size_bytes": 9, "duration_s": None}, set()),
        ({"duration_s": None, "until": "other"}, set()),
        ({}, {"bulk-client"}),
    ],
)
def test_traffic_without_a_requested_duration_may_end_at_any_time(
    changes: dict[str, Any], halted: set[str]
) -> None:
    resolved = with_flow(flow().model_copy(update=changes))
    assert (
        list(check_duration(evidence_of(resolved=resolved, phases=[("traffic", 0.1)], halted=halted))) == []
    )


def _sockets(tmp_path: Path, *rows: str) -> tuple[Verdict, tuple[str, ...]]:
    trace = tmp_path / "traces" / "src-tcp-info.csv.gz"
    trace.parent.mkdir(exist_ok=True)
    with gzip.open(trace, "wt") as file:
        file.write(SAMPLES + "".join(rows) + ROW.format(port=5002, cc="reno", window=9_990_000))
    return verdict_of(check_tcp_info(evidence_of(tmp_path)))


def test_the_congestion_control_of_the_socket_is_checked(tmp_path: Path) -> None:
    right = ROW.format(port=5001, cc="reno", window=9_998_848)
    assert _sockets(tmp_path, right) == ("valid", ())
    verdict, reasons = _sockets(tmp_path, ROW.format(port=5001, cc="cubic", window=9_998_848))
    assert verdict == "invalid"
    assert reasons == ("congestion control of flow bulk at src: requested reno, observed cubic",)


CONNECTION = "t_ns,src,sport,dst,dport,cc,snd_wnd_bytes,bytes_acked\n"
CONTROL = "1,172.16.10.2,35459,172.16.11.2,5001,reno,65152,524\n"
DATA = "1,172.16.10.2,44025,172.16.11.2,5001,{cc},65152,{acked}\n"


@pytest.mark.parametrize(
    ("requested", "rows", "verdict"),
    [
        ("cubic", CONTROL + DATA.format(cc="cubic", acked=266_469), "valid"),
        ("cubic", CONTROL + DATA.format(cc="reno", acked=266_469), "invalid"),
        ("cubic", CONTROL, "valid"),  # the data connection opened and closed between two samples
        ("newreno", CONTROL + DATA.format(cc="cubic", acked=266_469), "invalid"),
    ],
)
def test_a_flow_with_its_own_congestion_control_is_judged_by_its_data_connection(
    tmp_path: Path, requested: str, rows: str, verdict: str
) -> None:
    """A control connection, such as iperf3's on the port of its flow, has the host's congestion control."""
    trace = tmp_path / "traces" / "src-tcp-info.csv.gz"
    trace.parent.mkdir()
    trace.write_bytes(gzip.compress((CONNECTION + rows).encode()))
    evidence = evidence_of(tmp_path, with_flow(flow().model_copy(update={"cc": requested})))
    assert verdict_of(check_tcp_info(evidence))[0] == verdict


def test_a_window_above_the_requested_one_is_invalid_and_one_far_below_is_suspect(tmp_path: Path) -> None:
    assert _sockets(tmp_path, ROW.format(port=5001, cc="reno", window=10_000_000))[0] == "invalid"
    assert _sockets(tmp_path, ROW.format(port=5001, cc="reno", window=8_000_000))[0] == "suspect"


@pytest.mark.parametrize(
    ("rwnd_bytes", "mtu_bytes", "least_bytes"),
    [
        *((3_000, 1500, 1_448), (10_000, 1500, 7_240), (20_000, 1500, 17_376), (50_000, 1500, 45_000)),
        (10_000, None, 7_240),
        (3_000, 600, 2_192),
        (1_000, 1500, 0),
    ],
)
def test_a_window_of_few_segments_may_be_one_segment_smaller_than_requested(
    rwnd_bytes: int, mtu_bytes: int | None, least_bytes: int
) -> None:
    """10 KB hold six segments of 1448 bytes; Linux 6.7 and later offer five of them until a segment is lost."""
    receiver = RESOLVED.hosts["dst"].model_copy(update={"rwnd_bytes": rwnd_bytes, "mtu_bytes": mtu_bytes})
    resolved = RESOLVED.model_copy(update={"hosts": {**RESOLVED.hosts, "dst": receiver}})
    evidence, bulk = evidence_of(resolved=resolved), RESOLVED.flows[0]
    assert verdict_of(check_largest_window(evidence, bulk, least_bytes))[0] == "valid"
    assert verdict_of(check_largest_window(evidence, bulk, least_bytes - 1))[0] == "suspect"
    assert verdict_of(check_largest_window(evidence, bulk, rwnd_bytes + 1))[0] == "invalid"
    assert verdict_of(check_largest_window(evidence, bulk, 0, 4 * rwnd_bytes - 1))[0] == "valid"
    assert verdict_of(check_largest_window(evidence, bulk, -1, 4 * rwnd_bytes))[0] == "suspect"


def test_a_flow_without_samples_makes_the_trial_invalid(tmp_path: Path) -> None:
    verdict, reasons = _sockets(tmp_path)
    assert (verdict, reasons) == (
        "invalid",
        ("samples of flow bulk at src: requested one or more, observed 0",),
    )


@pytest.mark.parametrize(
    "values",
    [
        {"generator": "nuttcp", "duration_s": None, "size_bytes": 30_000},
        {"generator": "nuttcp", "duration_s": 0.02},
        {"generator": "command"},
        {"generator": "iperf3-udp"},
    ],
)
def test_a_flow_that_may_be_short_or_use_other_ports_needs_no_samples(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    trace = tmp_path / "traces" / "src-tcp-info.csv.gz"
    trace.parent.mkdir()
    trace.write_bytes(gzip.compress(SAMPLES.encode()))
    evidence = evidence_of(tmp_path, with_flow(flow().model_copy(update=values)))
    assert verdict_of(check_tcp_info(evidence)) == ("valid", ())


def test_a_flow_that_did_not_start_because_of_a_stop_rule_needs_no_samples(tmp_path: Path) -> None:
    trace = tmp_path / "traces" / "src-tcp-info.csv.gz"
    trace.parent.mkdir()
    trace.write_bytes(gzip.compress(SAMPLES.encode()))
    halted = {"bulk-client"}
    unstarted = evidence_of(tmp_path, with_flow(flow()), started={}, halted=halted)
    assert list(check_tcp_info(unstarted)) == []
    assert len(list(check_tcp_info(evidence_of(tmp_path, with_flow(flow()), halted=halted)))) == 1


def test_samples_are_assigned_to_a_flow_by_its_server_port_at_either_end(tmp_path: Path) -> None:
    trace = tmp_path / "traces" / "src-tcp-info.csv.gz"
    trace.parent.mkdir()
    rows = [
        "1,172.16.10.2,5001,172.16.11.2,40000,reno,9000,1\n",
        "2,172.16.10.2,5001,172.16.11.2,40000,,9000,1\n",  # a closing socket has no congestion control
        "3,172.16.10.2,5001,172.16.11.2,40000,reno,,\n",
        "4,172.16.10.2,22,172.16.11.2,40000,cubic,9999999,1\n",
        "5,172.16.10.3,5001,172.16.11.2,40000,cubic,9999999,1\n",
    ]
    trace.write_bytes(gzip.compress((CONNECTION + "".join(rows)).encode()))
    checks = {check.name: check for check in check_tcp_info(evidence_of(tmp_path, with_flow(flow())))}
    assert checks["samples of flow bulk"].observed == "2"
    assert checks["congestion control of flow bulk"].ok
    assert checks["largest window offered to flow bulk"].observed == "9000 B"


@pytest.mark.parametrize(
    "content", [b"", b"no gzip at all", gzip.compress(b"a,b\n1,2\n"), gzip.compress(b"x")[:15]]
)
def test_an_unreadable_trace_makes_the_trial_invalid(tmp_path: Path, content: bytes) -> None:
    trace = tmp_path / "traces" / "src-tcp-info.csv.gz"
    trace.parent.mkdir()
    trace.write_bytes(content)
    assert verdict_of(check_tcp_info(evidence_of(tmp_path)))[0] == "invalid"
