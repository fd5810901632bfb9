"""Power switches of hosts: their commands and errors, and the secrecy of their passwords."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from samovar.campaign.availability.survey import power_on_silent, silent_hosts
from samovar.errors import DefinitionError, TestbedError
from samovar.events import Event
from samovar.experiment import Power, load_testbed
from samovar.experiment.keys.testbed_file import Testbed
from samovar.hosts import HostsError, Machine, Sessions, SshTarget, UnreachableError, machines_of

ROOT = Path(__file__).parents[3]
CANARY = "c4n4ry-0f-th3-p0w3r"
TEXT = """\
testbed: bench
hosts:
  one:
    os: linux
    role: sender
    address: 192.0.2.1
    boot_timeout: 2min
    power: {power}
"""
# A stand-in for ipmitool(1), as tests have no management controller: it logs its arguments, command line and environment.
IPMITOOL = """\
#!{python} -IS
import json, os, sys
words = sys.argv[1:]
password = open(words[words.index("-f") + 1]).read()
json.dump({{"words": words, "command_line": open("/proc/self/cmdline").read(), "environment": dict(os.environ)}}, open({log!r}, "a"))
if words[-1] == "status":
    print("Chassis Power is off")
else:
    print("Error: Unable to establish session as", password)
    sys.exit({code})
"""


def bench(folder: Path, power: str) -> Testbed:
    path = folder / "bench.yaml"
    path.write_text(TEXT.format(power=power))
    return load_testbed(path)


def machine(folder: Path, power: str) -> Machine:
    return machines_of(bench(folder, power))["one"]


def error_of(folder: Path, power: str) -> str:
    with pytest.raises(DefinitionError) as caught:
        bench(folder, power)
    return str(caught.value)


def test_power_commands_get_host_address_and_outlet_as_arguments_without_a_shell(tmp_path: Path) -> None:
    one = machine(tmp_path, "{cycle: [printf, '%s|', '{host}', '{address}', 'x; id', '{outlet}'], outlet: 7}")
    assert one.switch("cycle") == "one|192.0.2.1|x; id|7|"
    assert one.boot_timeout_s == 120


def test_a_power_command_may_be_one_text_that_is_split_into_words_like_a_shell_command(
    tmp_path: Path,
) -> None:
    one = machine(tmp_path, """{cycle: "printf '%s|' 'a b' $HOME {host}"}""")
    assert one.switch("cycle") == "a b|$HOME|one|"


def test_a_missing_cycle_command_is_replaced_by_off_and_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("samovar.hosts.power.DISCHARGE_S", 0.0)
    log = tmp_path / "log"
    tee = f"[sh, -c, 'echo $1 >>{log}', sh, {{}}]"
    machine(tmp_path, f"{{on: {tee.format('on')}, off: {tee.format('off')}}}").switch("cycle")
    assert log.read_text() == "off\non\n"


def test_a_failing_command_is_reported_with_exit_code_and_output(tmp_path: Path) -> None:
    one = machine(tmp_path, "{cycle: [sh, -c, 'echo no such outlet >&2; exit 3'], on: [/nowhere/switch]}")
    with pytest.raises(TestbedError, match=r"^one: power cycle: sh: exit code 3: no such outlet$"):
        one.switch("cycle")
    with pytest.raises(TestbedError, match="one: power on: /nowhere/switch: cannot be run: No such file"):
        one.switch("on")
    with pytest.raises(TestbedError, match=r"one: no command for power status; accepted: on, cycle"):
        one.switch("status")


def test_the_error_of_a_host_without_a_power_switch_names_the_missing_key() -> None:
    with pytest.raises(
        TestbedError, match="no `power:` for this host in the testbed file; add it to switch its power"
    ):
        Machine("one", "192.0.2.1").switch("on")


@pytest.mark.parametrize(
    ("power", "message"),
    [
        ("{on: true}", "expected the key `cycle`, `off` or `ipmi`"),
        ("{cycle: 'a {adress}'}", "unknown placeholder 'adress'; did you mean 'address'?"),
        (
            "{cycle: 'a {host:d}'}",
            "'{host:d}' has a wrong placeholder or a single brace; expected one of {host}, {address}, {outlet}, or {{ or }} for a",
        ),
        ("{cycle: 'a {host!z}'}", "'{host!z}' has a wrong placeholder or a single brace"),
        ("{cycle: 'a {'}", "'{' has a wrong placeholder or a single brace"),
        ("{cycle: []}", "is empty; expected a program and its arguments"),
        ('{cycle: "a \'b"}', "no closing quotation; expected a program and its arguments"),
        ("{cycle: 'a {outlet}'}", "a command uses {outlet}; expected outlet: ... beside it"),
        (
            "{cycle: a, ipmi: {address: b, user: c, password_file: d}}",
            "`ipmi` and `cycle` exclude each other",
        ),
        ("{ipmi: {address: -b, user: c, password_file: d}}", "'-b' is not an address"),
        (
            "{ipmi: {address: b, user: c, password: d}}",
            "a password; remove it; use SSH keys for hosts, `password_file` for power switches, and files for",
        ),
    ],
)
def test_an_invalid_power_entry_is_refused_at_load(tmp_path: Path, power: str, message: str) -> None:
    assert message in error_of(tmp_path, power)


def bmc(folder: Path, monkeypatch: pytest.MonkeyPatch, mode: int = 0o600, code: int = 1) -> Machine:
    secret = folder / "secret"
    secret.write_text(CANARY + "\n")
    secret.chmod(mode)
    (folder / "bin").mkdir()
    program = folder / "bin" / "ipmitool"
    program.write_text(IPMITOOL.format(python=sys.executable, log=str(folder / "log"), code=code))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    return machine(folder, f"{{ipmi: {{address: 10.64.1.11, user: lab, password_file: {secret}}}}}")


def test_no_password_is_in_a_command_line_an_environment_an_error_or_a_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = bmc(tmp_path, monkeypatch)
    with pytest.raises(TestbedError, match="Unable to establish session as …") as caught:
        one.switch("off")
    log = (tmp_path / "log").read_text()
    call = json.loads(log)
    assert call["words"][:6] == ["-I", "lanplus", "-H", "10.64.1.11", "-U", "lab"]
    assert call["words"][-3:] == ["chassis", "power", "off"]
    for text in (
        log,
        str(caught.value),
        repr(caught.value.__cause__),
        repr(one),
        (tmp_path / "bench.yaml").read_text(),
    ):
        assert CANARY not in text


def test_a_power_cycle_of_a_machine_that_is_off_switches_the_machine_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bmc(tmp_path, monkeypatch, code=0).switch("cycle")
    calls = (tmp_path / "log").read_text().replace("}{", "}\n{").splitlines()
    assert [json.loads(call)["words"][-1] for call in calls] == ["status", "on"]


def test_a_password_file_that_other_users_may_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TestbedError, match="mode 644 gives other users access; set it to 600"):
        bmc(tmp_path, monkeypatch, mode=0o644).switch("status")


def test_fab_power_refuses_unknown_hosts_and_actions_and_hosts_without_a_power_switch() -> None:
    for arguments, message in (
        (["power", "nohost", "on"], "unknown host 'nohost'; known: dst, rtr, src"),
        (["power", "src", "up"], "unknown power action 'up'; known: cycle, off, on, status"),
        (["power", "src", "on", "--testbed", "lab"], "src: no `power:` for this host in the testbed file"),
    ):
        command = [str(Path(sys.executable).with_name("fab")), *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, message in done.stderr) == (1, True), done.stderr


def _silent_target(host: str, where: Path) -> SshTarget:
    """Return an SSH target at a port of this machine on which nothing listens."""
    with socket.socket() as inlet:
        inlet.bind(("127.0.0.1", 0))
        port = inlet.getsockname()[1]
    return SshTarget(host, "127.0.0.1", port, known_hosts=where, connect_timeout_s=1.0)


def test_a_host_that_is_down_is_switched_on_if_it_has_a_power_switch(tmp_path: Path) -> None:
    mark, known = tmp_path / "switched", tmp_path / "known_hosts"
    known.touch()
    with_on = Power.model_validate({"on": ["touch", str(mark)], "off": ["false"]})
    machines = {"one": Machine("one", "127.0.0.1", 0.2, with_on), "two": Machine("two", "127.0.0.1", 0.2)}
    events: list[Event] = []
    power_on_silent(Sessions(_silent_target(host, known) for host in machines), machines, events.append)
    assert mark.exists()
    assert [(event.name, event.values["host"]) for event in events] == [("host-switched-on", "one")]


def test_a_failing_power_switch_is_reported_without_waiting(tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.touch()
    power = Power.model_validate({"cycle": ["false"]})
    events: list[Event] = []
    power_on_silent(
        Sessions([_silent_target("one", known)]),
        {"one": Machine("one", "127.0.0.1", 600.0, power)},
        events.append,
    )
    assert [event.name for event in events] == ["host-switched-on", "host-not-switched"]
    assert "exit code 1" in str(events[1].values["reason"])


def test_a_host_that_refuses_the_login_does_not_count_as_silent() -> None:
    refused = TestbedError("one: authentication refused")
    refused.host = "one"
    assert silent_hosts(refused) == frozenset()
    gone = UnreachableError("two: no answer")
    assert silent_hosts(HostsError({"one": refused, "two": gone})) == {"two"}
