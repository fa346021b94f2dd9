"""The log on a disk: segments as files, flushes as calls. Blocking; a member runs it in a thread.

::

    FOLDER/0000000001.segment    FOLDER/0000000002.segment
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from remuda.errors import DiskFull
from remuda.limits import LOG_SEGMENT_SIZE
from remuda.storage.format.segment import HEADER_SIZE, Identity
from remuda.storage.log.reader import LogReader, Tail
from remuda.storage.log.writer import (
    AppendTo,
    CreateSegment,
    Flush,
    LogWriter,
    SyncFolder,
    SyncMode,
    SyncSegment,
)
from remuda.storage.log.zeros_ahead import ZerosAhead
from remuda.world import Appender, Disk

_DIGITS: Final = 10


class LogFiles:
    """The segments in ``folder``."""

    def __init__(self, disk: Disk, folder: Path, *, segment_size: int = LOG_SEGMENT_SIZE) -> None:
        self.disk = disk
        self.folder = folder
        self._open: dict[int, Appender] = {}
        self._size = 0
        """Bytes of the segment that is written, without the zeros behind them."""
        self._ahead = ZerosAhead(segment_size)
        self.stopped_at: int | None = None
        """The operation that has found a full disk."""

    # --- as a source of segments ---

    def numbers(self) -> list[int]:
        return _numbers(self.disk.names(self.folder))

    def read(self, number: int) -> bytes:
        return self.disk.read(self.path(number))

    def head(self, number: int) -> bytes:
        return self.disk.read_part(self.path(number), 0, HEADER_SIZE)

    @property
    def sector(self) -> int:
        return self.disk.sector

    def name(self, number: int) -> str:
        return str(self.path(number))

    def path(self, number: int) -> Path:
        return self.folder / f"{number:0{_DIGITS}}.segment"

    # --- writing ---

    def carry_out(self, flush: Flush, start: int = 0) -> None:
        """From operation ``start`` on. Raises ``ResourceError`` at the first one that fails: tell
        the writer; but where ``stopped_at`` names it, the disk is full, nothing is left of it, and
        it may be carried out again, with what follows."""
        self.stopped_at = None
        for place, operation in enumerate(flush.operations[start:], start):
            match operation:
                case CreateSegment(segment, header):
                    self._create(segment, header, place)
                case AppendTo():
                    self._append(operation, place)
                case SyncSegment(segment):
                    self._open[segment].sync()
                case SyncFolder():
                    self.disk.sync_folder(self.folder)

    def zeros_wanted(self) -> int:
        """How many bytes of zeros ``zero_ahead`` would write now."""
        target = self._ahead.target(self._size)
        return max(target - self._ahead.size, 0)

    def zero_ahead(self) -> None:
        """Write zeros behind the records of the segment, if few are left, so that the syncs to come
        write no metadata of the file. Where the disk has no room nothing is written. Raises
        ``ResourceError``: tell the writer."""
        target = self._ahead.target(self._size)
        if not target or not self._open:
            return
        (appender,) = self._open.values()
        try:
            appender.extend(target)
        except DiskFull:
            self._ahead.on_refused()
        else:
            self._ahead.on_extended(target)

    def _create(self, segment: int, header: bytes, place: int) -> None:
        self._complete()
        self.close()
        path = self.path(segment)
        try:
            self._open[segment] = self.disk.create(path)
            self._open[segment].append(header)
        except DiskFull:
            self.close()
            if path.name in self.disk.names(self.folder):
                self.disk.remove(path)
            self.stopped_at = place
            raise
        self._size = len(header)
        self._ahead.on_segment(self._size)

    def _complete(self) -> None:
        """Only the last segment may end with zeros, so they go before there is another one."""
        if self._ahead.size > self._size:
            for appender in self._open.values():
                self._cut(appender)

    def _cut(self, appender: Appender) -> None:
        appender.cut(self._size)
        self._ahead.on_cut(self._size)

    def _append(self, operation: AppendTo, place: int) -> None:
        appender = self._open[operation.segment]
        try:
            appender.append(operation.data)
            if operation.rest:
                appender.append(operation.rest)
        except DiskFull:
            # Back to whole frames: with half of one on the disk for long, what a crash leaves of
            # it later would look like damage (``torn_tail``).
            self._cut(appender)
            self.stopped_at = place
            raise
        self._size += operation.size
        self._ahead.on_group(operation.size, self._size)

    def close(self) -> None:
        for appender in self._open.values():
            appender.close()
        self._open.clear()

    def cut(self, tail: Tail) -> None:
        """Take away what a crash has left behind the log's end; on the disk afterwards, so that the
        next segment does not make damage of it."""
        for number in tail.unborn:
            self.disk.remove(self.path(number))
        if tail.segment:
            self.disk.truncate(self.path(tail.segment), tail.keep)
        self.disk.sync_folder(self.folder)

    def remove(self, numbers: Iterable[int]) -> None:
        """The oldest first, so that a crash in between leaves no hole."""
        for number in sorted(numbers):
            self.disk.remove(self.path(number))
            self.disk.sync_folder(self.folder)


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log that can be read and goes on. ``tail`` says what a crash has left, if anything."""

    files: LogFiles
    reader: LogReader
    writer: LogWriter
    tail: Tail


def open_log(
    disk: Disk,
    folder: Path,
    identity: Identity,
    mode: SyncMode,
    *,
    segment_size: int = LOG_SEGMENT_SIZE,
) -> OpenedLog:
    """Open or begin the log in ``folder``. Raises ``DataCorrupted`` and leaves it as it is when it
    is damaged; otherwise what a crash has left at its end is cut off, and every record that is
    there is on the disk."""
    disk.make_folder(folder)
    files = LogFiles(disk, folder, segment_size=segment_size)
    reader = LogReader(files, identity)
    tail = reader.tail()
    files.cut(tail)
    writer = LogWriter(identity, tail.end, mode, segment_size=segment_size)
    return OpenedLog(files, reader, writer, tail)


def _numbers(names: list[str]) -> list[int]:
    stems = [name.removesuffix(".segment") for name in names if name.endswith(".segment")]
    return sorted(int(stem) for stem in stems if stem.isdigit() and len(stem) == _DIGITS)
