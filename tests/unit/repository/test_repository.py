"""The repository: layers, locked dependencies with their reasons, links between pages."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[3]
LOCKS = ("requirements.lock", "requirements-dev.lock")
# Folders of one machine, and marks of unfinished work.
UNSUITABLE = re.compile(r"(?<![\w.$}])/(?:home|Users|work)/\w|\.\./shared|\b(?:TODO|FIXME|XXX)\b")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def tracked_files() -> list[Path]:
    """Return the files that are in git, or would be after `git add`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a text file; yield nothing for a binary file."""
    try:
        yield from enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    except UnicodeDecodeError:
        return


def listed_packages() -> list[str]:
    """Return the names in packages.debian: one per line, with a comment after #."""
    lines = (ROOT / "packages.debian").read_text().splitlines()
    return [name for line in lines if (name := line.split("#")[0].strip())]


def anchors(page: Path) -> set[str]:
    """Return the anchors that renderers of Markdown give the headings of a page."""
    headings = re.findall(r"^#+ +(.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_imports_follow_the_layers() -> None:
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_no_file_names_a_folder_of_one_machine_or_marks_unfinished_work() -> None:
    here = Path(__file__)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked_files() if path != here
        for number, line in text_lines(path) if UNSUITABLE.search(line)
    ]  # fmt: skip
    assert not found, "\n".join(found)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_names_no_host(lock: str) -> None:
    hosts = re.compile(r"://|--\w+-(url|links|host)|^-f")
    assert not [line for _, line in text_lines(ROOT / lock) if hosts.search(line)]


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_of_a_lock_file_has_an_exact_version_and_a_hash(lock: str) -> None:
    text = re.sub(r"^\s*#.*\n", "", (ROOT / lock).read_text(), flags=re.MULTILINE)
    requirements = text.replace("\\\n", " ").strip().splitlines()
    assert requirements
    assert all(re.match(r"[\w.-]+==\S+\s+(;.*)?--hash=sha256:[0-9a-f]{64}", line) for line in requirements)


def test_both_lock_files_pin_the_same_versions() -> None:
    run, dev = (dict(pins(lock)) for lock in LOCKS)
    assert {name: dev[name] for name in run.keys() & dev.keys()} == {
        name: run[name] for name in run.keys() & dev.keys()
    }


def pins(lock: str) -> list[tuple[str, str]]:
    """Return the names and versions that a lock file pins."""
    return re.findall(r"^([\w.-]+)==(\S+)", (ROOT / lock).read_text(), flags=re.MULTILINE)


def direct_dependencies() -> dict[str, list[str]]:
    """Return the direct dependencies of samovar and of its tests, by the lock file that pins them."""
    run = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    dev = re.findall(r"^([A-Za-z].*)", (ROOT / "requirements-dev.in").read_text(), flags=re.MULTILINE)
    return {"requirements.lock": run, "requirements-dev.lock": dev}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_requirement_is_in_its_lock_file(lock: str) -> None:
    locked = {"==".join(pin) for pin in pins(lock)} | {name for name, _ in pins(lock)}
    assert {one.lower() for one in direct_dependencies()[lock]} <= locked


def test_the_decision_about_dependencies_explains_every_direct_dependency() -> None:
    reasons = (ROOT / "docs" / "decisions" / "0002-dependencies.md").read_text().lower()
    names = [
        one.partition("==")[0] for listed in direct_dependencies().values() for one in listed
    ] + listed_packages()
    assert not [name for name in names if f"`{name.lower()}`" not in reasons]


def test_links_between_pages_resolve() -> None:
    broken = []
    for page in (path for path in tracked_files() if path.suffix == ".md"):
        for link in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
            if "://" in link:
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert not broken, "\n".join(broken)


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    assert not [path.name for path in folder.glob("[0-9]*.md") if f"({path.name})" not in index]


def test_every_page_of_the_documentation_can_be_reached_from_its_index() -> None:
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
