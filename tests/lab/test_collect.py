"""Collect files from a real host: they arrive unchanged, and are removed there only after they have arrived."""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from samovar.campaign.collection import collect, collected_path, commit_trial, set_aside
from samovar.campaign.collection.fetch import pack_script, packed_name, parse_packed
from samovar.errors import CampaignError, RemoteError, TestbedError
from samovar.hosts import RemoteFile, ScriptResult, Session, SshTarget, transfer
from samovar.recipes import Program
from tests.lab.sshd import Sshd, running

CAPTURE = Program("src-eth1", "capture", "tcpdump", "src-eth1.pcap.gz", {}, interface="eth1")
LOGGER = Program("src-tcp-info", "logger", "tcp-info", "src-tcp-info.csv", {})
GENERATOR = Program("bulk-client", "generator", "iperf3", "bulk-client.log", {})
DATA = Program("data", "logger", "data", "data.csv", {})
FILES = (CAPTURE, LOGGER, GENERATOR)


@pytest.fixture
def session(sshd: Sshd, host: str) -> Iterator[Session]:
    fresh = Session(sshd.target(host))
    yield fresh
    fresh.close()


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A trial's folder on the host, with the files of a trial."""
    folder = tmp_path / "host" / "trial"
    folder.mkdir(parents=True)
    (folder / CAPTURE.output).write_bytes(gzip.compress(os.urandom(300_000)))
    (folder / LOGGER.output).write_text("t_ns,src\n" + "1,172.16.10.2\n" * 10_000)
    (folder / GENERATOR.output).write_text("")
    (folder / "bulk-client.pid").write_text("123\n")
    return folder


def test_files_arrive_unchanged_and_are_removed_from_the_host(
    session: Session, remote: Path, tmp_path: Path
) -> None:
    was = {file.name: (remote / file.output).read_bytes() for file in FILES}
    entries = collect(session, str(remote), FILES, tmp_path / "trial")
    assert (tmp_path / "trial" / collected_path(CAPTURE)).read_bytes() == was[CAPTURE.name], (
        "a compressed capture is not compressed again"
    )
    assert gzip.decompress((tmp_path / "trial" / collected_path(LOGGER)).read_bytes()) == was[LOGGER.name]
    assert gzip.decompress((tmp_path / "trial" / "logs/bulk-client.log.gz").read_bytes()) == b""
    assert [entry["path"] for entry in entries] == [
        collected_path(CAPTURE),
        collected_path(LOGGER),
        "logs/bulk-client.log.gz",
    ]
    assert not remote.exists()


def test_the_manifest_entries_describe_the_collected_files(
    session: Session, remote: Path, tmp_path: Path
) -> None:
    entries = collect(session, str(remote), FILES, tmp_path / "trial")
    for entry in entries:
        data = (tmp_path / "trial" / str(entry["path"])).read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    about = ("kind", "host", "interface", "logger")
    assert [entries[0][key] for key in about] == ["capture", session.host, "eth1", "tcpdump"]
    assert set(entries[2]) == {"path", "kind", "host", "logger", "bytes", "sha256"}, (
        "keys without a value are left out"
    )


def test_a_missing_file_is_reported_with_the_existing_files_and_nothing_is_removed(
    session: Session, remote: Path, tmp_path: Path
) -> None:
    (remote / CAPTURE.output).unlink()
    with pytest.raises(RemoteError, match=r"src-eth1.pcap.gz: not there\nthe folder has: .*src-tcp-info.csv"):
        collect(session, str(remote), FILES, tmp_path / "trial")
    assert (remote / LOGGER.output).exists()
    assert not (tmp_path / "trial").exists()


def test_a_file_that_changes_during_its_collection_is_refused_and_stays_on_the_host(
    sshd: Sshd, remote: Path, tmp_path: Path
) -> None:
    """The capture is still being written when its checksum is computed."""

    def change_capture(done: ScriptResult) -> None:
        if done.step == "pack":
            with (remote / CAPTURE.output).open("r+b") as file:
                file.write(b"\xff")

    session = Session(sshd.target(f"test-{secrets.token_hex(6)}"), record=change_capture)
    with pytest.raises(TestbedError, match=r"src-eth1.pcap.gz: received \d+ bytes with SHA-256"):
        collect(session, str(remote), FILES, tmp_path / "trial")
    session.close()
    assert (remote / CAPTURE.output).exists()
    assert not (tmp_path / "trial" / collected_path(CAPTURE)).exists()
    assert list((tmp_path / "trial").rglob("*.part")) == []


def test_a_collection_that_failed_can_be_repeated(session: Session, remote: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "trial"
    blocked.write_text("not a folder")
    with pytest.raises(TestbedError, match="cannot be copied"):
        collect(session, str(remote), FILES, blocked)
    blocked.unlink()
    assert len(collect(session, str(remote), FILES, blocked)) == 3


def test_without_an_expected_file_nothing_is_collected_or_removed(
    session: Session, remote: Path, tmp_path: Path
) -> None:
    assert collect(session, str(remote), (), tmp_path / "trial") == []
    assert remote.exists()


def test_checksums_are_computed_with_sha256_if_the_host_has_no_sha256sum(
    remote: Path, tmp_path: Path
) -> None:
    """FreeBSD's program is sha256; with `-r`, it prints lines like those of sha256sum, but with one space."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("gzip", "wc"):
        (tools / tool).symlink_to(f"/usr/bin/{tool}")
    (tools / "sha256").write_text(
        '#!/bin/sh\n[ $1 = -r ] && shift\n/usr/bin/sha256sum "$@" | while read -r sum name; do echo $sum $name; done\n'
    )
    (tools / "sha256").chmod(0o755)
    script = pack_script(str(remote), FILES)
    done = subprocess.run(
        ["/bin/sh", "-c", script], env={"PATH": str(tools)}, capture_output=True, check=True
    )
    names = [packed_name(file) for file in FILES]
    counted = parse_packed("src", done.stdout.decode(), names)
    for name in names:
        data = (remote / name).read_bytes()
        assert counted[name] == (hashlib.sha256(data).hexdigest(), len(data))


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "..", ".hidden", "a b", "a\nb", "-rf", "a$(id)", "", "ü"]
)
def test_unsafe_names_of_files_are_refused(name: str) -> None:
    with pytest.raises(TestbedError, match="cannot be the name of a collected file"):
        packed_name(replace(CAPTURE, output=name))


@pytest.mark.parametrize(
    "folder", ["/", "/tmp", "/tmp/trial", "tmp/a/b/c", "/tmp/a/../b", "/tmp/a//b", "/tmp/a b/c"]
)
def test_a_folder_whose_path_is_not_that_of_a_trial_is_not_collected_or_removed(
    session: Session, tmp_path: Path, folder: str
) -> None:
    with pytest.raises(TestbedError, match="is not the folder of a trial"):
        collect(session, folder, FILES, tmp_path)


SUM = "0" * 64


@pytest.mark.parametrize(
    "output",
    [
        "",
        f"{SUM}  a\n",
        f"{SUM}  a\n{SUM}  ../../etc/passwd\n 1 a\n 1 ../../etc/passwd\n",
        f"{SUM}  b\n 1 b\n",
        f"{SUM[:-1]}  a\n 1 a\n",
    ],
)
def test_an_output_with_checksums_of_other_files_is_refused(output: str) -> None:
    with pytest.raises(TestbedError, match=r"src: printed checksums and sizes of .* instead of a"):
        parse_packed("src", output, ["a"])


# --- hosts that are faulty or hostile


def test_a_link_in_place_of_a_file_is_refused(session: Session, remote: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    (remote / LOGGER.output).unlink()
    (remote / LOGGER.output).symlink_to(secret)
    with pytest.raises(RemoteError, match=r"src-tcp-info.csv: is a symbolic link"):
        collect(session, str(remote), FILES, tmp_path / "trial")
    assert not (tmp_path / "trial").exists()


@pytest.mark.parametrize("becomes", ["endless", "shorter", "longer", "folder"])
def test_a_file_that_is_replaced_after_its_checksum_was_computed_is_refused(
    sshd: Sshd, remote: Path, tmp_path: Path, becomes: str
) -> None:
    file = remote / CAPTURE.output

    def exchange(done: ScriptResult) -> None:
        if done.step != "pack":
            return
        data = file.read_bytes()
        file.unlink()
        if becomes == "endless":
            file.symlink_to("/dev/zero")
        elif becomes == "folder":
            file.mkdir()
        else:
            file.write_bytes(data[:-1] if becomes == "shorter" else data + data)

    session = Session(sshd.target(f"test-{secrets.token_hex(6)}"), record=exchange)
    with pytest.raises(TestbedError, match=r"src-eth1.pcap.gz: (received|cannot be copied)"):
        collect(session, str(remote), FILES, tmp_path / "trial")
    session.close()
    assert remote.exists(), "files that were not fetched completely are not removed"
    here = [path for path in (tmp_path / "trial").rglob("*") if path.is_file()]
    assert all(path.name.endswith(".gz") for path in here), "no partial file is left"
    assert collected_path(CAPTURE) not in [str(path.relative_to(tmp_path / "trial")) for path in here]


class LyingSession(Session):
    """A session with a host whose sha256sum always prints a given text, and whose wc prints nothing."""

    def __init__(self, target: SshTarget, tools: Path) -> None:
        super().__init__(target)
        self._tools = tools
        tools.mkdir()
        for name, body in (("sha256sum", f"exec cat '{tools}/output'"), ("wc", "exit 0")):
            (tools / name).write_text(f"#!/bin/sh\n{body}\n")
            (tools / name).chmod(0o755)

    def run(self, script: str, *, step: str, deadline_s: float, check: bool = True) -> ScriptResult:
        return super().run(
            f"PATH={self._tools}:$PATH\n{script}", step=step, deadline_s=deadline_s, check=check
        )

    def set_output(self, text: bytes) -> None:
        """Set the text that the host's sha256sum prints."""
        (self._tools / "output").write_bytes(text)


@pytest.fixture
def lying(sshd: Sshd, tmp_path: Path) -> Iterator[LyingSession]:
    session = LyingSession(sshd.target(f"test-{secrets.token_hex(6)}"), tmp_path / "bin")
    yield session
    session.close()


SUMS = st.sampled_from([b"0" * 64, b"\\" + b"0" * 64, b"0" * 63, b"f" * 64])
COUNTS = st.one_of(st.integers().map(lambda n: str(n).encode()), st.just(b"9" * 5000), st.just("٣".encode()))
NAMES = st.one_of(
    st.sampled_from(
        [
            b"data.csv.gz",
            b"../../x",
            b"/etc/passwd",
            b"..",
            b".",
            b"",
            b"total",
            b"traces/x",
            b"\x1b]0;t\x07",
            b"a\xff",
        ]
    ),
    st.binary(max_size=40),
)
LINES = st.tuples(st.one_of(SUMS, COUNTS), st.sampled_from([b"  ", b" ", b" *", b""]), NAMES).map(b"".join)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, max_size=6))
def test_nothing_is_written_outside_the_trial_whatever_a_host_prints_about_its_files(
    lying: LyingSession, remote: Path, tmp_path: Path, lines: list[bytes]
) -> None:
    remote.mkdir(exist_ok=True)
    (remote / "data.csv").write_text("1\n")
    lying.set_output(b"\n".join([*lines, b""]))
    trial = tmp_path / "campaign" / "trial"
    with pytest.raises(TestbedError):  # no generated line has the checksum of the file
        collect(lying, str(remote), [DATA], trial)
    assert [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and path.parent not in (remote, tmp_path / "bin")
    ] == []


def test_files_that_exceed_the_free_disk_space_are_not_fetched(
    lying: LyingSession, remote: Path, tmp_path: Path
) -> None:
    (remote / "data.csv").write_text("1\n")
    lying.set_output(b"0" * 64 + b"  data.csv.gz\n999999999999999999 data.csv.gz\n")
    with pytest.raises(
        CampaignError, match=r"1000000TB to collect, but .* free, of which 67.1MB must stay free"
    ):
        collect(lying, str(remote), [DATA], tmp_path / "trial")
    assert not (tmp_path / "trial").exists()


def test_two_files_cannot_be_collected_to_one_path(session: Session, remote: Path, tmp_path: Path) -> None:
    twice = [LOGGER, replace(LOGGER, output="src-tcp-info.csv.gz")]
    with pytest.raises(TestbedError, match=r"src-tcp-info.csv.gz: two files cannot be collected"):
        collect(session, str(remote), twice, tmp_path / "trial")


# --- transfers that are cut off


def kill_connections_when(sshd: Sshd, condition: Callable[[], bool]) -> threading.Thread:
    """Start a thread that kills the processes of all connections as soon as a condition holds."""

    def cut() -> None:
        until = time.monotonic() + 60
        while not condition() and time.monotonic() < until:
            time.sleep(0.001)
        for pid in sshd.connection_pids():
            os.kill(pid, 9)

    thread = threading.Thread(target=cut)
    thread.start()
    return thread


def test_a_transfer_that_a_killed_sshd_cuts_off_resumes_after_the_received_bytes(
    sshd: Sshd, remote: Path, tmp_path: Path
) -> None:
    size = 60_000_000
    with (remote / CAPTURE.output).open("wb") as file:
        for _ in range(size // 1_000_000):
            file.write(os.urandom(1_000_000))
    was = hashlib.sha256((remote / CAPTURE.output).read_bytes()).hexdigest()
    part = tmp_path / "trial" / f"{collected_path(CAPTURE)}.part"
    session = Session(sshd.target(f"test-{secrets.token_hex(6)}"))
    session.open()
    part_stat = part.stat  # received bytes are never written again
    cutting = kill_connections_when(sshd, lambda: part.exists() and part_stat().st_size > size // 10)
    seen: list[tuple[int, int]] = []
    watching = threading.Event()

    def look() -> None:
        while not watching.wait(0.002):
            with suppress(FileNotFoundError):
                seen.append((part_stat().st_ino, part_stat().st_size))

    looking = threading.Thread(target=look)
    looking.start()
    entries = collect(session, str(remote), FILES, tmp_path / "trial")
    watching.set()
    looking.join()
    cutting.join()
    session.close()
    assert entries[0]["sha256"] == was
    assert hashlib.sha256((tmp_path / "trial" / collected_path(CAPTURE)).read_bytes()).hexdigest() == was
    assert len({inode for inode, _ in seen}) == 1, "one file is written from the first byte to the last"
    sizes = [at for _, at in seen]
    assert sizes == sorted(sizes), "the partial file never becomes smaller"
    assert not remote.exists()


def test_a_partial_file_with_wrong_content_is_detected_and_fetched_again(
    session: Session, remote: Path, tmp_path: Path
) -> None:
    was = (remote / CAPTURE.output).read_bytes()
    part = tmp_path / "trial" / f"{collected_path(CAPTURE)}.part"
    part.parent.mkdir(parents=True)
    for wrong in (b"x" * 1000, b"x" * (len(was) + 1000)):
        part.write_bytes(wrong)
        wanted = RemoteFile(
            str(remote / CAPTURE.output),
            tmp_path / "trial" / collected_path(CAPTURE),
            hashlib.sha256(was).hexdigest(),
            len(was),
        )
        session.fetch_all([wanted])
        assert (tmp_path / "trial" / collected_path(CAPTURE)).read_bytes() == was
        (tmp_path / "trial" / collected_path(CAPTURE)).unlink()


def test_a_transfer_ends_with_an_error_when_no_more_bytes_arrive(
    tmp_path_factory: pytest.TempPathFactory, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "PATIENCE_S", 0.5)
    with running(tmp_path_factory.mktemp("dying")) as server:
        session = Session(server.target(f"test-{secrets.token_hex(6)}"))
        (remote / CAPTURE.output).write_bytes(os.urandom(60_000_000))
        session.open()
        part = tmp_path / "trial" / f"{collected_path(CAPTURE)}.part"

        def die() -> bool:
            if not part.exists():
                return False
            serving = server.connection_pids()  # while the server is alive: they are its children
            server.process.kill()
            for pid in serving:
                os.kill(pid, 9)
            return True

        cutting = kill_connections_when(server, die)
        with pytest.raises(TestbedError, match=r"no answer at|connection was lost"):
            collect(session, str(remote), FILES, tmp_path / "trial")
        cutting.join()
        session.close()
    assert remote.exists(), "files that were not fetched completely stay on the host"
    assert list((tmp_path / "trial").rglob("*.part")) == []


# --- the campaign's folder


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    folder = tmp_path / "in-progress" / "cubic-r1-3f9a1c"
    (folder / "traces").mkdir(parents=True)
    (folder / "traces" / "a.gz").write_bytes(b"data")
    (folder / "manifest.json").write_text("{}")
    return folder


def test_a_complete_trial_is_moved_to_the_trials_of_the_campaign(complete: Path, tmp_path: Path) -> None:
    there = commit_trial(complete, tmp_path / "trials")
    assert there == tmp_path / "trials" / "cubic-r1-3f9a1c"
    assert (there / "traces" / "a.gz").read_bytes() == b"data"
    assert not complete.exists()


def test_a_trial_that_completed_is_never_overwritten(complete: Path, tmp_path: Path) -> None:
    (tmp_path / "trials" / complete.name).mkdir(parents=True)
    with pytest.raises(CampaignError, match="exists already"):
        commit_trial(complete, tmp_path / "trials")
    assert (complete / "manifest.json").exists()


def test_a_trial_with_a_partial_file_or_without_a_manifest_is_not_committed(
    complete: Path, tmp_path: Path
) -> None:
    (complete / "traces" / "b.gz.part").write_bytes(b"da")
    with pytest.raises(CampaignError, match=r"b.gz.part: this file was not fetched"):
        commit_trial(complete, tmp_path / "trials")
    (complete / "manifest.json").unlink()
    with pytest.raises(CampaignError, match=r"manifest\.json is missing"):
        commit_trial(complete, tmp_path / "trials")


def test_each_trial_that_is_set_aside_gets_a_folder_with_its_own_number(
    complete: Path, tmp_path: Path
) -> None:
    aside = tmp_path / "set-aside"
    assert set_aside(complete, aside).name == "cubic-r1-3f9a1c-1"
    complete.mkdir()
    assert set_aside(complete, aside).name == "cubic-r1-3f9a1c-2"
    assert (aside / "cubic-r1-3f9a1c-1" / "traces" / "a.gz").read_bytes() == b"data"
