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
def test_the_example_of_a_command_is_one_that_its_line_allows(pattern: str) -> None:
    (asked,) = allowed_commands([pattern], *LENA)
    assert re.fullmatch(asked.arguments, " ".join(asked.example))
    assert "<" not in asked.arguments


@pytest.mark.skipif(shutil.which("visudo") is None, reason="no visudo here")
def test_sudo_takes_the_lines_of_all_recipes(tmp_path: Path) -> None:
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
def test_no_line_allows_what_leads_to_more(command: str) -> None:
    program, _, arguments = command.partition(" ")
    allowing = [
        one.pattern
        for one in allowed_commands(PATTERNS, *LENA)
        if one.program == program and re.fullmatch(one.arguments, arguments)
    ]
    assert allowing == []


def test_what_another_program_starts_stands_by_its_full_path() -> None:
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
    ("pattern", "said"),
    [("tc <anything>", "unknown <anything>"), (f"tc {'a' * 1100}", "longer than the 1024 characters")],
)
def test_a_pattern_that_sudo_could_not_take_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        checked_pattern(pattern)


def test_a_refused_command_is_named_with_the_line_that_is_missing() -> None:
    facts = HostFacts("src", sudo=parse_sudo("user lena\npath ip /usr/sbin/ip\n"))
    what, remedy = refusal("command as root", "ip tcp_metrics flush", ("eth1",), facts)
    assert what == "sudo -n ip tcp_metrics flush is refused to lena"
    assert remedy == "sudoers lacks: lena ALL=(root) NOPASSWD: /usr/sbin/ip ^tcp_metrics flush$"


def test_root_is_asked_for_no_line() -> None:
    assert parse_sudo("") is None
    lines = list(sudoers_lines({"src": []}, {"src": []}, {"src": HostFacts("src")}))
    assert lines[-1] == "# root logs in at src; no line is needed"


def test_lines_tell_what_only_root_can_do_and_what_is_not_installed() -> None:
    facts = {"src": HostFacts("src", sudo=Sudo("lena", {"ip": "/usr/sbin/ip"}, ()))}
    asked: list[SudoCommand] = allowed_commands(["ip tcp_metrics flush", "iw dev"], *LENA)
    lines = list(sudoers_lines({"src": asked}, {"src": ["wlan: reads debugfs"]}, facts))
    assert lines[-3:] == [
        "# only root can do wlan: reads debugfs",
        "lena ALL=(root) NOPASSWD: /usr/sbin/ip ^tcp_metrics flush$",
        "# iw is not installed on src",
    ]


TOLD = """
import os, sys
os.setgroups([]); os.setgid(4242); os.setuid(4242)
os.execvp("sh", ["sh", "-c", sys.argv[1]])
"""
PRIVATE = """
mount -t tmpfs own /mnt && cp /etc/passwd /etc/shadow /mnt/ &&
echo 'lena:x:4242:4242::/tmp:/bin/sh' >>/mnt/passwd && echo 'lena:*:19000:0:99999:7:::' >>/mnt/shadow &&
printf %s "$1" >/mnt/sudoers && chmod 440 /mnt/sudoers &&
for file in passwd shadow sudoers; do mount --bind "/mnt/$file" "/etc/$file" || exit 99; done
export LOGNAME=lena
exec python3 -c "$2" "$3"
"""


def as_lena(sudoers: str, script: str) -> str:
    """Run a script as a user to whom sudo allows what the lines say, all of it in files of this test's own."""
    command = ["unshare", "--mount", "sh", "-c", PRIVATE, "sh", sudoers, TOLD, script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


needs_sudo = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("sudo") is None, reason="needs root, to become another user, and sudo"
)
ASKED = allowed_commands(["ip tcp_metrics flush", "tee /proc/sys/net/ipv4/tcp_[a-z_]+"], *LENA)
ASKED += allowed_commands(lasting_commands(["nice -n -5 sleep [0-9]+"]), *LENA)
FOUND = {name: shutil.which(name) or name for name in ("ip", "tee", "timeout", "nice", "sleep", "pkill")}


def granted(sudoers: str) -> tuple[str, ...]:
    sudo = next(fact for fact in facts_of(CATALOGUE, "linux", [], [], ASKED) if fact.name == "sudo")
    told: Sudo = sudo.parse(as_lena(sudoers, sudo.command))
    assert told.user == "lena"
    return told.allowed


@needs_sudo
def test_sudo_is_known_to_allow_what_its_lines_say() -> None:
    lines = [f"{one.line('lena', FOUND)}\n" for one in ASKED]
    assert granted("".join(lines)) == tuple(one.pattern for one in ASKED)
    assert granted(lines[0] + "lena ALL=(ALL:ALL) ALL\n" + lines[1])[:2] == tuple(
        o.pattern for o in ASKED[:2]
    )
    assert granted("lena ALL=(ALL) NOPASSWD: ALL\n") == tuple(one.pattern for one in ASKED)
    assert granted(lines[1]) == (ASKED[1].pattern,)
    assert granted("") == ()


PRELUDE = CATALOGUE.recipe("step", "prelude", "linux").render(
    "script", {"folder": "/tmp/samovar-test-lena/c/t", "campaign": "privilege-test"}
)
SWEEP = CATALOGUE.recipe("step", "sweep", "linux").render("script", {"campaign": "privilege-test"})
AWAIT = "running() { pgrep -f '^[^ ]*/sleep 5017' -u root >/dev/null; }\nawait 10 running || fail 'it does not run'\n"


@needs_sudo
@pytest.mark.parametrize("end", ["halt long; await_end long; tell long", "await_end long", SWEEP])
def test_what_lasts_as_root_is_ended_by_the_user_who_started_it(end: str) -> None:
    lines = "".join(f"{one.line('lena', FOUND)}\n" for one in ASKED)
    start = "launch_root long 60 long.out nice -n -5 sleep 5017\n"
    gone = 'left() { ! pgrep -f "sleep 5017" -u root; }\nawait 5 left || fail "it still runs"\n'
    script = f"{PRELUDE}{start}{AWAIT}{end}\n{gone}rm -rf /tmp/samovar-test-lena\n"
    said = as_lena(lines, f"unset TMPDIR; mkdir -p /tmp/samovar-test-lena\n{script}")
    assert "it still runs" not in said


@needs_sudo
def test_settings_and_batches_of_another_user_go_through_sudo_line_by_line() -> None:
    script = (
        f"{PRELUDE}(printf 'tcp_metrics flush\\nlink show\\n' | batch ip -force) 2>&1\n"
        "echo 'tcp_metrics flush' | batch ip && echo flushed\nrm -rf /tmp/samovar-test-lena\n"
    )
    said = as_lena(f"{ASKED[0].line('lena', FOUND)}\n", script)
    assert said.splitlines()[-1] == "flushed"
    assert "a password is required" in said


@needs_sudo
@pytest.mark.parametrize(
    "laid",
    ["mkdir -m 777 {folder}", "ln -s /usr {folder}", "mkdir -m 777 {folder}-x && ln -s {folder}-x {folder}"],
)
def test_a_folder_that_another_account_has_laid_out_is_not_entered(tmp_path: Path, laid: str) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent != Path("/tmp") and parent.owner() == "root" and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    folder = tmp_path / "samovar"
    subprocess.run(["sh", "-c", laid.format(folder=folder)], check=True)
    prelude = CATALOGUE.recipe("step", "prelude", "linux").render(
        "script", {"folder": f"{folder}/campaign/trial", "campaign": "privilege-test"}
    )
    script = f"( {prelude}\necho entered ) 2>&1; echo code $?\n"
    said = as_lena("", script).splitlines()
    assert "entered" not in said
    assert said[-1] == "code 70"


@needs_sudo
def test_root_makes_nothing_in_a_folder_of_another_account(tmp_path: Path) -> None:
    folder = tmp_path / "samovar"
    folder.mkdir()
    os.chown(folder, 4242, 4242)
    prelude = CATALOGUE.recipe("step", "prelude", "linux").render(
        "script", {"folder": f"{folder}/campaign/trial", "campaign": "privilege-test"}
    )
    done = subprocess.run(["sh", "-c", prelude], capture_output=True, text=True, check=False)
    assert (done.returncode, list(folder.iterdir())) == (70, [])
    assert f"{folder} belongs to another user; remove it" in done.stderr
