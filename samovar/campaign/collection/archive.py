"""Archive the traces of a campaign in one file, and restore them byte for byte: `fab archive`.

Hosts compress traces with `gzip -1 -n`. The archive contains uncompressed traces, because zstd then saves
much more. A trace is archived as it is if gzip on this computer would compress it to other bytes.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from samovar.atomic_files import sync
from samovar.campaign.collection.checksums import SUMS, content_of, read_sums, sha256_of
from samovar.campaign.collection.verify import ARCHIVE, TRACE, printable, verify
from samovar.campaign.journal import JOURNAL, Journal
from samovar.errors import CampaignError
from samovar.events import Emit
from samovar.units import counted

PACK = ("gzip", "-1", "-n")
"""The command with which hosts compress traces."""
COMPRESS = ("zstd", "-10", "-T0", "-q")
DECOMPRESS = ("zstd", "-d", "-q")


class Archived(NamedTuple):
    """How many traces were archived, and their size before and after."""

    traces: int
    before_bytes: int
    after_bytes: int


def archive_traces(folder: Path, emit: Emit) -> Archived:
    """Move a campaign's traces to an archive in its folder, after checking that each can be restored from it.

    Raises CampaignError if the campaign is running, is archived already, has changed files or no traces.
    """
    with _locked(folder), TemporaryDirectory(prefix=".archiving-", dir=folder.parent) as name:
        archive, sums, place = folder / ARCHIVE, _recorded_sums(folder), Path(name)
        if archive.exists():
            raise CampaignError(f"{folder}: is archived already; `fab archive --restore` restores its traces")
        if findings := verify(folder, emit).findings:
            raise CampaignError(f"{folder}: {findings[0]}; not archived, because `fab verify` finds changes")
        if not sums:
            raise CampaignError(f"{folder}: has no traces; must be a campaign with complete trials")
        before_bytes = sum((folder / name).stat().st_size for name in sums)
        _write(place / ARCHIVE, folder, sums, place)
        for _ in _checked(place / ARCHIVE, sums, place):
            pass
        (place / ARCHIVE).rename(archive)
        sync(folder)
        for name in sums:
            (folder / name).unlink()
        return Archived(len(sums), before_bytes, archive.stat().st_size)


def restore_traces(folder: Path) -> int:
    """Restore a campaign's traces from its archive, remove the archive, and return the number of traces.

    Raises CampaignError if the campaign is running or has no archive, or if a trace differs from its
    checksum; the archive then stays.
    """
    with _locked(folder), TemporaryDirectory(prefix=".restoring-", dir=folder.parent) as place:
        archive, sums = folder / ARCHIVE, _recorded_sums(folder)
        if not archive.is_file():
            raise CampaignError(f"{folder}: is not archived; {ARCHIVE} is missing")
        for name, file in _checked(archive, sums, Path(place)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            sync(file)
            file.replace(folder / name)
        archive.unlink()
    return len(sums)


def require_unarchived(folder: Path) -> None:
    """Raise CampaignError if the traces of a campaign are in its archive."""
    if (folder / ARCHIVE).exists():
        raise CampaignError(
            f"{folder}: its traces are archived; `fab archive {folder} --restore` restores them"
        )


def _locked(folder: Path) -> Journal:
    """Return the journal of a campaign, which is locked, so that no controller runs the campaign.

    Raises CampaignError if a program is missing, or if a controller is running the campaign.
    """
    for program in ("zstd", "gzip"):
        if shutil.which(program) is None:
            raise CampaignError(f"{program} is not installed; `apt-get install {program}` installs it")
    return Journal(folder / JOURNAL)


def _recorded_sums(folder: Path) -> dict[str, str]:
    """Return the checksum of each trace by its path below the campaign's folder.

    Raises CampaignError if a SHA256SUMS is damaged, or if a path leads out of its trial, because restoring
    the trace would overwrite a file there.
    """
    found: dict[str, str] = {}
    for file in sorted(folder.glob(f"*/*/{SUMS}")):
        home = file.parent.relative_to(folder)
        try:
            sums = read_sums(content_of(file))
        except ValueError as error:
            raise CampaignError(f"{file}: {error}; nothing was done") from error
        found |= {f"{home}/{name}": sha256 for name, sha256 in sums.items()}
    sums = {name: sha256 for name, sha256 in found.items() if TRACE.fullmatch(name)}
    place = folder.resolve()
    for parent in {Path(name).parent for name in sums}:
        if (folder / parent).resolve() != place / parent:  # the path has `..` or a symbolic link
            where = printable(str(parent))
            raise CampaignError(f"{folder}: {where}, from a {SUMS}, leads out of its trial; nothing was done")
    return sums


def _write(archive: Path, folder: Path, sums: Mapping[str, str], place: Path) -> None:
    """Write an archive of traces; `place` is a folder for temporary files."""
    raw, packed = place / "raw", place / "packed"
    try:
        with (
            archive.open("wb") as out,
            subprocess.Popen(COMPRESS, stdin=subprocess.PIPE, stdout=out) as zstd,
            tarfile.open(fileobj=zstd.stdin, mode="w|") as tar,
        ):
            for name, sha256 in sums.items():
                stem = name.removesuffix(".gz")
                if stem not in sums and _unpack(folder / name, raw) and _pack(raw, packed) == sha256:
                    tar.add(raw, stem)
                else:
                    tar.add(folder / name, name)
        sync(archive)
    except OSError as error:  # if zstd cannot write, its pipe breaks, which is an OSError too
        raise CampaignError(f"{folder}: not archived: {error}") from error
    if zstd.returncode:
        raise CampaignError(f"{folder}: not archived: zstd ended with code {zstd.returncode}")


def _checked(archive: Path, sums: Mapping[str, str], place: Path) -> Iterator[tuple[str, Path]]:
    """Unpack each trace of an archive to a temporary file in `place`; yield the trace's path and this file.

    Raises CampaignError if a trace is missing, or differs from its checksum.
    """
    raw, packed, left = place / "raw", place / "packed", set(sums)
    with archive.open("rb") as file, subprocess.Popen(DECOMPRESS, stdin=file, stdout=subprocess.PIPE) as zstd:
        try:
            with tarfile.open(fileobj=zstd.stdout, mode="r|") as tar:
                for member in tar:
                    with raw.open("wb") as out:
                        shutil.copyfileobj(tar.extractfile(member) or BytesIO(), out)
                    name, file_, sha256 = member.name, raw, sha256_of(raw)
                    if name not in sums:
                        name, file_, sha256 = f"{name}.gz", packed, _pack(raw, packed)
                    if sums.get(name) != sha256:
                        raise CampaignError(
                            f"{archive}: {name} differs from its checksum; the archive is damaged, or was "
                            "made with a gzip that compresses in another way"
                        )
                    left.discard(name)
                    yield name, file_
            assert zstd.stdout
            zstd.stdout.read()  # tar pads the end of an archive, and zstd fails if nobody reads the padding
        except tarfile.TarError as error:
            raise CampaignError(f"{archive}: is damaged: {error}") from error
    if zstd.returncode or left:
        raise CampaignError(f"{archive}: is damaged: {counted(len(left), 'trace')} cannot be read")


def _unpack(file: Path, raw: Path) -> bool:
    """Unpack a gzip file; return whether this succeeded."""
    try:
        with gzip.open(file) as source, raw.open("wb") as out:
            shutil.copyfileobj(source, out)
    except (OSError, EOFError, zlib.error):
        return False
    return True


def _pack(raw: Path, packed: Path) -> str:
    """Compress a file as hosts do, and return the SHA-256 of the result."""
    with raw.open("rb") as source, packed.open("wb") as out:
        if code := subprocess.run(PACK, stdin=source, stdout=out, check=False).returncode:
            raise CampaignError(f"{packed.parent}: gzip ended with code {code}; is the disk full?")
    return sha256_of(packed)
