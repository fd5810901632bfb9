"""The files of a trial: compressed and counted on the host, fetched, verified, and only then removed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import CampaignError, TestbedError
from samovar.hosts import RemoteFile, Session
from samovar.recipes import quote
from samovar.units import format_bytes

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_COUNT = re.compile(r"[0-9]{1,18}")
_TOLD = 300  # characters of what a host says that an error repeats
SPARE_BYTES = 64 * 1024 * 1024
"""What a collection leaves free on this machine's disk, for the journal and what else must be written."""


@dataclass(frozen=True)
class Expected:
    """A file that a trial leaves in its folder on a host, and where it belongs in the trial's folder here.

    What is not yet compressed is on its way; both names then end in .gz.
    """

    remote: str
    path: str
    kind: str
    logger: str | None = None
    interface: str | None = None

    def __post_init__(self) -> None:
        """Refuse names that could lead out of either folder. Raises TestbedError."""
        for name in (self.remote, *self.path.split("/")):
            if not _NAME.fullmatch(name):
                raise TestbedError(
                    f"{self.path}: {name!r} cannot be a collected file's name; "
                    f"accepted: letters, digits, dots, hyphens and underscores"
                )

    @property
    def packed(self) -> Expected:
        """The same file once it is compressed."""
        if self.remote.endswith(".gz"):
            return self
        path = self.path if self.path.endswith(".gz") else f"{self.path}.gz"
        return Expected(f"{self.remote}.gz", path, self.kind, self.logger, self.interface)


@dataclass(frozen=True)
class Counted:
    """A file as its host counted it."""

    size_bytes: int
    sha256: str


def collect(
    session: Session, folder: str, expected: Sequence[Expected], local: Path, *, deadline_s: float = 600.0
) -> list[Mapping[str, object]]:
    """Bring a trial's files from a host and return their entries for the manifest.

    The trial's folder on the host is removed once every expected file is here, on disk and verified; before
    that nothing is, also when the connection is lost: then what has arrived is gone on from. Raises
    TestbedError for a file that is missing, miscounted, changed on its way or larger than the disk here has
    room for; DeadlineError.
    """
    check_folder(folder)
    if not expected:
        return []
    _check_apart(expected)
    packed = [file.packed for file in expected]
    done = session.run(pack_script(folder, expected), step="pack", deadline_s=deadline_s)
    counted = parse_counted(session.host, done.text, [file.remote for file in packed])
    wanted = [
        RemoteFile(
            f"{folder}/{file.remote}",
            local / file.path,
            counted[file.remote].sha256,
            counted[file.remote].size_bytes,
        )
        for file in packed
    ]
    check_room(session.host, sum(one.size_bytes for one in wanted), local)
    session.fetch_all(wanted, deadline_s=deadline_s)
    session.run(f"rm -rf -- {quote(folder)}\n", step="remove", deadline_s=deadline_s)
    return [_entry(file, session.host, counted[file.remote]) for file in packed]


def _check_apart(expected: Sequence[Expected]) -> None:
    paths = [file.packed.path for file in expected]
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        raise TestbedError(f"{', '.join(twice)}: collected twice; accepted: one file at one place")


def check_room(host: str, size_bytes: int, local: Path) -> None:
    """Refuse to fetch what the disk here has no room for. Raises CampaignError: no host is to blame."""
    there = next(place for place in (local, *local.parents) if place.exists())
    free = shutil.disk_usage(there).free
    if size_bytes + SPARE_BYTES > free:
        raise CampaignError(
            f"{host}: {format_bytes(size_bytes, 3)} to collect, {format_bytes(free, 3)} free in {there}; "
            f"accepted: room for it and {format_bytes(SPARE_BYTES, 3)} beside"
        )


def check_folder(folder: str) -> None:
    """Refuse a folder whose removal could take anything else along. Raises TestbedError."""
    parts = folder.split("/")
    if len(parts) < 4 or parts[0] or not all(_NAME.fullmatch(part) for part in parts[1:]):
        raise TestbedError(
            f"{folder!r}: no trial's folder; accepted: an absolute path, three names deep or more"
        )


_PACK = """\
cd {folder} || exit 66
missing=
for file in {files}; do
  if [ -h "$file" ] || [ -h "$file.gz" ]; then
    echo "$file: is a symbolic link" >&2; missing=1
  elif [ -f "$file" ]; then
    case $file in *.gz) ;; *) set -- "$@" "$file" ;; esac
  elif [ ! -f "$file.gz" ]; then
    echo "$file: not there" >&2; missing=1
  fi
done
[ -z "$missing" ] || {{ echo "there is: $(echo * | cut -c 1-1000)" >&2; exit 66; }}
[ $# = 0 ] || gzip -1 -n -f -- "$@" || exit
set -- {packed}
if command -v sha256sum >/dev/null; then sha256sum -- "$@"; else sha256 -r "$@"; fi || exit
wc -c -- "$@"
"""


def pack_script(folder: str, expected: Sequence[Expected]) -> str:
    """Return the script that compresses, sums and measures the files, with one program start for each.

    What an earlier attempt has compressed already is left as it is. FreeBSD's `sha256 -r` prints as sha256sum
    does.
    """
    return _PACK.format(
        folder=quote(folder),
        files=_words(file.remote for file in expected),
        packed=_words(file.packed.remote for file in expected),
    )


def parse_counted(host: str, text: str, names: Sequence[str]) -> dict[str, Counted]:
    """Parse what pack_script prints: lines `sha256 name`, then lines `bytes name`, for exactly these names.

    Raises TestbedError when a name is not told once, or another one is.
    """
    sums: dict[str, str] = {}
    sizes: dict[str, int] = {}
    told: list[tuple[str, str]] = []
    for line in text.splitlines():
        count, _, name = line.strip().partition(" ")
        name = name.strip()
        if _SHA256.fullmatch(count):
            sums[name] = count
            told.append(("sum", name))
        elif _COUNT.fullmatch(count) and (name != "total" or name in names):
            sizes[name] = int(count)
            told.append(("size", name))
    if sorted(told) != sorted((what, name) for name in names for what in ("size", "sum")):
        heard = ascii(", ".join(sorted({name for _, name in told}))[:_TOLD])[1:-1] or "nothing"
        raise TestbedError(f"{host}: told of {heard}; accepted: sum and size of {', '.join(sorted(names))}")
    return {name: Counted(sizes[name], sums[name]) for name in names}


def _words(names: Iterable[str]) -> str:
    return " ".join(quote(name) for name in names)


def _entry(file: Expected, host: str, counted: Counted) -> Mapping[str, object]:
    entry = {
        "path": file.path,
        "kind": file.kind,
        "host": host,
        "interface": file.interface,
        "logger": file.logger,
        "bytes": counted.size_bytes,
        "sha256": counted.sha256,
    }
    return {key: value for key, value in entry.items() if value is not None}
