"""Room on the disk of a log.

Work that is noted in a log is done already, so it must not meet a full disk. New writes are refused
while there is less room than what is under way may need; reads go on, and so does everything when
there is room again. Where a write meets a full disk all the same (another process has filled it
within a moment, or a quota that the disk does not tell), the log waits and tries again, and nobody
is told of what waits.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from remuda.errors import DiskFull, ResourceError
from remuda.limits import LOG_SEGMENT_SIZE
from remuda.member.state.log import fields
from remuda.world import Disk

log = logging.getLogger(__name__)

RESERVE: Final = LOG_SEGMENT_SIZE
"""Bytes that are kept for what is under way; of a small disk, less."""
RESERVE_SHARE: Final = 16
TRY_EVERY: Final = 0.5
"""Seconds between two attempts to write to a full disk."""


class LogRoom:
    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._folder = folder
        self.refusal: DiskFull | None = None
        """The error by which new writes are refused, if they are."""

    def free(self) -> tuple[int, int] | None:
        """Bytes that are free, and that are kept; None: nobody knows. On a thread."""
        try:
            free, size = self._disk.space(self._folder)
        except ResourceError:
            return None
        return free, min(RESERVE, size // RESERVE_SHARE)

    def on_free(self, found: tuple[int, int] | None) -> None:
        """``free`` has found this, and the log could be written."""
        if found is not None and found[0] < found[1]:
            self._refuse(f"{found[0]} bytes are free there, and {found[1]} are kept")
        elif self.refusal is not None:
            self.refusal = None
            log.warning("there is room for the log again", extra=fields(folder=str(self._folder)))

    def on_full(self, cause: DiskFull) -> None:
        """It could not be written."""
        self._refuse(cause.message)

    def _refuse(self, why: str) -> None:
        if self.refusal is None:
            log.error(
                "no room for the log: writes are refused",
                extra=fields(folder=str(self._folder), cause=why),
            )
        self.refusal = DiskFull(
            "the disk of a member's log is full: nothing is written until there is room",
            detail=f"{self._folder}: {why}",
            hint="Make room there. Reads go on, and nothing that was acknowledged is lost.",
        )
