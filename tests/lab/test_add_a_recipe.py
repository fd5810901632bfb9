"""Follow the how-to for recipes as a new user would: write its files, run its commands, and run a trial with all recipes."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from samovar import lab
from tests.lab.campaigns import BUSY, ROOT

# Takes some 20 s; a unit test of the documentation plans the experiment of the how-to.
pytestmark = pytest.mark.proof

FILE = re.compile(r"^`((?:templates|experiments)/[^`]+)`.*\n\n```\w*\n((?s:.*?))^```$", flags=re.MULTILINE)
LONG = re.compile(r"^  ttl\.hops: .*\n  traffic\.bulk\.streams: .*\n", flags=re.MULTILINE)
SHORT = "  ttl.hops: [32]\n  traffic.bulk.streams: [4]\n"
"""The levels of one of the four treatments in the how-to."""
ADDED = {"aqm": "sfb", "setting": "ttl", "generator": "iperf3-parallel", "logger": "retransmits"}
HOSTS = ("src", "rtr", "dst")


@dataclass(frozen=True)
class Clone:
    """A checkout in which tests run `fab`."""

    folder: Path

    def fab(self, *words: str) -> tuple[int, str]:
        """Run `fab WORDS`; return its exit code and its output."""
        command = [str(Path(sys.executable).with_name("fab")), *words]
        done = subprocess.run(
            command,
            cwd=self.folder,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout

    def on_host(self, host: str, script: str) -> str:
        """Run a script on a host of the lab; return its output."""
        access = lab.read_access(self.folder / ".lab" / "lab")
        assert access
        command = [*lab.shell_command(access, host), script]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    @property
    def trial(self) -> Path:
        """The folder of the one trial."""
        (folder,) = (self.folder / "results" / "mine" / "latest" / "trials").iterdir()
        return folder

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the one trial."""
        read: dict[str, Any] = json.loads((self.trial / "manifest.json").read_bytes())
        return read

    def state(self, host: str, when: str) -> dict[str, str]:
        """Return a state of a host in the one trial; `when` is `before`, `set` or `after`."""
        read: dict[str, str] = json.loads((self.trial / "facts" / f"{host}-{when}.json").read_bytes())
        return read


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A checkout with the files of the how-to, whose experiment is reduced to one trial."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("samovar", "analysis", ".rlib", ".bin", ".stamps"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("templates", "hosts", "docs"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "fabfile.py", folder)
    (folder / "config.yaml").write_text(f"retries: 2\nbackoff: 0s\nverdict: {BUSY}\n")
    (folder / "experiments").mkdir()
    files = dict(FILE.findall((ROOT / "docs" / "how-to" / "add-a-recipe.md").read_text()))
    assert len(files) == len(ADDED) + 1
    for name, text in files.items():
        assert not (folder / name).exists(), "the how-to adds a file that exists already"
        (folder / name).write_text(text)
    mine = folder / "experiments" / "mine.yaml"
    short, count = LONG.subn(SHORT, mine.read_text())
    assert count == 1
    mine.write_text(short)
    made = Clone(folder)
    code, said = made.fab("lab.up")
    assert code == 0, said
    try:
        yield made
    finally:
        made.fab("lab.down")


@pytest.fixture(scope="module")
def ran(clone: Clone) -> Clone:
    """The clone after `fab run mine`."""
    code, said = clone.fab("run", "mine")
    assert code == 0, said
    assert clone.manifest["verdict"] == "valid", clone.manifest["reasons"]
    return clone


def test_an_added_aqm_and_an_added_setting_are_set_read_back_and_restored(ran: Clone) -> None:
    for host in HOSTS:
        assert ran.state(host, "before") == ran.state(host, "after") != ran.state(host, "set")
    assert "sfb rehash" in str(ran.state("rtr", "set"))
    assert "limit 60p max 20p target 15p" in str(ran.state("rtr", "set"))
    assert [ran.state("src", when)["ttl"] for when in ("before", "set", "after")] == ["64", "32", "64"]
    assert "sfb" not in ran.on_host("rtr", "tc qdisc show")
    assert ran.on_host("src", "cat /proc/sys/net/ipv4/ip_default_ttl").strip() == "64"


def test_the_packets_of_an_added_generator_are_in_the_capture(ran: Clone) -> None:
    """The capture has the SYNs of four data connections and of iperf3's control connection."""
    (flow,) = ran.manifest["resolved"]["flows"]
    paths = [entry["path"] for entry in ran.manifest["files"] if entry["kind"] == "capture"]
    (capture,) = (ran.trial / path for path in paths if Path(path).name.startswith("src"))
    syns = f"tcp dst port {flow['port']} and tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn"
    command = ["tcpdump", "-nv", "-r", "-", syns]
    packets = gzip.decompress(capture.read_bytes())
    seen = subprocess.run(command, input=packets, capture_output=True, timeout=60, check=True).stdout.decode()
    assert len(re.findall(r"Flags \[S", seen)) == 5, seen
    assert set(re.findall(r"\bttl (\d+)", seen)) == {"32"}, "the value of the added setting"


def test_an_added_logger_records_samples(ran: Clone) -> None:
    with gzip.open(ran.trial / "traces" / "src-retransmits.csv.gz", "rt", newline="") as file:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) > 3
    assert list(rows[0]) == ["t_ns", "sent_segments", "retransmitted_segments"]
    assert rows == sorted(rows, key=lambda row: row["t_ns"])
    assert rows[-1]["sent_segments"] > rows[0]["sent_segments"]
    start_ns = ran.manifest["t_start_s"] * 1e9
    assert any(row["t_ns"] > start_ns for row in rows), "some samples are from the time of the traffic"


def test_added_recipes_are_in_fab_list_in_the_reference_and_in_the_schema_for_editors(clone: Clone) -> None:
    code, listed = clone.fab("list")
    assert code == 0
    assert set(ADDED.values()) <= set(re.findall(r"[\w-]+", listed))
    code, said = clone.fab("schema")
    assert code == 0, said
    reference = clone.folder / "docs" / "reference"
    for kind, name in ADDED.items():
        page = (reference / f"recipe-{kind}s.md").read_text()
        assert f"### {kind} `{name}`" in page
    schema = (reference / "schema" / "experiment.json").read_text()
    assert all(name in schema for name in ADDED.values())
    assert clone.fab("schema") == (0, "all generated files are current\n")


def test_fab_check_prints_the_facts_of_each_host_and_ends_with_0_if_nothing_is_missing(clone: Clone) -> None:
    code, said = clone.fab("check", "mine")
    assert code == 0, said
    lines = said.splitlines()
    assert [line for line in lines if line in HOSTS] == list(HOSTS)
    for fact in ("kernel", "tools", "interfaces", "cc offered"):
        assert sum(line.startswith(f"  {fact}  ") for line in lines) == len(HOSTS), f"{fact}: {said}"


def test_fab_check_reports_a_missing_congestion_control_and_ends_with_1(clone: Clone) -> None:
    code, said = clone.fab("check", "mine", "--set", "settings.cc=lola")
    assert code == 1, said
    assert "lola" in said
    assert "Traceback" not in said
