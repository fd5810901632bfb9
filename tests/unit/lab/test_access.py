"""The record of a lab's process, SSH commands for its hosts, allowed congestion controls, and the choice of its kernel."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from samovar.errors import LabError
from samovar.events import silent
from samovar.lab import Access, KernelNeeds, dial, down, kernel, lifecycle, read_access, shell_command
from samovar.lab.access import RECORD, OsProcess, children, process, read_record, write_record
from samovar.lab.kernel import choose_kernel, machine_lacks


def own_process() -> OsProcess:
    found = process(os.getpid())
    assert found is not None
    return found


def access_of(one: OsProcess, folder: Path) -> Access:
    return Access(
        pid=one.pid,
        start_ticks=one.start_ticks,
        kernel="uml",
        user_namespace=False,
        key=str(folder / "id_ed25519"),
        known_hosts=str(folder / "known_hosts"),
        testbed="lab",
        hosts={"src": "10.64.0.11"},
    )


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    access = access_of(own_process(), tmp_path)
    write_record(tmp_path, access)
    assert read_access(tmp_path) == access


def test_a_record_of_an_ended_process_is_not_a_running_lab(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        one = process(child.pid)
        assert one is not None
        write_record(tmp_path, access_of(one, tmp_path))
        assert read_access(tmp_path) is not None
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not one.is_running, "a process that waits to be reaped counts as ended"
    assert read_access(tmp_path) is None
    assert read_record(tmp_path) is not None


def test_a_later_process_with_the_same_pid_is_not_the_lab(tmp_path: Path) -> None:
    mine = own_process()
    other = replace(mine, start_ticks=mine.start_ticks + 1)
    write_record(tmp_path, access_of(other, tmp_path))
    assert read_access(tmp_path) is None
    assert down(tmp_path, silent) is False, "down kills only the process that was recorded"
    assert mine.is_running
    assert read_record(tmp_path) is None


@pytest.mark.parametrize("command", [read_access, lambda folder: down(folder, silent)])
def test_the_lab_of_another_computer_with_the_same_project_is_left_alone(
    command: Callable[[Path], object], tmp_path: Path
) -> None:
    write_record(tmp_path, replace(access_of(own_process(), tmp_path), node="node7"))
    with pytest.raises(LabError, match="lab lab: node7, which shares this project, has started it; run"):
        command(tmp_path)
    assert (tmp_path / RECORD).exists()


def test_a_process_name_may_contain_blanks_and_parentheses(tmp_path: Path) -> None:
    program = tmp_path / "odd) S 1 (name"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as child:
        one = process(child.pid)
        assert one is not None
        assert one.is_running
        assert one.parent == own_process()
        child.kill()


def test_an_incomplete_record_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "access.json").write_text('{"pid": 1')
    with pytest.raises(LabError, match=r"access\.json"):
        read_access(tmp_path)


def test_no_connection_is_opened_after_the_lab_has_ended(tmp_path: Path) -> None:
    mine = own_process()
    ended = access_of(replace(mine, start_ticks=mine.start_ticks + 1), tmp_path)
    with pytest.raises(LabError, match=r"has ended; start it with fab lab\.up"):
        dial(ended)("10.64.0.11", 22)


def test_stopping_a_lab_that_never_ran_changes_nothing(tmp_path: Path) -> None:
    assert down(tmp_path / "none", silent) is False
    assert not (tmp_path / "none").exists()


def test_a_lab_on_the_machine_s_kernel_allows_every_congestion_control_that_the_kernel_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file, text in (("available", "reno cubic"), ("tcp_vegas.ko.xz", ""), ("tcp_htcp.ko", "")):
        (tmp_path / file).write_text(text)
    (tmp_path / "modprobe").write_text(
        f'#!/bin/sh\nfor name; do case $name in tcp_*) printf " %s" "${{name#tcp_}}";; esac; done >>{tmp_path}/available\n'
    )
    (tmp_path / "modprobe").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(kernel, "CC_MODULES", tmp_path)
    monkeypatch.setattr(kernel, "CC_AVAILABLE", tmp_path / "available")
    monkeypatch.setattr(kernel, "CC_ALLOWED", tmp_path / "allowed")
    kernel.allow_all_cc({"cdg"})
    assert (tmp_path / "allowed").read_text() == "reno cubic cdg htcp vegas\n"


@pytest.mark.parametrize("first_to_stop", [0, 1])
def test_the_last_of_two_labs_on_the_machine_s_kernel_restores_the_allowed_congestion_controls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_to_stop: int
) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text("reno cubic\n")
    monkeypatch.setattr(kernel, "CC_ALLOWED", allowed)
    find_labs = lifecycle._other_native_labs

    def labs_of_this_test(folder: Path) -> list[Access]:
        return [one for one in find_labs(folder) if tmp_path in Path(one.key).parents]

    monkeypatch.setattr(lifecycle, "_other_native_labs", labs_of_this_test)
    folders = [tmp_path / "one" / ".lab" / "lab", tmp_path / "two" / ".lab" / "lab"]
    with ExitStack() as stack:
        for folder in folders:
            (folder / "boot").mkdir(parents=True)
            (folder / "boot" / "lab-init.sh").write_text("read line")
            words = ["unshare", "--fork", "sh", str(folder / "boot" / "lab-init.sh")]
            parent = stack.enter_context(subprocess.Popen(words, stdin=subprocess.PIPE))
            until_s = time.monotonic() + 10
            while not (pids := children(parent.pid)) and time.monotonic() < until_s:
                time.sleep(0.01)
            one = process(pids[0])
            assert one is not None
            before = lifecycle._allowed_before_labs(folder)
            write_record(folder, replace(access_of(one, folder), kernel="native", allowed_before=before))
            kernel.allow_cc("reno cubic bbr")
        down(folders.pop(first_to_stop), silent)
        assert allowed.read_text() == "reno cubic bbr\n"
        down(folders.pop(), silent)
        assert allowed.read_text() == "reno cubic\n"


def test_a_lab_is_stopped_even_if_the_earlier_congestion_controls_cannot_be_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "_other_native_labs", lambda folder: [])
    with subprocess.Popen(["sleep", "60"]) as child:
        one = process(child.pid)
        assert one is not None
        child.kill()
    write_record(tmp_path, replace(access_of(one, tmp_path), allowed_before="no_such_cc"))
    with pytest.raises(LabError, match="tcp_allowed_congestion_control"):
        down(tmp_path, silent)
    assert not down(tmp_path, silent)


def test_the_shell_command_survives_blanks_and_percent_signs_in_paths(tmp_path: Path) -> None:
    folder = tmp_path / "a b%c"
    command = shell_command(access_of(own_process(), folder), "src")
    shown = subprocess.run([*command[:-1], "-G", command[-1]], capture_output=True, text=True, check=True)
    settings = dict(line.split(" ", 1) for line in shown.stdout.splitlines() if " " in line)
    assert settings["userknownhostsfile"] == str(folder / "known_hosts")
    assert settings["stricthostkeychecking"] == "true"
    assert settings["batchmode"] == "yes"
    assert sys.executable in shlex.split(settings["proxycommand"].replace("%%", "%"))


def test_a_shell_on_an_unknown_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"unknown host 'dst'; known: src"):
        shell_command(access_of(own_process(), tmp_path), "dst")


def test_the_machine_lacks_a_feature_that_no_kernel_has() -> None:
    needs = KernelNeeds(frozenset({"reno", "samovar"}), frozenset({"pfifo", "samovar"}))
    lacking = machine_lacks(needs)
    assert lacking.count("samovar") == 2
    assert "reno" not in lacking


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"
)
def test_a_machine_without_dev_net_tun_lacks_tap_interfaces() -> None:
    needs = 'KernelNeeds(features=frozenset({"tap"}))'
    program = f"from samovar.lab.kernel import KernelNeeds, machine_lacks; print(machine_lacks({needs}))"
    visible = [sys.executable, "-c", program]
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "sh", *visible]
    results = [subprocess.run(one, capture_output=True, text=True, check=True) for one in (visible, hidden)]
    assert [one.stdout.strip() for one in results] == ["[]", "['tap']"]


def test_auto_selects_user_mode_linux_if_the_machine_lacks_a_feature() -> None:
    assert choose_kernel("auto", KernelNeeds(frozenset({"samovar"}))) == "uml"
    assert choose_kernel("uml", KernelNeeds()) == "uml"
