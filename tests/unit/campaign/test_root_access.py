"""Root access of ordinary users: patterns of commands become sudoers lines that sudo accepts and that allow nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from samovar.campaign.availability.root_access import refusal, root_needs, sudoers_lines
from samovar.hosts import HostFacts, Sudo
from samovar.hosts.fact_parsers import parse_sudo
from samovar.hosts.facts import facts_of
from samovar.recipes import Catalogue, SudoCommand, allowed_commands, lasting_commands
from samovar.recipes.sudo_rules import checked_pattern

CATALOGUE = Catalogue(Path(__file__).parents[3] / "templates")
LENA = ("lena", ("eth1", "enp2s0.7"))
KINDS = ("setting", "generator", "logger", "step")
PATTERNS = sorted(
    {
        name
        for kind in KINDS
        for recipe in CATALOGUE.names(kind, "linux")
        for what, name in root_needs(CATALOGUE.recipe(kind, recipe, "linux"))
        if what == "command as root"
    }
)
PATHS = {name: f"/usr/sbin/{name}" for name in ("tc", "ip", "tee", "timeout", "nice", "tcpdump", "pkill")}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_example_of_a_command_matches_the_sudoers_line_of_the_command(pattern: str) -> None:
    (command,) = allowed_commands([pattern], *LENA)
    assert re.fullmatch(command.arguments, " ".join(command.example))
    assert "<" not in command.arguments


@pytest.mark.skipif(shutil.which("visudo") is None, reason="no visudo here")
def test_visudo_accepts_the_sudoers_lines_of_all_recipes(tmp_path: Path) -> None:
    file = tmp_path / "sudoers"
    paths = {one.program: f"/usr/bin/{one.program}" for one in allowed_commands(PATTERNS, *LENA)}
    file.write_text("".join(f"{one.line('lena', paths)}\n" for one in allowed_commands(PATTERNS, *LENA)))
    done = subprocess.run(["visudo", "-c", "-f", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


ESCAPES = [
    "tc qdisc add dev eth0 root pfifo",
    "tc -batch -",
    "tc exec bpf run sh",
    "tc qdisc add dev eth1 root bpf obj /tmp/x",
    "tc filter add dev eth1 parent ffff: prio 1 protocol ip u32 match u32 0 0 action bpf obj /tmp/x",
    "ip -batch -",
    "ip netns exec x sh",
    "ip link set dev eth0 mtu 100",
    "ip link set dev eth1 xdp obj /tmp/x",
    "ip -4 route replace 0.0.0.0/0 via 192.0.2.1",
    "tee /proc/sys/kernel/core_pattern",
    "tee /proc/sys/net/ipv4/../../kernel/core_pattern",
    "tee -a /etc/shadow",
    "modprobe -C /tmp/x tcp_cdg",
    "modprobe evil",
    "timeout -k 10 5 sh",
    "timeout -k 10 5 nice -n -5 tcpdump -n -Z root -i eth1 -s 96 -B 49152 --time-stamp-precision=nano -w -",
    "timeout -k 10 5 nice -n -5 tcpdump -n -Z lena -i eth1 -s 96 -B 49152 --time-stamp-precision=nano -w /etc/x",
    "timeout -k 10 5 /tmp/nice -n -5 tcpdump -n -Z lena -i eth1 -s 96 -B 49152 --time-stamp-precision=nano -w -",
    "timeout -k 10 5 nice -n -5 tcpdump -n -Z lena -i eth1 -z sh -G 1 -s 96 -B 1 --time-stamp-precision=nano -w -",
    "pkill -KILL -x sshd",
    "pkill -KILL -P 1 -x sshd",
    "ethtool -f eth1 firmware",
    "shutdown -h now",
    "sh -c id",
]


@pytest.mark.parametrize("command", ESCAPES)
def test_no_sudoers_line_allows_a_command_that_gives_more_rights(command: str) -> None:
    program, _, arguments = command.partition(" ")
    allowing = [
        one.pattern
        for one in allowed_commands(PATTERNS, *LENA)
        if one.program == program and re.fullmatch(one.arguments, arguments)
    ]
    assert allowing == []


def test_a_program_that_another_program_starts_is_written_with_its_full_path() -> None:
    started, signalled = (
        one.line("lena", PATHS)
        for one in allowed_commands(lasting_commands(["nice -n -5 tcpdump -w -"]), *LENA)
    )
    assert started == (
        r"lena ALL=(root) NOPASSWD: /usr/sbin/timeout ^-k 10 [0-9]+(\.[0-9]+)? "
        r"/usr/sbin/nice -n -5 /usr/sbin/tcpdump -w -$"
    )
    assert signalled == ("lena ALL=(root) NOPASSWD: /usr/sbin/pkill ^-(TERM|KILL|USR1) -P [0-9]+ -x tcpdump$")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("tc <anything>", "unknown <anything>"), (f"tc {'a' * 1100}", "longer than the 1024 characters")],
)
def test_a_pattern_that_sudo_would_not_accept_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_pattern(pattern)


def test_a_refused_command_is_reported_with_the_missing_sudoers_line() -> None:
    facts = HostFacts("src", sudo=parse_sudo("user lena\npath ip /usr/sbin/ip\n"))
    what, remedy = refusal("command as root", "ip tcp_metrics flush", ("eth1",), facts)
    assert what == "sudo -n ip tcp_metrics flush is refused to lena"
    assert remedy == "sudoers lacks: lena ALL=(root) NOPASSWD: /usr/sbin/ip ^tcp_metrics flush$"


def test_a_host_with_a_login_of_root_needs_no_sudoers_line() -> None:
    assert parse_sudo("") is None
    lines = list(sudoers_lines({"src": []}, {"src": []}, {"src": HostFacts("src")}))
    assert lines[-1] == "# root logs in at src; no line is needed"


def test_tasks_for_root_alone_and_missing_programs_are_comments_among_the_sudoers_lines() -> None:
    facts = {"src": HostFacts("src", sudo=Sudo("lena", {"ip": "/usr/sbin/ip"}, ()))}
    commands: list[SudoCommand] = allowed_commands(["ip tcp_metrics flush", "iw dev"], *LENA)
    lines = list(sudoers_lines({"src": commands}, {"src": ["wlan: reads debugfs"]}, facts))
    assert lines[-3:] == [
        "# only root can do wlan: reads debugfs",
        "lena ALL=(root) NOPASSWD: /usr/sbin/ip ^tcp_metrics flush$",
        "# iw is not installed on src",
    ]


RUN_AS_USER_4242 = """
import os, sys
os.setgroups([]); os.setgid(4242); os.setuid(4242)
os.execvp("sh", ["sh", "-c", sys.argv[1]])
"""
OWN_ETC_FILES = """
mount -t tmpfs own /mnt && cp /etc/passwd /etc/shadow /mnt/ &&
echo 'lena:x:4242:4242::/tmp:/bin/sh' >>/mnt/passwd && echo 'lena:*:19000:0:99999:7:::' >>/mnt/shadow &&
printf %s "$1" >/mnt/sudoers && chmod 440 /mnt/sudoers &&
for file in passwd shadow sudoers; do mount --bind "/mnt/$file" "/etc/$file" || exit 99; done
export LOGNAME=lena
exec python3 -c "$2" "$3"
"""


def as_lena(sudoers: str, script: str) -> str:
    """Run a script as user lena, with these sudoers lines, in a mount namespace with its own files in /etc."""
    command = ["unshare", "--mount", "sh", "-c", OWN_ETC_FILES, "sh", sudoers, RUN_AS_USER_4242, script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


needs_sudo = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("sudo") is None, reason="needs root, to become another user, and sudo"
)
COMMANDS = allowed_commands(["ip tcp_metrics flush", "tee /proc/sys/net/ipv4/tcp_[a-z_]+"], *LENA)
COMMANDS += allowed_commands(lasting_commands(["nice -n -5 sleep [0-9]+"]), *LENA)
PROGRAM_PATHS = {
    name: shutil.which(name) or name for name in ("ip", "tee", "timeout", "nice", "sleep", "pkill")
}


def allowed_to_lena(sudoers: str) -> tuple[str, ...]:
    sudo = next(fact for fact in facts_of(CATALOGUE, "linux", [], [], COMMANDS) if fact.name == "sudo")
    granted_sudo: Sudo = sudo.parse(as_lena(sudoers, sudo.command))
    assert granted_sudo.user == "lena"
    return granted_sudo.allowed


@needs_sudo
def test_the_fact_sudo_lists_the_commands_that_the_sudoers_lines_allow() -> None:
    lines = [f"{one.line('lena', PROGRAM_PATHS)}\n" for one in COMMANDS]
    assert allowed_to_lena("".join(lines)) == tuple(one.pattern for one in COMMANDS)
    assert allowed_to_lena(lines[0] + "lena ALL=(ALL:ALL) ALL\n" + lines[1])[:2] == tuple(
        o.pattern for o in COMMANDS[:2]
    )
    assert allowed_to_lena("lena ALL=(ALL) NOPASSWD: ALL\n") == tuple(one.pattern for one in COMMANDS)
    assert allowed_to_lena(lines[1]) == (COMMANDS[1].pattern,)
    assert allowed_to_lena("") == ()


PRELUDE = CATALOGUE.recipe("step", "prelude", "linux").render(
    "script", {"folder": "/tmp/samovar-test-lena/c/t", "campaign": "privilege-test"}
)
SWEEP = CATALOGUE.recipe("step", "sweep", "linux").render("script", {"campaign": "privilege-test"})
AWAIT = "running() { pgrep -f '^[^ ]*/sleep 5017' -u root >/dev/null; }\nawait 10 running || fail 'it does not run'\n"


@needs_sudo
@pytest.mark.parametrize("end", ["halt long; await_end long; tell long", "await_end long", SWEEP])
def test_a_long_running_command_as_root_can_be_stopped_by_the_user_who_started_it(end: str) -> None:
    lines = "".join(f"{one.line('lena', PROGRAM_PATHS)}\n" for one in COMMANDS)
    start = "launch_root long 60 long.out nice -n -5 sleep 5017\n"
    gone = 'left() { ! pgrep -f "sleep 5017" -u root; }\nawait 5 left || fail "it still runs"\n'
    script = f"{PRELUDE}{start}{AWAIT}{end}\n{gone}rm -rf /tmp/samovar-test-lena\n"
    said = as_lena(lines, f"unset TMPDIR; mkdir -p /tmp/samovar-test-lena\n{script}")
    assert "it still runs" not in said


@needs_sudo
def test_an_ordinary_user_s_batch_of_commands_runs_through_sudo_line_by_line() -> None:
    script = (
        f"{PRELUDE}(printf 'tcp_metrics flush\\nlink show\\n' | batch ip -force) 2>&1\n"
        "echo 'tcp_metrics flush' | batch ip && echo flushed\nrm -rf /tmp/samovar-test-lena\n"
    )
    said = as_lena(f"{COMMANDS[0].line('lena', PROGRAM_PATHS)}\n", script)
    assert said.splitlines()[-1] == "flushed"
    assert "a password is required" in said


@needs_sudo
@pytest.mark.parametrize(
    "preparation",
    ["mkdir -m 777 {folder}", "ln -s /usr {folder}", "mkdir -m 777 {folder}-x && ln -s {folder}-x {folder}"],
)
def test_a_folder_or_link_that_another_account_made_is_not_entered(tmp_path: Path, preparation: str) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent != Path("/tmp") and parent.owner() == "root" and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    folder = tmp_path / "samovar"
    subprocess.run(["sh", "-c", preparation.format(folder=folder)], check=True)
    prelude = CATALOGUE.recipe("step", "prelude", "linux").render(
        "script", {"folder": f"{folder}/campaign/trial", "campaign": "privilege-test"}
    )
    script = f"( {prelude}\necho entered ) 2>&1; echo code $?\n"
    said = as_lena("", script).splitlines()
    assert "entered" not in said
    assert said[-1] == "code 70"


@needs_sudo
def test_root_writes_nothing_into_a_folder_of_another_account(tmp_path: Path) -> None:
    folder = tmp_path / "samovar"
    folder.mkdir()
    os.chown(folder, 4242, 4242)
    prelude = CATALOGUE.recipe("step", "prelude", "linux").render(
        "script", {"folder": f"{folder}/campaign/trial", "campaign": "privilege-test"}
    )
    done = subprocess.run(["sh", "-c", prelude], capture_output=True, text=True, check=False)
    assert (done.returncode, list(folder.iterdir())) == (70, [])
    assert f"{folder} belongs to another user; remove it" in done.stderr
