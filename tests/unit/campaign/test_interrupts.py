"""Signals: the first lets a command clean up, the second ends it at once."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMMAND = """
import os, sys, time
from samovar.campaign.interrupts import TWICE_S, Interrupts

def leave():
    os.write(1, b"left\\n")

def await_input():
    print("waiting", flush=True)
    sys.stdin.readline()

try:
    with Interrupts(leave):
        try:
            await_input()
        except KeyboardInterrupt:
            time.sleep(2 * TWICE_S * float(sys.argv[1]))
            print("cleaning", flush=True)
            await_input()
            print("clean", flush=True)
            raise
except KeyboardInterrupt:
    sys.exit(130)
"""

DELETING = """
import os, sys
from samovar.campaign.interrupts import Interrupts

class Resource:
    def __del__(self):
        print("deleting", flush=True)
        sys.stdin.readline()

try:
    with Interrupts(lambda: os.write(1, b"left\\n")):
        resource = Resource()
        del resource
        print("waiting", flush=True)
        sys.stdin.readline()
        print("not interrupted", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


WORKING = """
import os, sys
from types import SimpleNamespace
from samovar.campaign.interrupts import TrialInterrupt, run_in_threads

ended = []

def stop(reason):
    print("ended too early" if ended else reason, flush=True)

def work():
    print("working", flush=True)
    sys.stdin.readline()
    ended.append("work")

sessions = SimpleNamespace(interrupt=lambda: None)
context = SimpleNamespace(testbed="lab", interrupt=TrialInterrupt(), sessions=sessions, emit=print)
try:
    run_in_threads([(context, work)], stop)
except KeyboardInterrupt:
    print(*ended, context.interrupt.requested.is_set())
"""


started: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def kill_started_processes() -> Iterator[None]:
    yield
    while started:
        with started.pop() as process:
            process.kill()


def command(
    pause: int = 0, prefix: Sequence[str] = (), stdout: int = subprocess.PIPE, text: str = COMMAND
) -> subprocess.Popen[str]:
    # Tests may themselves run where signals are ignored: under nohup, or behind a script's `&`.
    default_signals = ["env", "--default-signal=HUP,INT,TERM"]
    words = [*default_signals, *prefix, sys.executable, "-c", text, str(pause)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        words, stdin=pipe, stdout=stdout, stderr=subprocess.DEVNULL, cwd=ROOT, text=True, bufsize=1
    )
    started.append(process)
    return process


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def write_input(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin
    process.stdin.write(text)
    process.stdin.flush()


def wait_until_asleep(process: subprocess.Popen[str]) -> None:
    # A signal that arrives just before read(2) does not interrupt it, and Python handles it only afterwards.
    deadline = time.monotonic() + 30
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_lets_the_command_clean_up(first: signal.Signals) -> None:
    process = command()
    assert read_line(process) == "waiting"
    wait_until_asleep(process)
    process.send_signal(first)
    assert (read_line(process), read_line(process)) == ("cleaning", "waiting")
    write_input(process, "\n")
    assert process.communicate(timeout=30)[0] == "clean\n"
    assert process.returncode == 130


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_calls_the_exit_function_and_ends_the_command_at_once(
    second: signal.Signals,
) -> None:
    process = command(pause=1)
    assert read_line(process) == "waiting"
    wait_until_asleep(process)
    process.send_signal(signal.SIGTERM)
    assert (read_line(process), read_line(process)) == ("cleaning", "waiting")
    wait_until_asleep(process)
    process.send_signal(second)
    assert process.communicate(timeout=30)[0] == "left\n"
    assert process.returncode == 130


def test_a_sigint_that_arrives_several_times_at_once_counts_as_one() -> None:
    process = command(pause=1)
    assert read_line(process) == "waiting"
    wait_until_asleep(process)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
    assert (read_line(process), read_line(process)) == ("cleaning", "waiting")
    write_input(process, "\n")
    assert process.communicate(timeout=30)[0] == "clean\n"


def test_two_sighup_of_a_closed_terminal_count_as_one() -> None:
    master, slave = pty.openpty()
    process = command(pause=1, stdout=slave)
    os.close(slave)
    # Read the whole line before closing the terminal, because the command could not print the rest of it then.
    with open(master, "rb", buffering=0) as terminal:
        assert terminal.readline().strip() == b"waiting"
    wait_until_asleep(process)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGHUP)
    write_input(process, "\n")
    process.communicate(timeout=30)
    assert process.returncode == 130, "the command ends normally although its terminal is closed"


def test_a_command_under_nohup_ignores_sighup() -> None:
    process = command(prefix=["nohup"])
    assert read_line(process) == "waiting"
    wait_until_asleep(process)
    process.send_signal(signal.SIGHUP)
    write_input(process, "\n")
    assert process.communicate(timeout=30)[0] == ""
    assert process.returncode == 0


def test_ctrl_c_waits_until_the_job_of_a_testbed_has_cleaned_up() -> None:
    process = command(text=WORKING)
    assert read_line(process) == "working"
    wait_until_asleep(process)
    process.send_signal(signal.SIGINT)
    assert read_line(process) == "interrupted by the user"
    write_input(process, "\n")
    assert process.communicate(timeout=30)[0] == "work True\n"


def test_an_interrupt_that_python_discards_is_raised_again() -> None:
    """Python discards an exception that a signal handler raises in `__del__`, and continues after it."""
    process = command(text=DELETING)
    assert read_line(process) == "deleting"
    wait_until_asleep(process)
    process.send_signal(signal.SIGINT)
    assert read_line(process) == "waiting"
    assert read_line(process) == "interrupted"
    assert process.wait(timeout=30) == 130
