"""Find the files that samovar ships besides its Python code, and compile the programs among them.

samovar ships recipes, the R package, the lab's C programs, report templates, testbeds and experiments. A
checkout contains these files; pip installs them in samovar/shipped/. The R package and the C programs must be
compiled. In a checkout, `make install` compiles them into .rlib and .bin. Outside a checkout they are
compiled at their first use, into a cache folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from samovar import __version__
from samovar.errors import InstallationError
from samovar.events import Emit, Event, silent

PACKAGE = Path(__file__).parent
CHECKOUT = None if (PACKAGE / "shipped").is_dir() else PACKAGE.parent
"""The checkout from which samovar runs; None if samovar was installed by pip."""
SHIPPED = CHECKOUT or PACKAGE / "shipped"
"""The folder with templates/, analysis/, hosts/, experiments/ and packages.debian."""
TEMPLATES = SHIPPED / "templates"
COMPLETED = ("experiments/fragments", "experiments/studies", "experiments", "hosts")
"""Project folders with a shipped counterpart, which provides the files that the project does not have."""
IN_CHECKOUT, IN_PROJECT = "docs/reference/schema", ".schema"
"""The folders of the editor schemas: the first in the checkout, the second in any other project."""
BUILD_TIMEOUT_S = 1800
SECTIONS_TO_RUN = "# The tests"
"""The line of packages.debian that precedes the packages that only tests need."""


def shipped_beside(folder: Path) -> list[Path]:
    """Return the shipped counterpart of a project's folder such as hosts/, as a list of one path.

    The list is empty if the folder has no counterpart, or is the shipped folder itself.
    """
    path = folder.absolute()
    found = [SHIPPED / name for name in COMPLETED if path.as_posix().endswith(f"/{name}")][:1]
    return [one for one in found if one != path]


def schema_folder(root: Path) -> str:
    """Return the path of a project's editor schemas, relative to the project."""
    return IN_CHECKOUT if root == SHIPPED else IN_PROJECT


def cache_folder() -> Path:
    """Return the folder for compiled files: the checkout, or samovar/VERSION in the user's cache folder.

    The cache folder is $XDG_CACHE_HOME, by default ~/.cache.
    """
    if CHECKOUT:
        return CHECKOUT
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "samovar" / __version__


def r_library(emit: Emit = silent) -> Path:
    """Return the library folder that contains the R package.

    Outside a checkout, the package is compiled first if it is missing. Raises InstallationError if it cannot
    be compiled or, in a checkout, if it is missing or its sources have changed since `make install`.
    """
    library = cache_folder() / ".rlib"
    if not (library / "samovar").is_dir() or _is_outdated("rlib"):
        with _building("the R package", library, emit):
            if not (library / "samovar").is_dir():
                jobs = {"MAKEFLAGS": f"-j{os.cpu_count() or 1}"}
                _build(["./install", str(library)], SHIPPED / "analysis", "the R package", jobs)
    return library


def lab_program(name: str, emit: Emit = silent) -> Path:
    """Return the path of a compiled file of labs, such as `adapter`.

    Outside a checkout, all files of labs are compiled first if this one is missing. Raises InstallationError
    if they cannot be compiled or, in a checkout, if the file is missing or its sources have changed since
    `make install`.
    """
    program = cache_folder() / ".bin" / name
    if not program.is_file() or _is_outdated("devices"):
        with _building("the C programs of labs", program.parent, emit):
            if not program.is_file():
                words = ["make", "--no-print-directory", "-B", f"OUT={program.parent}"]
                _build(words, PACKAGE / "lab" / "devices", "the C programs of labs", {})
    return program


def _is_outdated(stamp: str) -> bool:
    """Return whether `git pull`, for example, has changed sources since `make install` compiled them.

    Returns False outside a checkout. In a checkout, tools/bootstrap has written the checksums of these
    sources to the file `stamp`.
    """
    words = ["sha256sum", "--check", "--status", f".stamps/{stamp}"]
    return bool(CHECKOUT and subprocess.run(words, cwd=CHECKOUT, capture_output=True).returncode)


@contextmanager
def _building(what: str, folder: Path, emit: Emit) -> Iterator[None]:
    """Lock a folder, so that only one process compiles into it, and emit an event before the compilation.

    Raises InstallationError if packages are missing, and always in a checkout, where `make install` compiles.
    """
    if CHECKOUT:
        why = "because files are missing or sources have changed"
        raise InstallationError(f"{what} must be compiled, {why}; run `make install` in {CHECKOUT}")
    require_packages()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        emit(Event("compiling", {"text": what, "folder": str(folder)}))
        yield


def _build(words: Sequence[str], sources: Path, what: str, environment: Mapping[str, str]) -> None:
    """Run a command in a copy of the sources, because the original folder may be read-only.

    Raises InstallationError.
    """
    copy = cache_folder() / "build" / sources.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(sources, copy)
    try:
        done = subprocess.run(
            words,
            cwd=copy,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C.UTF-8", **environment},
            timeout=BUILD_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallationError(f"{what} cannot be compiled: {error}") from error
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    if done.returncode:
        raise InstallationError(f"{what} cannot be compiled:\n{(done.stdout + done.stderr).strip()[-4000:]}")


def require_packages() -> None:
    """Raise InstallationError if a Debian package that samovar needs is not installed."""
    missing = missing_packages()
    if missing:
        raise InstallationError(
            f"{len(missing)} Debian packages are missing; this command installs them:\n"
            f"sudo apt-get install --no-install-recommends {' '.join(missing)}"
        )


def missing_packages() -> list[str]:
    """Return the packages in packages.debian that are not installed; empty on a machine without dpkg."""
    text = (SHIPPED / "packages.debian").read_text(encoding="utf-8").partition(f"\n{SECTIONS_TO_RUN}\n")[0]
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    wanted = [line for line in lines if line]
    try:
        words = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *wanted]
        answer = subprocess.run(
            words, capture_output=True, text=True, check=False
        ).stdout  # dpkg-query exits with 1 if a name is unknown
    except FileNotFoundError:
        return []
    return sorted(set(wanted) - {line.removeprefix("installed ") for line in answer.splitlines()})
