"""The protocol of the shell on a host: the text that is sent, and the parser of the answers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from samovar.errors import TestbedError
from samovar.hosts import remote_shell
from samovar.hosts.remote_shell import (
    ScriptFrame,
    ShellFolder,
    boot_text,
    find_frame,
    find_line,
    new_mark,
    on_loss_text,
    run_text,
)

MARK = "samovar-00112233445566778899aabbccddeeff"
M = MARK.encode()


def read(data: bytes, size: int) -> ScriptFrame | None:
    buffer, frame = bytearray(), None
    for start in range(0, len(data), size):
        assert frame is None, "the frame was found before its last byte"
        buffer += data[start : start + size]
        frame = find_frame(buffer, MARK)
    return frame


@pytest.mark.parametrize("size", [1, 2, 7, 31, 1000])
def test_a_frame_is_read_in_blocks_of_any_size(size: int) -> None:
    data = b"noise\n" + b"\n" + M + b" 3\n" + b"out\n\0\xff" + M + b"err" + M
    assert read(data, size) == ScriptFrame(3, b"out\n\0\xff", b"err")


def test_the_outputs_in_a_frame_may_be_empty() -> None:
    assert read(b"\n" + M + b" 0\n" + M + M, 1000) == ScriptFrame(0, b"", b"")


def test_output_of_an_earlier_script_is_skipped() -> None:
    other = new_mark().encode()
    late = b"\n" + other + b" 137\nlate" + other + other
    assert read(late + b"\n" + M + b" 0\nnow" + M + M, 9) == ScriptFrame(0, b"now", b"")


def test_an_incomplete_frame_is_not_returned() -> None:
    frame = b"\n" + M + b" 0\nout" + M + b"err" + M
    assert all(find_frame(bytearray(frame[:end]), MARK) is None for end in range(len(frame)))


def test_a_line_with_a_mark_is_found_once_it_is_complete() -> None:
    assert find_line(bytearray(b"motd\n\n" + M + b" /tmp/samov"), MARK) is None
    assert find_line(bytearray(b"motd\n\n" + M + b" /tmp/samovar-src.x\n"), MARK) == "/tmp/samovar-src.x"


def test_generated_marks_are_unique() -> None:
    assert len({new_mark() for _ in range(100)}) == 100


@pytest.mark.parametrize("host", ["", "a b", "a;b", "../x", "-n", "$(id)", "a\nb"])
def test_a_host_name_with_special_characters_is_refused(host: str) -> None:
    with pytest.raises(TestbedError, match="not a name"):
        boot_text(host, MARK, None)


def test_the_text_that_is_sent_to_the_shell_is_valid_posix_shell() -> None:
    texts = boot_text("src", MARK, ShellFolder("/tmp/it's", "samovar-x")) + run_text("echo 'a\n'", MARK)
    subprocess.run(["/bin/sh", "-n"], input=texts, text=True, check=True)
    subprocess.run(["/bin/bash", "--posix", "-n"], input=texts, text=True, check=True)


@pytest.mark.parametrize("turn", range(5))
def test_no_process_survives_a_controller_that_ends_just_after_sending_a_script(
    tmp_path: Path, turn: int
) -> None:
    """The standard input of the shell ends right after the order to run the script, before the script has begun."""
    texts = boot_text("src", MARK, None) + on_loss_text(f"echo cleaned >{tmp_path}/cleaned", MARK)
    texts += run_text(f"sleep 20; echo whole >{tmp_path}/whole", MARK)
    shell = ["/bin/sh", "-s", "samovar-test"]
    subprocess.run(shell, input=texts, text=True, stdout=subprocess.DEVNULL, timeout=15, check=False)
    assert (tmp_path / "cleaned").exists()
    assert not (tmp_path / "whole").exists()


def on_a_small_disk(*scripts: str) -> list[ScriptFrame]:
    """Run scripts in one shell whose /tmp is a separate file system of 256 KiB."""
    marks = [new_mark() for _ in scripts]
    awaited = [
        run_text(script, mark) + "samovar_await\n" for script, mark in zip(scripts, marks, strict=True)
    ]
    orders = boot_text("src", MARK, None) + "".join(awaited)
    small = "mount -t tmpfs -o size=256k small /tmp && exec /bin/sh -s samovar-test"
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c", small]
    done = subprocess.run(command, input=orders.encode(), stdout=subprocess.PIPE, timeout=30, check=False)
    frames = []
    for mark in marks:
        frame = find_frame(bytearray(done.stdout), mark)
        assert frame is not None, done.stdout
        frames.append(frame)
    return frames


def test_output_lost_to_a_full_disk_is_an_error() -> None:
    filling = "cat /dev/zero >/tmp/full 2>/dev/null; echo all is well; exit 0"
    filled, emptied, after = on_a_small_disk(filling, "rm /tmp/full; echo well", "echo well")
    assert (filled.exit_code, filled.stdout) == (74, b"")
    assert filled.stderr == b"no room in /tmp for the output of the script"
    assert [(one.exit_code, one.stdout, one.stderr) for one in (emptied, after)] == [(0, b"well\n", b"")] * 2


def test_a_script_that_failed_keeps_its_own_exit_code_on_a_full_disk() -> None:
    (failed,) = on_a_small_disk("cat /dev/zero >/tmp/full 2>/dev/null; echo why >&2; exit 3")
    assert (failed.exit_code, failed.stderr) == (3, b"no room in /tmp for the output of the script")


def test_killing_a_script_that_has_just_ended_kills_no_other_script(tmp_path: Path) -> None:
    """The file `running` may no longer have a mark when it is read. A PID namespace hides processes outside this test."""
    shell = (Path(remote_shell.__file__).parent / "shell.sh").read_text("utf-8")
    functions = shell[shell.index("samovar_first()") : shell.index("# Clean up folder $1 after")]
    (tmp_path / "running").write_text("\n")
    steps = 'SAMOVAR_RUN=other-1- sleep 60 & samovar_kill "$d"; kill -s 0 "$!" && echo "the other runs"'
    words = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]
    environment = {**os.environ, "d": str(tmp_path)}
    ended = subprocess.run(
        [*words, "sh", "-c", functions + steps],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout == "the other runs\n", ended.stderr
