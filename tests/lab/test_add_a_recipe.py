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

pytestmark = pytest.mark.proof  # some 20 s; unit/test_documentation.py plans the same

FILE = re.compile(r"^`((?:templates|experiments)/[^`]+)`.*\n\n```\w*\n((?s:.*?))^```$", flags=re.MULTILINE)
LONG = re.compile(r"^  ttl\.hops: .*\n  traffic\.bulk\.streams: .*\n", flags=re.MULTILINE)
SHORT = "  ttl.hops: [32]\n  traffic.bulk.streams: [4]\n"
"""One of the four treatments of the page."""
ADDED = {"aqm": "sfb", "setting": "ttl", "generator": "iperf3-parallel", "logger": "retransmits"}
HOSTS = ("src", "rtr", "dst")


@dataclass(frozen=True)
class Clone:
    """A checkout in which commands are typed."""

    folder: Path

    def fab(self, *words: str) -> tuple[int, str]:
        """Type `fab WORDS`; its exit code, and what it printed."""
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
        """What a script prints on a host of the lab."""
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
        """What that trial was and came to."""
        read: dict[str, Any] = json.loads((self.trial / "manifest.json").read_bytes())
        return read

    def state(self, host: str, when: str) -> dict[str, str]:
        """The state of a host before, in and after that trial."""
        read: dict[str, str] = json.loads((self.trial / "facts" / f"{host}-{when}.json").read_bytes())
        return read


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """A checkout with the files of the page, as they stand there, and the page's experiment cut to one trial."""
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
        assert not (folder / name).exists(), "the page adds what is there already"
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
    """The same after `fab run mine`."""
    code, said = clone.fab("run", "mine")
    assert code == 0, said
    assert clone.manifest["verdict"] == "valid", clone.manifest["reasons"]
    return clone


def test_a_discipline_and_a_setting_of_ones_own_are_set_read_back_and_put_back(ran: Clone) -> None:
    for host in HOSTS:
        assert ran.state(host, "before") == ran.state(host, "after") != ran.state(host, "set")
    assert "sfb rehash" in str(ran.state("rtr", "set"))
    assert "limit 60p max 20p target 15p" in str(ran.state("rtr", "set"))
    assert [ran.state("src", when)["ttl"] for when in ("before", "set", "after")] == ["64", "32", "64"]
    assert "sfb" not in ran.on_host("rtr", "tc qdisc show")
    assert ran.on_host("src", "cat /proc/sys/net/ipv4/ip_default_ttl").strip() == "64"


def test_the_packets_of_a_generator_of_ones_own_are_in_the_capture(ran: Clone) -> None:
    """Four connections for the data, each with its SYN, and the one over which iperf3 talks."""
    (flow,) = ran.manifest["resolved"]["flows"]
    paths = [entry["path"] for entry in ran.manifest["files"] if entry["kind"] == "capture"]
    (capture,) = (ran.trial / path for path in paths if Path(path).name.startswith("src"))
    syns = f"tcp dst port {flow['port']} and tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn"
    command = ["tcpdump", "-nv", "-r", "-", syns]
    packets = gzip.decompress(capture.read_bytes())
    seen = subprocess.run(command, input=packets, capture_output=True, timeout=60, check=True).stdout.decode()
    assert len(re.findall(r"Flags \[S", seen)) == 5, seen
    assert set(re.findall(r"\bttl (\d+)", seen)) == {"32"}, "as the setting says"


def test_a_logger_of_ones_own_leaves_its_samples(ran: Clone) -> None:
    with gzip.open(ran.trial / "traces" / "src-retransmits.csv.gz", "rt", newline="") as file:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert len(rows) > 3
    assert list(rows[0]) == ["t_ns", "sent_segments", "retransmitted_segments"]
    assert rows == sorted(rows, key=lambda row: row["t_ns"])
    assert rows[-1]["sent_segments"] > rows[0]["sent_segments"]
    start_ns = ran.manifest["t_start_s"] * 1e9
    assert any(row["t_ns"] > start_ns for row in rows), "while the traffic ran"


def test_what_is_added_is_listed_and_known_to_editors_and_in_the_reference(clone: Clone) -> None:
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


def test_check_tells_what_each_host_offers_and_ends_with_0_when_that_is_enough(clone: Clone) -> None:
    code, said = clone.fab("check", "mine")
    assert code == 0, said
    lines = said.splitlines()
    assert [line for line in lines if line in HOSTS] == list(HOSTS)
    for fact in ("kernel", "tools", "interfaces", "cc offered"):
        assert sum(line.startswith(f"  {fact}  ") for line in lines) == len(HOSTS), f"{fact}: {said}"


def test_check_names_what_a_host_lacks_and_ends_with_1(clone: Clone) -> None:
    code, said = clone.fab("check", "mine", "--set", "settings.cc=lola")
    assert code == 1, said
    assert "lola" in said
    assert "Traceback" not in said
