"""Scripts of generators: golden texts, and traffic that a real shell starts, watches and stops."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from samovar.experiment import keys
from samovar.experiment.keys import parse_parameter
from samovar.plan import CapturePlan, FlowPlan, StopPlan, Trial
from samovar.recipes import BODY, Catalogue, FlowEnds, StopRule, TrialScripts
from samovar.units import UnitError
from tests.unit.trials import RESOLVED, TRIAL, flow

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "linux"
CATALOGUE = Catalogue(ROOT / "templates")
GENERATORS = sorted(CATALOGUE.names("generator", "linux"))
OFFERS = {"late-client": "ssh-ed25519 AAAA samovar", "late-server": "root ssh-ed25519 BBBB"}


def trial(*flows: FlowPlan, stop: StopPlan | None = None, captures: tuple[CapturePlan, ...] = ()) -> Trial:
    """Return the sample trial with other traffic, stop condition and captures."""
    update = {"flows": flows, "stop": stop, "deadline_s": 20.0, "captures": captures, "loggers": ()}
    return replace(TRIAL, id=uuid.uuid4().hex, source=RESOLVED.model_copy(update=update))


def scripts(
    *flows: FlowPlan, stop: StopPlan | None = None, captures: tuple[CapturePlan, ...] = ()
) -> TrialScripts:
    return TrialScripts(trial(*flows, stop=stop, captures=captures), CATALOGUE, "unit-tests")


def _blocks(generator: str) -> dict[str, str]:
    sized = {"size_bytes": 1_000_000, "duration_s": None, "cc": "newreno", "dscp": 46}
    made = {}
    for word, given in (("timed", {}), ("sized", sized)):
        known = flow("late", generator, 2.5).model_copy(update=given)
        for ends in scripts(known).flows:
            for end in ("client", "server"):
                text = _without_programs("".join(_parts(ends, end, known)))
                if text:
                    made[f"{word} {end}"] = text
    return made


def _parts(ends: FlowEnds, end: str, known: FlowPlan) -> Iterator[str]:
    host = ends.client_host if end == "client" else ends.server_host
    if host is None:
        return
    text = scripts(known)
    shared = text.read(host).partition(BODY)[0]
    yield (text.offer(host) or "").removeprefix(shared).removeprefix(BODY)
    if end == "server":
        yield _after_prelude(text.arm(host, OFFERS), "late-server")
    else:
        yield (text.arm(host, OFFERS) or "").partition(BODY)[2] * ("prepare" in ends.recipe.blocks)
        yield (text.traffic(host, 10**18) or "").partition(BODY)[2]


def _without_programs(text: str) -> str:
    """Replace each program in another language within a script by its file name."""
    ending = (ROOT / "templates" / "posix" / "program" / "ending.py").read_text()
    for path in (ROOT / "templates").glob("*/program/*"):
        for before in ("", ending):
            text = text.replace(shlex.quote(before + path.read_text()), f"<{path.name}>")
    return text


def _after_prelude(text: str | None, name: str) -> str:
    return (text or "").partition(BODY)[2] if name in (text or "") else ""


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_scripts_of_a_generator_are_equal_to_the_golden_file(generator: str) -> None:
    path = GOLDEN / f"generator-{generator}.sh"
    text = "".join(f"# ==== {name} ====\n{part}" for name, part in _blocks(generator).items())
    if os.environ.get("SAMOVAR_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def _client_with(generator: str, **parameters: object) -> str:
    known = flow("late", generator, 2.5).model_copy(update={"parameters": parameters})
    (ends,) = scripts(known).flows
    return "".join(_parts(ends, "client", known))


@pytest.mark.parametrize("generator", ["dash", "game", "ping", "voip"])
def test_an_interval_by_which_a_generator_divides_cannot_be_zero(generator: str) -> None:
    parameters = CATALOGUE.recipe("generator", generator, "linux").header.parameters
    names = {"cycle", "interval", "reply_interval"} & parameters.keys()
    assert names
    for name in names:
        with pytest.raises(UnitError, match=r"0s is below 1[mu]s, the smallest possible value"):
            parse_parameter(parameters[name], "0s")


def test_the_packets_of_a_game_server_can_all_have_the_same_size() -> None:
    spread = CATALOGUE.recipe("generator", "game", "linux").header.parameters["spread"]
    assert parse_parameter(spread, "0B") == 0
    with pytest.raises(UnitError, match="is zero"):
        parse_parameter(CATALOGUE.recipe("generator", "game", "linux").header.parameters["reply"], "0B")


def test_scp_uses_its_old_protocol_on_request() -> None:
    assert " -O late.file " not in _client_with("scp", limit="20Mbit")
    assert " -l 20000 -O late-client.file " in _client_with("scp", limit="20Mbit", legacy="on")


@pytest.mark.parametrize(("generator", "ports"), [("iperf3", (5001, 5002)), ("nttcp", ()), ("command", ())])
def test_a_logger_records_all_ports_if_a_generator_chooses_its_own_ports(
    generator: str, ports: tuple[int, ...]
) -> None:
    flows = (flow(), flow("late", generator, 2.5).model_copy(update={"port": 5002}))
    update = {"flows": flows, "captures": (), "loggers": RESOLVED.loggers}
    made = TrialScripts(replace(TRIAL, source=RESOLVED.model_copy(update=update)), CATALOGUE, "unit-tests")
    (logger,) = (one for one in made.processes("src") if one.kind == "logger")
    assert logger.values["ports"] == ports


def test_linux_and_freebsd_use_the_same_recipe_for_every_generator() -> None:
    assert CATALOGUE.names("generator", "freebsd") == set(GENERATORS)
    for name in CATALOGUE.names("generator", "freebsd"):
        same = CATALOGUE.recipe("generator", name, "linux").path
        assert CATALOGUE.recipe("generator", name, "freebsd-9").path == same, (
            "one golden text covers both systems, except for branches on `system`"
        )


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_scripts_of_a_generator_pass_the_syntax_check_of_dash(generator: str) -> None:
    for text in _blocks(generator).values():
        done = subprocess.run(["dash", "-n"], input=text, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def _commands(**runs: str) -> list[FlowPlan]:
    return [_command(label, run) for label, run in runs.items()]


def _command(label: str, run: str, **given: object) -> FlowPlan:
    update = {"parameters": {"run": run}, "size_bytes": 1, "duration_s": None, **given}
    return flow(label, "command").model_copy(update=update)


class Host:
    """This machine, which runs the scripts of the trial's host src."""

    def __init__(self, text: TrialScripts) -> None:
        self.scripts, self.folder = text, Path(text.folder)
        self.t0_ns = time.time_ns() + 100_000_000

    def traffic(self, **limits: float) -> subprocess.Popen[str]:
        """Start the traffic; only with `limits`, a full disk or a step of the clock ends it."""
        own = keys.Thresholds().model_copy(update={"disk_bytes": 0, "clock_step_s": 1e9, **limits})
        return self._start(self.scripts.traffic("src", self.t0_ns, own) or "")

    def order(self, word: str) -> None:
        subprocess.run(["dash"], input=self.scripts.order(word), text=True, check=True, timeout=20)

    def stop(self) -> str:
        return self._run(self.scripts.stop("src") or "")

    def on_host(self, text: str) -> str:
        """Run shell text with the functions that all scripts share, and return its output."""
        return self._run(self.scripts.script("src", (text,)))

    def _run(self, script: str) -> str:
        command = ["dash", "-c", script]
        return subprocess.run(command, text=True, check=True, stdout=subprocess.PIPE, timeout=30).stdout

    def _start(self, script: str) -> subprocess.Popen[str]:
        command = ["dash", "-c", script]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)


@pytest.fixture
def host() -> Iterator[Callable[..., Host]]:
    made: list[Host] = []

    def make(*flows: FlowPlan, stop: StopPlan | None = None, captures: tuple[CapturePlan, ...] = ()) -> Host:
        made.append(Host(scripts(*flows, stop=stop, captures=captures)))
        return made[-1]

    yield make
    for one in made:
        subprocess.run(["dash"], input=one.scripts.sweep("src"), text=True, check=False, timeout=30)


def _printed_lines(process: subprocess.Popen[str]) -> list[str]:
    return process.communicate(timeout=20)[0].splitlines()


def test_the_end_of_clients_is_reported_once_all_have_ended(host: Callable[..., Host]) -> None:
    at = host(*_commands(a="true", b="sleep 0.3"))
    assert _printed_lines(at.traffic()) == ["idle"]
    assert "exit a-client 0\nexit b-client 0" in at.stop()


def test_a_client_that_fails_ends_the_other_clients_at_once(host: Callable[..., Host]) -> None:
    at = host(*_commands(a="sleep 60", b="exit 3"))
    assert _printed_lines(at.traffic()) == ["failed b-client ended with exit code 3"]
    status = at.stop()
    assert "exit b-client 3" in status
    assert "finished a-client" in status
    assert "finished b-client" not in status


def test_a_client_that_ends_well_before_its_time_has_failed(host: Callable[..., Host]) -> None:
    at = host(_command("a", "true", size_bytes=None, duration_s=30.0))
    assert _printed_lines(at.traffic()) == ["failed a-client ended too early, with exit code 0"]


def test_a_client_may_end_after_the_required_share_of_its_duration(host: Callable[..., Host]) -> None:
    at = host(_command("a", "sleep 0.4", size_bytes=None, duration_s=30.0))
    assert _printed_lines(at.traffic(duration=0.01)) == ["idle"]


def test_a_flow_with_until_ends_with_the_flow_that_until_names(host: Callable[..., Host]) -> None:
    at = host(_command("a", "sleep 60", size_bytes=None, until="b"), _command("b", "sleep 0.2"))
    assert _printed_lines(at.traffic()) == ["idle"]
    status = at.stop()
    assert "finished a-client" in status
    assert "exit b-client 0" in status


def test_a_flow_with_until_ends_with_the_last_flow_of_the_group_that_until_names(
    host: Callable[..., Host],
) -> None:
    group = [_command(f"b-{n}", f"sleep 0.{n}", group="b") for n in (1, 3)]
    at = host(_command("a", "sleep 60", size_bytes=None, until="b"), *group)
    assert _printed_lines(at.traffic()) == ["idle"]
    status = at.stop()
    assert "exit b-1-client 0" in status
    assert "exit b-2-client" not in status
    assert "exit b-3-client 0" in status


def test_the_stop_of_a_trial_ends_running_flows_and_cancels_later_flows(host: Callable[..., Host]) -> None:
    flows = (_command("a", "sleep 60"), _command("b", "touch begun", start_s=30.0))
    at = host(*flows, stop=StopPlan(after_s=0.3))
    assert _printed_lines(at.traffic()) == ["idle"]
    status = at.stop()
    assert "finished a-client" in status
    assert "exit b-client unstarted\nfinished b-client" in status
    assert not (at.folder / "begun").exists()


def test_the_end_of_the_flow_that_stop_names_ends_the_trial(host: Callable[..., Host]) -> None:
    at = host(*_commands(a="sleep 60", b="sleep 0.2"), stop=StopPlan(when="b"))
    assert _printed_lines(at.traffic()) == ["idle"]
    assert "finished a-client" in at.stop()


def test_an_order_of_the_controller_between_two_scripts_is_executed_by_the_next_script(
    host: Callable[..., Host],
) -> None:
    at = host(*_commands(a="sleep 60"))
    at.order("stop")
    assert _printed_lines(at.traffic()) == ["idle"]
    assert "exit a-client unstarted" in at.stop()


def test_an_order_of_the_controller_ends_a_flow_while_the_traffic_runs(host: Callable[..., Host]) -> None:
    at = host(*_commands(a="touch begun; exec sleep 60", b="exec sleep 61"))
    process = at.traffic()
    while not (at.folder / "begun").exists():
        assert process.poll() is None
        time.sleep(0.02)
    at.order("a-client.halt")
    at.order("stop")
    assert _printed_lines(process) == ["idle"]
    assert "finished a-client" in at.stop()


def test_a_client_that_runs_after_the_end_of_its_server_has_failed(host: Callable[..., Host]) -> None:
    at = host(*_commands(a="sleep 60"))
    process = at.traffic()
    at.order("a-client.doubt")
    assert _printed_lines(process) == ["failed a-client still ran after its server had ended"]


def test_a_program_ends_the_traffic_with_a_message_in_the_file_trouble(host: Callable[..., Host]) -> None:
    at = host(
        *_commands(a="sleep 60", watcher="echo the disk is full >trouble; echo wake 1<>events; exec sleep 60")
    )
    assert _printed_lines(at.traffic()) == ["failed the disk is full"]
    assert "finished a-client" in at.stop()


def test_a_logger_that_ends_by_itself_is_reported_with_time_exit_code_and_message(
    host: Callable[..., Host],
) -> None:
    at = host(*_commands(a="sleep 60"), captures=RESOLVED.captures[:1])
    process = at.traffic()
    at.on_host("launch src-eth1 9 src-eth1.pcap.gz sh -c 'sleep 0.3; echo out of memory >&2; exit 3'\n")
    (line,) = _printed_lines(process)
    assert re.fullmatch(
        r"lost src-eth1 ended by itself after \d+\.\d s with exit code 3: out of memory", line
    )
    assert "finished a-client" in at.stop()


def test_too_little_free_disk_space_ends_the_trial(
    host: Callable[..., Host],
) -> None:
    at = host(*_commands(a="sleep 60"))
    (line,) = _printed_lines(at.traffic(disk_bytes=10**18))
    assert re.fullmatch(rf"disk \d+MB are free in {re.escape(at.scripts.folder)}", line)
    assert "finished a-client" in at.stop()


def test_the_bounds_of_the_clock_s_time_at_boot_overlap_in_all_readings(
    host: Callable[..., Host],
) -> None:
    readings = "clock_at_boot\necho $b_floor $b_ceiling\n" * 5
    bounds = [tuple(map(int, line.split())) for line in host().on_host(readings).splitlines()]
    assert max(floor for floor, _ in bounds) <= min(ceiling for _, ceiling in bounds)


def test_a_client_does_not_start_before_its_start_time(host: Callable[..., Host]) -> None:
    at = host(_command("a", "date +%s%N >started"), _command("b", "date +%s%N >late", start_s=0.4))
    assert _printed_lines(at.traffic()) == ["idle"]
    assert int((at.folder / "started").read_text()) >= at.t0_ns
    assert int((at.folder / "late").read_text()) >= at.t0_ns + 400_000_000
    began = [line for line in at.stop().splitlines() if line.startswith("a-client.pid ")]
    assert len(began) == 1


def test_a_stop_rule_has_the_clients_whose_end_it_awaits_and_the_clients_that_it_ends() -> None:
    flows = (
        flow("a"),
        flow("b-1").model_copy(update={"group": "b"}),
        flow("b-2").model_copy(update={"group": "b"}),
    )
    until = flows[0].model_copy(update={"until": "b", "duration_s": None})
    assert scripts(until, *flows[1:], stop=StopPlan(when="b-1")).rules == (
        StopRule(frozenset({"b-1-client", "b-2-client"}), ("a-client",)),
        StopRule(frozenset({"b-1-client"}), ("a-client", "b-2-client")),
    )


def test_a_server_that_sends_runs_at_the_sending_end() -> None:
    (ends,) = scripts(flow("web", "http")).flows
    assert (ends.server_host, ends.client_host) == ("src", "dst")
    (ends,) = scripts(flow("echo", "ping")).flows
    assert (ends.server_host, ends.client_host) == (None, "src")


@pytest.mark.parametrize(
    ("generator", "given", "options"),
    [
        ("iperf3", {"rate": "2Mbit"}, " -b 2000000 "),
        ("iperf3", {"mss": "536B", "socket_buffer": "64KiB"}, " -M 536 -w 65536 "),
        ("iperf", {"rate": "2Mbit", "mss": "536B"}, " -b 2000000 -M 536 "),
        ("iperf", {"rate": "500Kbit"}, " -l 62500 -b 500000 "),
        ("iperf", {"rate": "500Kbit", "length": "10KB"}, " -l 10000 -b 500000 "),
        ("nuttcp", {"rate": "500Kbit", "mss": "536B", "socket_buffer": "100KB"}, " -R 500 -M 536 -w 98 "),
    ],
)
def test_rate_segment_size_and_socket_buffer_of_a_tcp_flow_are_options_of_its_generator(
    generator: str, given: dict[str, str], options: str
) -> None:
    known = flow("late", generator, 2.5).model_copy(update={"parameters": given})
    client = (scripts(known).traffic("src", 10**18) or "").partition(BODY)[2]
    assert options in f"{client} "


def test_both_ends_of_iperf_have_the_requested_socket_buffer() -> None:
    known = flow("late", "iperf", 2.5).model_copy(update={"parameters": {"socket_buffer": "64KiB"}})
    assert "-y C -w 65536\n" in _after_prelude(scripts(known).arm("dst", OFFERS), "late-server")


@pytest.mark.parametrize(
    ("generator", "size_bytes", "options"),
    [
        ("nuttcp", 20_000, " -l 20000 -n 1 "),
        ("nuttcp", 100_000, " -l 50000 -n 2 "),
        ("nuttcp", 1_000_000_000, " -l 65536 -n 15259 "),
        ("iperf3", 20_000, " -l 20000 -n 20000 "),
        ("iperf3", 1_000_000, " -i 1 -n 1000000 "),
    ],
)
def test_a_flow_sends_little_more_than_its_size(generator: str, size_bytes: int, options: str) -> None:
    sized = {"size_bytes": size_bytes, "duration_s": None}
    known = flow("late", generator, 2.5).model_copy(update=sized)
    client = (scripts(known).traffic("src", 10**18) or "").partition(BODY)[2]
    assert options in client.replace("\n", " ")
