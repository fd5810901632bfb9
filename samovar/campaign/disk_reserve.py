"""Reserve disk space in a campaign's folder, so that the end of the run can be recorded on a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from samovar.errors import CampaignError

RESERVE = ".reserve"
RESERVE_BYTES = 1_000_000
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM})


def is_disk_error(error: BaseException) -> bool:
    """Return whether an error means that no file can be written, so that the next trial would fail too."""
    if isinstance(error, CampaignError):
        return True
    return isinstance(error, OSError) and error.errno in _DISK_ERRORS


class DiskReserve:
    """A file that occupies disk space until a write fails.

    `lost` is the message of the first write that failed, otherwise empty.
    """

    def __init__(self) -> None:
        self._reserve: Path | None = None
        self.lost = ""

    def hold(self, folder: Path) -> None:
        """Occupy RESERVE_BYTES of the disk. Raises CampaignError if fewer bytes are free."""
        self._reserve = folder / RESERVE
        try:
            with self._reserve.open("wb") as out:
                os.posix_fallocate(out.fileno(), 0, RESERVE_BYTES)
        except OSError as error:
            self.release()
            raise CampaignError(f"{folder}: cannot be written: {error.strerror}") from error

    def fail(self, error: BaseException) -> None:
        """Store the error of a failed write, and free the reserve, so that the error can be recorded."""
        self.lost = self.lost or str(error)
        self.release()

    def release(self) -> None:
        """Free the disk space that `hold` has occupied."""
        if self._reserve is not None:
            try:
                self._reserve.unlink(missing_ok=True)
            except OSError as error:  # the disk fails, so no space can be freed on it
                self.lost = self.lost or str(error)
            self._reserve = None
