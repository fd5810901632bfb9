"""Facts about the repository itself: what it declares is what it does."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parent.parent.parent
LOCKS = ("requirements.lock", "requirements-dev.lock")
# Folders of one person or machine, and wording that no page of a project that speaks of itself needs.
NOT_OURS = re.compile(r"(?<![\w.$}])/(?:home|Users|work)/\w|\.\./shared|\b(?:TODO|FIXME|XXX)\b")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def tracked() -> list[Path]:
    """Every file that git knows, or would: what a clone will hold."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number the lines of a text file; a binary one has none."""
    try:
        yield from enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    except UnicodeDecodeError:
        return


def listed_packages() -> list[str]:
    """The names in packages.debian, read by its own rules: one a line, a comment after #."""
    lines = (ROOT / "packages.debian").read_text().splitlines()
    return [name for line in lines if (name := line.split("#")[0].strip())]


def anchors(page: Path) -> set[str]:
    """The names under which a page's headings can be linked to, as the usual renderers make them."""
    headings = re.findall(r"^#+ +(.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_imports_keep_the_contract_of_the_layers() -> None:
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_no_file_names_a_folder_of_one_machine() -> None:
    here = Path(__file__)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked() if path != here
        for number, line in text_lines(path) if NOT_OURS.search(line)
    ]  # fmt: skip
    assert not found, "\n".join(found)


def test_each_debian_package_is_listed_once_and_sayable() -> None:
    names = listed_packages()
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name) for name in names)


def test_each_debian_package_has_its_reason() -> None:
    page = (ROOT / "docs" / "decisions" / "0002-dependencies.md").read_text()
    table = page.split("## Debian")[1].split("\n## ")[0]
    explained = {
        name
        for row in table.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`([^`]+)`", row.split("|")[1])
    }
    assert set(listed_packages()) == explained


def test_the_package_list_is_the_only_one() -> None:
    """Both targets install through tools/bootstrap alone, which reads packages.debian; the lab's kernel is unpacked."""
    installers = [
        path.relative_to(ROOT).as_posix()
        for path in tracked()
        if path.suffix != ".md" and ROOT / "tests" not in path.parents
        and any("apt-get" in line for _, line in text_lines(path))
    ]  # fmt: skip
    assert installers == ["tools/bootstrap", "tools/lab-kernel"]
    used = set(re.findall(r"own_apt ([a-z-]+)", (ROOT / "tools" / "lab-kernel").read_text()))
    assert used == {"update", "download"}
    assert "packages.debian" in (ROOT / "tools" / "bootstrap").read_text()


def test_demo_and_test_install_by_the_same_script() -> None:
    for target in ("demo", "test"):
        outside_make = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        dry_run = subprocess.run(
            ["make", "--dry-run", target],
            cwd=ROOT, env=outside_make, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        assert dry_run.splitlines()[0].startswith("tools/bootstrap")


def test_continuous_integration_runs_make_test_and_nothing_else() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if "#!" not in line]
    assert commands == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "make test"]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host(lock: str) -> None:
    hosts = re.compile(r"://|--\w+-(url|links|host)|^-f")
    assert not [line for _, line in text_lines(ROOT / lock) if hosts.search(line)]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_of_a_lock_has_an_exact_version_and_a_hash(lock: str) -> None:
    text = re.sub(r"^\s*#.*\n", "", (ROOT / lock).read_text(), flags=re.MULTILINE)
    requirements = text.replace("\\\n", " ").strip().splitlines()
    assert requirements
    assert all(re.match(r"[\w.-]+==\S+\s+(;.*)?--hash=sha256:[0-9a-f]{64}", line) for line in requirements)


def test_the_locks_agree_on_what_both_hold() -> None:
    run, dev = (dict(pins(lock)) for lock in LOCKS)
    assert {name: dev[name] for name in run.keys() & dev.keys()} == {
        name: run[name] for name in run.keys() & dev.keys()
    }


def pins(lock: str) -> list[tuple[str, str]]:
    """The names and versions that a lock pins."""
    return re.findall(r"^([\w.-]+)==(\S+)", (ROOT / lock).read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("names", ["requirements.in", "requirements-dev.in"])
def test_every_requirement_is_in_its_lock(names: str) -> None:
    wanted = re.findall(r"^([A-Za-z][\w.-]*)", (ROOT / names).read_text(), flags=re.MULTILINE)
    locked = {name for name, _ in pins(names.replace(".in", ".lock"))}
    assert {name.lower() for name in wanted} <= locked


def test_every_direct_dependency_has_its_reason_written_down() -> None:
    reasons = (ROOT / "docs" / "decisions" / "0002-dependencies.md").read_text().lower()
    names = [
        name
        for file in ("requirements.in", "requirements-dev.in")
        for name in re.findall(r"^([A-Za-z][\w.-]*)", (ROOT / file).read_text(), flags=re.MULTILINE)
    ] + listed_packages()
    assert not [name for name in names if f"`{name.lower()}`" not in reasons]


def test_links_between_pages_resolve() -> None:
    broken = []
    for page in (path for path in tracked() if path.suffix == ".md"):
        for link in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
            if "://" in link:
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert not broken, "\n".join(broken)


def test_every_decision_stands_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    assert not [path.name for path in folder.glob("[0-9]*.md") if f"({path.name})" not in index]


def test_every_page_is_reached_from_the_index() -> None:
    docs = ROOT / "docs"
    seen: set[Path] = set()
    todo = [docs / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        todo += [(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(page.read_text())]
    assert not [path.relative_to(docs).as_posix() for path in docs.rglob("*.md") if path not in seen]


def test_version_stands_in_one_place() -> None:
    assert "project" not in tomllib.loads((ROOT / "pyproject.toml").read_text())
