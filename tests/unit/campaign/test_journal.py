"""The journal of a campaign: events on disk, torn lines, the lock, and the state that the events result in."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from samovar.campaign.journal import (
    JOURNAL,
    Entry,
    Journal,
    SavedState,
    failed_checksums,
    fold,
    is_running,
    read_journal,
)
from samovar.errors import CampaignError

BEGUN = Entry(1.0, "campaign-started", {"plan": "abc"})
STARTED = Entry(2.0, "trial-started", {"id": "cubic-r1-3f9a1c", "attempt": 1})
FINISHED = Entry(
    9.5,
    "trial-finished",
    {
        "id": "cubic-r1-3f9a1c",
        "outcome": "completed",
        "verdict": "suspect",
        "reasons": ["clock"],
        "overhead_s": 1.7,
    },
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / JOURNAL


def write(file: Path, *entries: Entry) -> None:
    with Journal(file) as journal:
        for entry in entries:
            journal.append(entry.event, entry.t_s, **entry.values)


def with_checksum(entry: Entry, *before: Entry) -> Entry:
    """Return an event with the checksum of the events before it, as a journal stores it."""
    digest = hashlib.sha256(b"".join(one.line() for one in before)).hexdigest()
    return Entry(entry.t_s, entry.event, {**entry.values, "before": digest})


def test_appended_events_are_read_back(file: Path) -> None:
    write(file, BEGUN, STARTED, FINISHED)
    assert read_journal(file) == [BEGUN, STARTED, with_checksum(FINISHED, BEGUN, STARTED)]


def test_an_edit_of_the_journal_is_detected_by_the_checksums_in_later_trial_finished_events(
    file: Path,
) -> None:
    write(file, BEGUN, FINISHED)
    write(file, STARTED, FINISHED)  # written by another controller
    whole = file.read_bytes()
    assert list(failed_checksums(whole)) == []
    assert list(failed_checksums(whole.replace(b'"abc"', b'"abd"'))) == [2, 4]
    first, second, *rest = whole.splitlines(keepends=True)
    assert list(failed_checksums(b"".join([first, second, *rest[1:]]))) == [3], "a line was removed"
    assert list(failed_checksums(first + whole)) == [3, 5], "a line was inserted"
    without_checksums = b"".join(line for line in (BEGUN.line(), FINISHED.line()))
    assert list(failed_checksums(without_checksums)) == [], "earlier releases wrote no checksums"


def test_an_event_is_one_json_object_on_one_line_whatever_its_values_contain(file: Path) -> None:
    values = {"id": "a", "state": "line\r\nbreak \u2028 \x00 ü"}
    write(file, Entry(1.0, "state-read", values), BEGUN)
    first, second = file.read_bytes().removesuffix(b"\n").split(b"\n")
    assert json.loads(first) == {"t_s": 1.0, "event": "state-read", **values}
    assert read_journal(file)[0].values == values
    assert json.loads(second)["event"] == "campaign-started"


def test_events_are_appended_to_a_reopened_journal(file: Path) -> None:
    write(file, BEGUN)
    with Journal(file) as journal:
        assert list(journal.entries) == [BEGUN]
        journal.append(STARTED.event, STARTED.t_s, **STARTED.values)
        assert list(journal.entries) == [BEGUN, STARTED]
    assert read_journal(file) == [BEGUN, STARTED]


def test_a_last_event_cut_at_any_byte_is_moved_to_a_file_beside_the_journal(tmp_path: Path) -> None:
    whole = BEGUN.line() + STARTED.line()
    last = with_checksum(FINISHED, BEGUN, STARTED).line()
    for cut in range(len(last)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        file = folder / JOURNAL
        file.write_bytes(whole + last[:cut])
        assert read_journal(file) == [BEGUN, STARTED]
        assert file.read_bytes() == whole + last[:cut], "reading does not change the file"
        with Journal(file) as journal:
            assert list(journal.entries) == [BEGUN, STARTED]
            journal.append(FINISHED.event, FINISHED.t_s, **FINISHED.values)
        assert file.read_bytes() == whole + last
        torn = [path.read_bytes() for path in folder.glob("journal.torn-*")]
        assert torn == ([last[:cut]] if cut else [])


def test_a_last_line_of_zeros_or_of_incomplete_json_is_removed_as_torn(file: Path) -> None:
    for tail in (b"\0" * 100, b"\0" * 100 + b"\n", b'{"t_s": 1.0, "event"\n'):
        file.write_bytes(BEGUN.line() + tail)
        assert read_journal(file) == [BEGUN]
        with Journal(file) as journal:
            assert list(journal.entries) == [BEGUN]
        assert file.read_bytes() == BEGUN.line()


def test_each_torn_event_is_kept_in_a_file_with_its_own_number(file: Path) -> None:
    for text in (b"first", b"second"):
        with file.open("ab") as journal:
            journal.write(text)
        Journal(file).close()
    assert file.with_name("journal.torn-1").read_bytes() == b"first"
    assert file.with_name("journal.torn-2").read_bytes() == b"second"


@pytest.mark.parametrize(
    "line",
    [
        *(b"nonsense", b"[]", b'{"event": "phase"}', b'{"t_s": "x", "event": "phase"}', b"", b"\xff\xfe"),
        b"[" * 100_000,
    ],
)
def test_a_corrupt_line_in_the_middle_is_reported_by_number(file: Path, line: bytes) -> None:
    file.write_bytes(BEGUN.line() + line + b"\n" + STARTED.line())
    with pytest.raises(CampaignError, match=rf"{JOURNAL}:2: not an event"):
        read_journal(file)
    with pytest.raises(CampaignError, match=rf"{JOURNAL}:2: not an event"):
        Journal(file)
    assert list(file.parent.glob("journal.torn-*")) == []


def test_a_corrupt_line_before_a_torn_line_is_reported_by_number(file: Path) -> None:
    file.write_bytes(BEGUN.line() + b"nonsense\n" + STARTED.line()[:5])
    with pytest.raises(CampaignError, match=rf"{JOURNAL}:2: not an event"):
        read_journal(file)


def test_a_second_controller_cannot_open_the_journal_but_a_reader_can_read_it(file: Path) -> None:
    with Journal(file) as journal:
        journal.append(BEGUN.event, BEGUN.t_s, **BEGUN.values)
        with pytest.raises(CampaignError, match="another controller is running"):
            Journal(file)
        assert read_journal(file) == [BEGUN]
    Journal(file).close()


def test_a_completed_trial_keeps_its_result_if_its_path_is_refused_before_it_runs_again() -> None:
    refused = Entry(12.0, "trial-refused", {"id": FINISHED.values["id"], "reasons": ["rate at eth2"]})
    (kept,) = fold([BEGUN, STARTED, FINISHED, refused]).trials.values()
    (failed,) = fold([BEGUN, refused]).trials.values()
    assert (kept.result, kept.reasons) == ("suspect", ("clock",))
    assert (failed.result, failed.reasons) == ("failed", ("rate at eth2",))


PRINT_IS_RUNNING = (
    "import sys, pathlib, samovar.campaign.journal as j; print(j.is_running(pathlib.Path(sys.argv[1])))"
)
"""Python code that prints whether a controller runs the campaign; its first argument is the journal's path."""
OTHER_PID_NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
"""The beginning of a command line; its command sees no process of this computer, as if on another node of a cluster."""


def test_a_campaign_runs_while_its_journal_is_open_for_writing(file: Path) -> None:
    assert not is_running(file)
    with Journal(file):
        assert is_running(file)
    assert not is_running(file)


@pytest.mark.skipif(
    subprocess.run([*OTHER_PID_NAMESPACE, "true"], check=False).returncode != 0, reason="no namespaces"
)
def test_a_running_controller_is_found_although_its_process_is_not_visible(file: Path) -> None:
    with Journal(file):
        done = subprocess.run(
            [*OTHER_PID_NAMESPACE, sys.executable, "-c", PRINT_IS_RUNNING, file],
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == "True\n"


def test_a_controller_can_start_while_the_status_is_read(file: Path) -> None:
    Journal(file).close()
    with file.open() as read_only:
        fcntl.flock(read_only, fcntl.LOCK_SH)  # as is_running() does
        threading.Timer(0.05, fcntl.flock, (read_only, fcntl.LOCK_UN)).start()
        Journal(file).close()


def test_a_killed_controller_leaves_a_complete_journal_and_no_lock(file: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from samovar.campaign.journal import Journal
journal = Journal(Path({str(file)!r}))
journal.append("campaign-started", 1.0, plan="abc")
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], check=False)
    assert killed.returncode == -signal.SIGKILL
    with Journal(file) as journal:
        assert list(journal.entries) == [BEGUN]


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Limit the size of files, as a full disk does: a write beyond it is cut short, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_an_event_that_does_not_fit_on_the_disk_is_an_error_and_leaves_no_partial_line(file: Path) -> None:
    with Journal(file) as journal:
        journal.append(BEGUN.event, BEGUN.t_s, **BEGUN.values)
        with (
            file_size_limit(len(BEGUN.line()) + 10),
            pytest.raises(CampaignError, match="trial-started cannot be written: File too large"),
        ):
            journal.append(STARTED.event, STARTED.t_s, **STARTED.values)
        assert file.read_bytes() == BEGUN.line()
        journal.append(STARTED.event, STARTED.t_s, **STARTED.values)
    assert read_journal(file) == [BEGUN, STARTED]


def test_a_missing_journal_is_an_error(file: Path) -> None:
    with pytest.raises(CampaignError, match=r"journal.jsonl: cannot be read: No such file"):
        read_journal(file)
    with pytest.raises(CampaignError, match="cannot be opened: No such file"):
        Journal(file.parent / "gone" / JOURNAL)


def test_a_finished_trial_has_its_duration_overhead_phases_and_verdict() -> None:
    phases = [
        Entry(2.3, "phase", {"id": "cubic-r1-3f9a1c", "phase": "set", "seconds": 0.3}),
        Entry(9.4, "phase", {"id": "cubic-r1-3f9a1c", "phase": "set", "seconds": 0.2}),
    ]
    state = fold([BEGUN, STARTED, *phases, FINISHED])
    trial = state.trials["cubic-r1-3f9a1c"]
    assert (trial.status, trial.verdict, trial.reasons, trial.attempts) == (
        "completed",
        "suspect",
        ("clock",),
        1,
    )
    assert (trial.seconds, trial.overhead_s, trial.phases) == (7.5, 1.7, {"set": 0.5})
    assert state.with_status("completed") == (trial,)
    assert (state.controllers, state.last_event, state.t_last_s) == (1, "trial-finished", 9.5)


def test_a_trial_whose_controller_was_killed_has_the_total_duration_of_its_phases() -> None:
    id_ = "cubic-r1-3f9a1c"
    phase = Entry(2.3, "phase", {"id": id_, "phase": "set", "seconds": 0.3})
    end = {"id": id_, "outcome": "interrupted", "reasons": ["its controller was killed"], "overhead_s": 0.0}
    state = fold([BEGUN, STARTED, phase, Entry(86_400.0, "trial-finished", end)])
    assert state.trials[id_].seconds == 0.3


def test_a_trial_without_an_end_is_in_flight_and_becomes_interrupted_when_it_is_set_aside() -> None:
    assert fold([BEGUN, STARTED]).trials["cubic-r1-3f9a1c"].status == "in flight"
    aside = Entry(3.0, "trial-set-aside", {"id": "cubic-r1-3f9a1c", "folder": "set-aside/cubic-r1-3f9a1c-1"})
    trial = fold([BEGUN, STARTED, aside]).trials["cubic-r1-3f9a1c"]
    assert (trial.status, trial.set_aside) == ("interrupted", ("set-aside/cubic-r1-3f9a1c-1",))
    again = Entry(4.0, "trial-started", {"id": "cubic-r1-3f9a1c", "attempt": 2})
    trial = fold([BEGUN, STARTED, aside, again]).trials["cubic-r1-3f9a1c"]
    assert (trial.status, trial.attempts, trial.t_start_s) == ("in flight", 2, 4.0)
    assert trial.set_aside == ("set-aside/cubic-r1-3f9a1c-1",)


def state_read(id_: str, host: str, state: str) -> Entry:
    return Entry(1.0, "state-read", {"id": id_, "host": host, "state": state})


def state_restored(id_: str, host: str) -> Entry:
    return Entry(1.0, "state-restored", {"id": id_, "host": host})


def test_unrestored_states_are_listed_by_host_oldest_first() -> None:
    reads = [
        state_read("a", "src", "untouched"),
        state_read("a", "dst", "x"),
        state_restored("a", "dst"),
        state_read("b", "src", "touched"),
    ]
    state = fold(reads)
    assert state.unrestored == {
        "src": (SavedState("a", "src", "untouched"), SavedState("b", "src", "touched"))
    }
    assert fold([*reads, state_restored("b", "src")]).unrestored == {
        "src": (SavedState("a", "src", "untouched"),)
    }
    assert fold([*reads, state_restored("a", "src")]).unrestored == {}, (
        "restoring the older state also undoes the newer changes"
    )


def test_a_state_whose_restoration_failed_stays_unrestored() -> None:
    failed = Entry(2.0, "restore-failed", {"id": "a", "host": "src", "differences": ["cc"]})
    assert fold([state_read("a", "src", "x"), failed]).unrestored == {"src": (SavedState("a", "src", "x"),)}


def test_events_of_a_later_version_are_ignored() -> None:
    assert fold([BEGUN, Entry(2.0, "lease-taken", {"by": "x"})]).trials == {}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Entry(1.0, "trial-started", {"id": "a"}), "KeyError: 'attempt'"),
        (Entry(1.0, "trial-finished", {"id": "a", "outcome": "splendid"}), "splendid"),
        (Entry(1.0, "state-restored", {"id": "a"}), "host"),
        (Entry(1.0, "trial-set-aside", {"id": "a", "folder": "set-aside/../../x"}), "set-aside/../../x"),
        (Entry(1.0, "trial-set-aside", {"id": "a", "folder": "/etc"}), "/etc"),
    ],
)
def test_an_event_with_a_missing_or_wrong_value_is_reported_by_line(entry: Entry, message: str) -> None:
    with pytest.raises(CampaignError, match=rf"line 2: {entry.event}: .*{message}"):
        fold([BEGUN, entry])


def test_every_event_is_on_disk_before_append_returns(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    fsync = os.fsync

    def record_and_sync(fd: int) -> None:
        synced.append(os.fstat(fd).st_size)
        fsync(fd)

    with Journal(file) as journal:
        monkeypatch.setattr(os, "fsync", record_and_sync)
        journal.append(BEGUN.event, BEGUN.t_s, **BEGUN.values)
    assert synced == [len(BEGUN.line())]


def test_an_event_interrupted_by_ctrl_c_is_complete_or_absent(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(fd: int) -> None:
        raise KeyboardInterrupt

    with Journal(file) as journal:
        journal.append(BEGUN.event, BEGUN.t_s, **BEGUN.values)
        with monkeypatch.context() as while_writing, pytest.raises(KeyboardInterrupt):
            while_writing.setattr(os, "fsync", interrupted)
            journal.append(STARTED.event, STARTED.t_s, **STARTED.values)
        assert journal.entries == (BEGUN,)
        last = journal.append(FINISHED.event, FINISHED.t_s, **FINISHED.values)
    assert read_journal(file) == [BEGUN, last]
    assert list(failed_checksums(file.read_bytes())) == []


def test_blocked_trials_stay_blocked_until_the_campaign_is_resumed() -> None:
    why = {"blocked": [{"reasons": ["src: no congestion control bbr"], "trials": ["a", "b"]}]}
    blocked = [BEGUN, Entry(2.0, "trials-blocked", why)]
    assert fold(blocked).blocked == dict.fromkeys(("a", "b"), ("src: no congestion control bbr",))
    assert fold([*blocked, Entry(3.0, "campaign-resumed", {})]).blocked == {}


def test_a_campaign_is_clean_if_every_trial_has_ended_and_every_host_is_restored() -> None:
    assert fold([BEGUN, STARTED, FINISHED]).clean
    assert not fold([BEGUN, STARTED]).clean
    assert not fold([BEGUN, state_read("a", "src", "x")]).clean
