"""Fetch a trial's files from a host: compress, checksum, copy and verify them, then delete the originals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from samovar.campaign.availability import free_here
from samovar.errors import CampaignError, TestbedError
from samovar.events import Emit, Event
from samovar.hosts import RemoteFile, Session, Sessions
from samovar.recipes import Program, TrialScripts, quote
from samovar.units import format_bytes

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SIZE = re.compile(r"[0-9]{1,18}")
MAX_OUTPUT = 300  # an error quotes at most this many characters of a host's output
SALVAGE_DEADLINE_S = 60.0
"""Time limit of each step that fetches the files of an interrupted trial: a stop takes 27 s if a capture
does not drain (15 s) and a program does not end (12 s). Files that are not fetched are lost: the clean-up
removes them from the host."""
SPARE_BYTES = 64 * 1024 * 1024
"""Disk space that stays free on the controller for the journal and other files that must be written."""


def packed_name(program: Program) -> str:
    """Return the file name of a program's compressed output.

    Raises TestbedError if the name has characters, such as a slash, that could lead to another folder.
    """
    if not _NAME.fullmatch(program.output):
        raise TestbedError(
            f"{program.name}: {program.output!r} cannot be the name of a collected file; "
            f"use letters, digits, dots, hyphens and underscores"
        )
    return f"{program.output.removesuffix('.gz')}.gz"


def collected_path(program: Program) -> str:
    """Return the path of a program's compressed output in the trial's folder on the controller."""
    return f"{'logs' if program.kind == 'generator' else 'traces'}/{packed_name(program)}"


def collect(
    session: Session, folder: str, programs: Sequence[Program], local: Path, *, deadline_s: float = 600.0
) -> list[Mapping[str, object]]:
    """Fetch the output files of a trial's programs from a host; return their entries for the manifest.

    The trial's folder on the host is removed only when every file is verified and on the controller's disk.
    After a lost connection, fetching continues where it stopped. Raises TestbedError if a file is missing or
    its checksum differs. Raises CampaignError if the controller's disk has no room. Raises DeadlineError
    after `deadline_s`.
    """
    check_folder(folder)
    if not programs:
        return []
    names = [packed_name(program) for program in programs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TestbedError(f"{', '.join(twice)}: two files cannot be collected under one name")
    done = session.run(pack_script(folder, programs), step="pack", deadline_s=deadline_s)
    on_host = parse_packed(session.host, done.text, names)
    wanted = [
        RemoteFile(f"{folder}/{name}", local / collected_path(program), *on_host[name])
        for name, program in zip(names, programs, strict=True)
    ]
    check_room(session.host, sum(file.size_bytes for file in wanted), local)
    session.fetch_all(wanted, deadline_s=deadline_s)
    session.run(f"rm -rf -- {quote(folder)}\n", step="remove", deadline_s=deadline_s)
    return [
        _manifest_entry(program, session.host, one) for program, one in zip(programs, wanted, strict=True)
    ]


def salvage(
    scripts: TrialScripts, sessions: Sessions, folder: Path, emit: Emit
) -> list[Mapping[str, object]]:
    """Fetch the files that an interrupted trial has written so far; return their entries for the manifest.

    Programs that still run are stopped first. A failure is only reported as a warning, because the hosts must
    still be restored.
    """
    fetched: list[Mapping[str, object]] = []

    def written_on(session: Session) -> list[Program]:
        script = f"cd {quote(scripts.folder)} 2>/dev/null || exit 0; ls\n"
        names = set(session.run(script, step="look", deadline_s=SALVAGE_DEADLINE_S).text.split())
        return [one for one in scripts.processes(session.host) if names & {one.output, packed_name(one)}]

    def fetch_from(session: Session) -> None:
        if not written_on(session):
            return
        script = scripts.stop(session.host, broken_off=True)
        if script:
            session.run(script, step="stop", deadline_s=SALVAGE_DEADLINE_S, check=False)
        written = written_on(session)
        fetched.extend(collect(session, scripts.folder, written, folder, deadline_s=SALVAGE_DEADLINE_S))

    try:
        sessions.map(fetch_from, [host for host in scripts.resolved.hosts if scripts.processes(host)])
    except (TestbedError, CampaignError, OSError) as error:  # also if the controller's disk is full
        emit(Event("warning", {"text": f"not all files of the trial could be fetched: {error}"}))
    return fetched


def check_room(host: str, size_bytes: int, local: Path) -> None:
    """Raise CampaignError if the controller's disk has no room for files of this size from a host.

    This is not a TestbedError, because a TestbedError would blame the host.
    """
    free = free_here(local)
    if size_bytes + SPARE_BYTES > free:
        needed, there, spare = (format_bytes(size, 3) for size in (size_bytes, free, SPARE_BYTES))
        message = f"{needed} to collect, but {local} has {there} free, of which {spare} must stay free"
        raise CampaignError(f"{host}: {message}")


def check_folder(folder: str) -> None:
    """Raise TestbedError unless a path is a trial's folder, so that no other folder is ever removed."""
    parts = folder.split("/")
    if len(parts) < 4 or parts[0] or not all(_NAME.fullmatch(part) for part in parts[1:]):
        raise TestbedError(
            f"{folder!r} is not the folder of a trial: must be an absolute path of at least three components"
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
[ -z "$missing" ] || {{ echo "the folder has: $(echo * | cut -c 1-1000)" >&2; exit 66; }}
[ $# = 0 ] || gzip -1 -n -f -- "$@" || exit
set -- {packed}
if command -v sha256sum >/dev/null; then sha256sum -- "$@"; else sha256 -r "$@"; fi || exit
wc -c -- "$@"
"""


def pack_script(folder: str, programs: Sequence[Program]) -> str:
    """Return the script that compresses files and prints their checksums and sizes.

    gzip, sha256sum and wc are each started only once for all files. Files that are already compressed are not
    compressed again. FreeBSD's `sha256 -r` prints the format of sha256sum.
    """
    return _PACK.format(
        folder=quote(folder),
        files=" ".join(quote(program.output) for program in programs),
        packed=" ".join(quote(packed_name(program)) for program in programs),
    )


def parse_packed(host: str, text: str, names: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return the SHA-256 and the size in bytes of each file in `names`, from the output of pack_script().

    The output has a line `SHA256 NAME` and a line `BYTES NAME` for each file. Raises TestbedError if a line
    is missing, is printed twice, or has another name.
    """
    sums: dict[str, str] = {}
    sizes: dict[str, int] = {}
    printed: list[tuple[str, str]] = []
    for line in text.splitlines():
        value, _, name = line.strip().partition(" ")
        name = name.strip()
        if _SHA256.fullmatch(value):
            sums[name] = value
            printed.append(("sum", name))
        elif _SIZE.fullmatch(value) and (name != "total" or name in names):
            sizes[name] = int(value)
            printed.append(("size", name))
    if sorted(printed) != sorted((what, name) for name in names for what in ("size", "sum")):
        found = ascii(", ".join(sorted({name for _, name in printed}))[:MAX_OUTPUT])[1:-1] or "nothing"
        wanted = ", ".join(sorted(names))
        raise TestbedError(f"{host}: printed checksums and sizes of {found} instead of {wanted}")
    return {name: (sums[name], sizes[name]) for name in names}


def _manifest_entry(program: Program, host: str, fetched: RemoteFile) -> Mapping[str, object]:
    entry = {
        "path": collected_path(program),
        "kind": program.kind,
        "host": host,
        "interface": program.interface,
        "logger": program.recipe,
        "bytes": fetched.size_bytes,
        "sha256": fetched.sha256,
    }
    return {key: value for key, value in entry.items() if value is not None}
