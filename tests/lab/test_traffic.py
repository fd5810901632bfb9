"""Traffic on the virtual dumbbell: every generator, many flows at once, start times, ends and failures."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from samovar import lab
from samovar.campaign.calibration import Calibration
from samovar.campaign.context import CampaignContext
from samovar.campaign.trial import BootSettings, TrialResult, TrialRun
from samovar.events import Event, silent
from samovar.experiment import load_testbed
from samovar.hosts import Sessions
from samovar.plan import CapturePlan, FlowPlan, HostPlan, Resolved, StopPlan, Trial
from samovar.recipes import Catalogue, TrialScripts
from tests.lab.campaigns import LENIENT, Checkout, make_checkout, until_valid

LEFT, RIGHT = ("src1", "src2", "src3", "src4"), ("dst1", "dst2", "dst3", "dst4")
ADDRESS = {
    host: f"172.16.{side}.{2 + i}"
    for side, hosts in ((10, LEFT), (11, RIGHT))
    for i, host in enumerate(hosts)
}
UNTESTED = {"nttcp"}
"""Generators that are not tested, because Debian has no package of them."""
RATED = {
    "iperf3-udp": {"rate": "400kbit"},
    "iperf-udp": {"rate": "400kbit"},
    "nuttcp-udp": {"rate": "400kbit"},
}
PARAMETERS: Mapping[str, Mapping[str, str]] = {
    **RATED,
    "ping": {"interval": "100ms", "length": "3000B"},
    "scp": {"limit": "2Mbit"},
    "http": {"object": "50KB", "period": "100ms"},
    "dash": {"rate": "400kbit", "cycle": "500ms", "prefetch": "1s"},
    "incast": {"response": "20KB", "period": "500ms"},
    "command": {"run": "exec iperf3 -c $TO -p $PORT -t $DURATION_S -b 1M", "serve": "exec iperf3 -s -p $PORT", "listens": "yes"},
}  # fmt: skip
SLOW = {"scp": 8.0}
"""Durations in s of flows that need more than 2 s: an SSH connection starts slowly, since all hosts share a processor."""
SIZED = {"iperf3", "iperf", "nuttcp"}


def flow(label: str, generator: str, ends: tuple[str, str], port: int, **changes: Any) -> FlowPlan:
    """Plan a flow of two seconds with these changes."""
    values = {
        "start_s": 0.0,
        "duration_s": 2.0,
        "size_bytes": None,
        "parameters": PARAMETERS.get(generator, {}),
        **changes,
    }
    return FlowPlan(
        label=label,
        generator=generator,
        from_host=ends[0],
        to_host=ends[1],
        from_address=ADDRESS[ends[0]],
        to_address=ADDRESS[ends[1]],
        port=port,
        **values,
    )


@dataclass
class FinishedTrial:
    """A trial that was run: its result, its manifest and its folder."""

    result: TrialResult
    manifest: Mapping[str, Any]
    folder: Path

    def bytes_by_port(self, host: str) -> dict[int, int]:
        """Return the IP bytes in a host's capture by port; a packet counts for both its ports, or for port 0 if it has none."""
        return _bytes_by_port(self.folder / "traces" / f"{host}-eth1.pcap.gz")


class Dumbbell:
    """The lab of the testbed `dumbbell`, with a session to each host."""

    def __init__(self, checkout: Checkout, sessions: Sessions) -> None:
        self.checkout, self.sessions, self.count = checkout, sessions, 0
        self.events: list[Event] = []

    def run(
        self, *flows: FlowPlan, captures: tuple[str, ...] = (), stop: StopPlan | None = None
    ) -> FinishedTrial:
        """Run a trial of these flows, without a path and without settings."""
        self.count += 1
        trial = Trial(
            id=f"trial-{self.count}", part="main", treatment={}, replicate=1, block=1, source=resolved(flows, captures, stop)
        )  # fmt: skip
        campaign = self.checkout.folder / "lab-tests"
        (campaign / "trials").mkdir(parents=True, exist_ok=True)
        catalogue = Catalogue(self.checkout.folder / "templates")
        who = (campaign, self.sessions, catalogue)
        context = CampaignContext(*who, lambda *_, **__: None, self.events.append, policy=LENIENT)
        boot_settings = BootSettings(context, _no_trial)
        result = TrialRun(context, trial, 1, boot_settings, Calibration(context)).run()
        folder = next(
            path for name in ("trials", "in-progress") if (path := campaign / name / trial.id).exists()
        )
        return FinishedTrial(result, json.loads((folder / "manifest.json").read_bytes()), folder)


def _no_trial(id_: str) -> TrialScripts:
    raise AssertionError(f"trial {id_} has no boot settings")


def resolved(flows: tuple[FlowPlan, ...], captures: tuple[str, ...], stop: StopPlan | None) -> Resolved:
    """Plan a trial of these flows, without a path and without settings of its hosts."""
    roles = dict.fromkeys(LEFT, "sender") | dict.fromkeys(RIGHT, "receiver")
    used = {host for flow in flows for host in (flow.from_host, flow.to_host)}
    return Resolved(
        mtu_bytes=None,
        duration_s=10.0,
        deadline_s=40.0,
        path=None,
        hosts={
            host: HostPlan(
                os="linux",
                role=roles[host],
                cc=None,
                rwnd_bytes=None,
                mtu_bytes=None,
                txd=None,
                interfaces=("eth1",),
            )
            for host in sorted(used)
        },
        flows=flows,
        captures=tuple(CapturePlan(host=host, interface="eth1", snaplen_bytes=96) for host in captures),
        loggers=(),
        stop=stop,
    )


def _bytes_by_port(trace: Path) -> dict[int, int]:
    data, found, at = gzip.decompress(trace.read_bytes()), dict[int, int](), 24
    while at + 16 <= len(data):
        kept = int.from_bytes(data[at + 8 : at + 12], "little")
        frame, at = data[at + 16 : at + 16 + kept], at + 16 + kept
        if frame[12:14] == b"\x08\x00":
            length, protocol, options = int.from_bytes(frame[16:18], "big"), frame[23], (frame[14] & 15) * 4
            first = not int.from_bytes(frame[20:22], "big") & 0x1FFF
            ports = frame[14 + options : 18 + options] if protocol in (6, 17) and first else b"\0\0\0\0"
            for port in {int.from_bytes(ports[:2], "big"), int.from_bytes(ports[2:], "big")}:
                found[port] = found.get(port, 0) + length
    return found


@pytest.fixture(scope="module")
def dumbbell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dumbbell]:
    checkout = make_checkout(tmp_path_factory.mktemp("checkout"))
    testbed = load_testbed(checkout.folder / "hosts" / "dumbbell.yaml")
    checkout.controller.connections.lab_up(testbed, None, silent)
    try:
        with checkout.controller.connections.sessions(testbed) as sessions:
            yield Dumbbell(checkout, sessions)
    finally:
        lab.down(checkout.controller.connections.lab_folder("dumbbell"), silent)


@pytest.fixture(scope="module")
def generators(dumbbell: Dumbbell) -> FinishedTrial:
    """A trial in which every tested generator sends from src1 to dst1."""
    names = sorted(dumbbell_generators() - UNTESTED)
    flows = []
    for number, name in enumerate(names):
        size = (
            {"size_bytes": 300_000, "duration_s": None}
            if name in SIZED
            else {"duration_s": SLOW.get(name, 2.0)}
        )
        flows.append(flow(f"f-{name}", name, ("src1", "dst1"), 5001 + number, start_s=0.8 * number, **size))
    return until_valid(lambda: dumbbell.run(*flows, captures=("src1", "dst1")))


def dumbbell_generators() -> frozenset[str]:
    return Catalogue(Path(__file__).parents[2] / "templates").names("generator", "linux")


def test_every_generator_runs_to_its_end(generators: FinishedTrial) -> None:
    assert (generators.result.outcome, generators.result.reasons) == ("completed", ())


@pytest.mark.parametrize("name", sorted(dumbbell_generators() - UNTESTED))
def test_the_packets_of_a_generator_are_in_the_capture_at_the_receiver(
    generators: FinishedTrial, name: str
) -> None:
    plan = next(one for one in generators.manifest["resolved"]["flows"] if one["generator"] == name)
    seen = generators.bytes_by_port("dst1")
    if name == "ping":
        assert seen[0] > 15 * 3028  # 15 of 20 requests with 3000 bytes of data; fragments add headers
    else:
        least = plan["size_bytes"] or {"game": 8_000, "voip": 12_000}.get(name, 60_000)
        assert seen[plan["port"]] > least


@pytest.mark.proof
def test_twelve_flows_in_both_directions_start_in_their_order_and_none_too_early(
    dumbbell: Dumbbell,
) -> None:
    pairs = [(LEFT[n % 4], RIGHT[n % 4]) if n < 8 else (RIGHT[n % 4], LEFT[n % 4]) for n in range(12)]
    flows = [
        flow(
            f"bulk-{n + 1}", "iperf3-udp" if n % 2 else "iperf3", pair, 5001 + n, start_s=0.4 * n, **_size(n)
        )
        for n, pair in enumerate(pairs)
    ]
    ran = until_valid(lambda: dumbbell.run(*flows, captures=(*RIGHT, *LEFT)))
    assert ran.result.reasons == ()
    starts = {one["flow"]: one for one in ran.manifest["starts"]}
    assert len(starts) == 12
    clocks = {one["host"]: one["error_s"] for one in ran.manifest["clocks"]}
    assert all(one["late_s"] >= -clocks[one["host"]] - TICK_S for one in starts.values())
    # On a busy machine, a flow may be later than the gap between two flows, and start after the next one.
    in_time = {name for name, one in starts.items() if one["late_s"] < 0.4}
    began = sorted((one["began_s"], name) for name, one in starts.items() if name in in_time)
    assert [name for _, name in began] == [f.label for f in flows if f.label in in_time]
    assert len(in_time) >= 6
    for one in flows:
        assert ran.bytes_by_port(one.to_host)[one.port] > 40_000


TICK_S = 0.01
"""The error of the times of files, which the kernel takes from its last tick."""


def _size(number: int) -> dict[str, Any]:
    return {} if number % 2 else {"size_bytes": 100_000, "duration_s": None}


@pytest.mark.proof
def test_a_flow_that_is_stopped_at_the_end_of_a_flow_of_other_hosts_counts_as_completed(
    dumbbell: Dumbbell,
) -> None:
    flows = (
        flow("long", "ping", ("src1", "dst1"), 5001, duration_s=None, until="short"),
        flow("short", "ping", ("src2", "dst2"), 5002, duration_s=1.0),
    )
    ran = until_valid(lambda: dumbbell.run(*flows))
    assert (ran.result.outcome, ran.result.verdict, ran.result.reasons) == ("completed", "valid", ())
    assert ran.manifest["t_end_s"] - ran.manifest["t_start_s"] < 30


@pytest.mark.proof
def test_a_stop_rule_ends_the_traffic_of_all_hosts_when_one_flow_ends(dumbbell: Dumbbell) -> None:
    flows = (
        flow("a", "iperf3-udp", ("src1", "dst1"), 5001, duration_s=35.0),
        flow("b", "iperf3-udp", ("dst2", "src3"), 5002, duration_s=35.0),
        flow("never", "iperf3-udp", ("dst2", "src3"), 5004, start_s=30.0, duration_s=5.0),
        flow("c", "ping", ("src2", "dst2"), 5003, duration_s=1.0),
    )
    ran = until_valid(lambda: dumbbell.run(*flows, stop=StopPlan(when="c")))
    assert (ran.result.verdict, ran.result.reasons) == ("valid", ())
    assert {one["flow"] for one in ran.manifest["starts"]} == {"a", "b", "c"}


@pytest.mark.proof
def test_a_stop_rule_ends_the_traffic_after_a_given_time(dumbbell: Dumbbell) -> None:
    flows = (flow("a", "voip", ("src1", "dst1"), 5001, duration_s=35.0),)
    ran = until_valid(lambda: dumbbell.run(*flows, stop=StopPlan(after_s=1.5)))
    assert (ran.result.verdict, ran.result.reasons) == ("valid", ())


@pytest.mark.parametrize("program", ["client", pytest.param("server", marks=pytest.mark.proof)])
def test_a_killed_generator_ends_the_trial_at_once_and_is_reported(dumbbell: Dumbbell, program: str) -> None:
    host = {"client": "src1", "server": "dst1"}[program]
    killed = threading.Thread(target=_kill, args=(dumbbell, host, f"a-{program}"))
    killed.start()
    ran = dumbbell.run(
        flow("a", "iperf-udp", ("src1", "dst1"), 5001, duration_s=38.0),
        flow("b", "voip", ("src2", "dst2"), 5002, duration_s=38.0),
    )
    killed.join()
    assert (ran.result.outcome, ran.result.verdict) == ("completed", "invalid")
    assert any("a-client" in reason for reason in ran.result.reasons), ran.result.reasons
    assert not any("b-client" in reason for reason in ran.result.reasons), ran.result.reasons
    assert ran.manifest["t_end_s"] - ran.manifest["t_start_s"] < 30


def _kill(dumbbell: Dumbbell, host: str, name: str) -> None:
    """Kill a program of the next trial after the first client of this trial has started."""
    folder = f"/tmp/samovar/lab-tests/trial-{dumbbell.count + 1}"
    client = f"until [ -e {folder}/a-client.pid ]; do sleep 0.1; done\n"
    _on(dumbbell, "src1", client)
    _on(dumbbell, host, f"read -r pid <{folder}/{name}.pid && pkill -KILL -P $pid")


def _on(dumbbell: Dumbbell, host: str, script: str) -> str:
    return dumbbell.checkout.on_host(host, script, "dumbbell")


LIST_PROGRAMS = """\
tries=100
while found=$(grep -lszxF SAMOVAR_CAMPAIGN=lab-tests /proc/[0-9]*/environ); [ -n "$found" ] && [ $tries -gt 0 ]; do
  tries=$((tries - 1))
  sleep 0.1
done
for one in $found; do tr '\\0' ' ' <"${one%environ}cmdline"; done
"""
"""Prints the command lines of programs of trials that still run after 10 s. (After a program has ended, the shell that
records its exit code needs a moment to end.)"""


def test_no_program_of_these_trials_is_left_on_any_host(dumbbell: Dumbbell) -> None:
    for host in (*LEFT, *RIGHT):
        assert _on(dumbbell, host, LIST_PROGRAMS) == ""
