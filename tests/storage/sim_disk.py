"""A disk that keeps only what it was told to keep.

It has ``world.Disk``'s interface. What is written is visible at once and *on the disk* after a sync
of the file; names are on the disk after a sync of their folder. ``lose_power`` leaves of all else
any part: pieces of a write may be kept, lost or overtaken by later ones. ``power_cut`` counts down
operations to the one in which the power goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from remuda.errors import DiskFull, ResourceError
from remuda.world import FileFacts

SECTOR = 16
"""Bytes that are written together. Small, so that small logs are torn inside."""


class PowerCut(BaseException):
    """Nothing may catch it but the test."""


@dataclass(eq=False)
class File:
    content: bytearray = field(default_factory=bytearray)
    stored: bytearray = field(default_factory=bytearray)

    def sync(self) -> None:
        self.stored[:] = self.content


@dataclass(frozen=True)
class NameChange:
    """``path`` is ``file`` from here on (None: nothing); ``old`` is gone."""

    path: Path
    file: File | None
    old: Path | None = None

    def apply(self, names: dict[Path, File]) -> None:
        if self.old is not None:
            names.pop(self.old, None)
        if self.file is None:
            names.pop(self.path, None)
        else:
            names[self.path] = self.file

    @property
    def folders(self) -> set[Path]:
        return {self.path.parent} | ({self.old.parent} if self.old is not None else set())


class SimulatedDisk:
    sector = 1
    """Of a sector that the power has gone at, a part may be there."""

    def __init__(self, random: Random | None = None) -> None:
        self.random = random or Random(0)
        self.names_now: dict[Path, File] = {}
        self.names_stored: dict[Path, File] = {}
        self.changes: list[NameChange] = []
        self.folders: set[Path] = set()
        self.power_cut: int | None = None
        self.capacity: int | None = None
        self.failing_syncs = 0
        self.locked: set[Path] = set()

    # --- trouble ---

    def _operation(self) -> None:
        if self.power_cut is not None:
            self.power_cut -= 1
            if self.power_cut < 0:
                raise PowerCut

    def lose_power(self) -> None:
        """Everything that is not on the disk is kept in any part."""
        manner = self.random.choice(["all", "nothing", "some", "prefix"])
        self.power_cut = None
        self.locked.clear()
        for change in self.changes:
            if manner == "all" or (manner != "nothing" and self.random.random() < 0.5):
                change.apply(self.names_stored)
        for file in {*self.names_stored.values(), *self.names_now.values()}:
            self._tear(file, manner)
        self.names_now = dict(self.names_stored)
        self.changes = []

    def _tear(self, file: File, manner: str) -> None:
        new, old = file.content, file.stored
        result = bytearray(old)
        for start in range(0, len(new), SECTOR):
            piece = new[start : start + SECTOR]
            if piece == old[start : start + SECTOR]:
                continue
            keep = manner == "all" or (manner != "nothing" and self.random.random() < 0.5)
            if not keep and manner == "prefix":
                break
            if keep:
                if self.random.random() < 0.3:
                    piece = piece[: self.random.randrange(len(piece) + 1)]
                result.extend(bytes(max(0, start - len(result))))
                result[start : start + len(piece)] = piece
        file.content[:] = result
        file.stored[:] = result

    def flip(self, path: Path, offset: int, mask: int) -> None:
        file = self.names_now[path]
        file.content[offset] ^= mask
        file.sync()

    @property
    def used(self) -> int:
        return sum(len(file.content) for file in self.names_now.values())

    # --- world.Disk ---

    def space(self, path: Path) -> tuple[int, int]:
        return 2**40, 2**40  # what tells nothing of ``capacity``, as a quota does

    def read(self, path: Path) -> bytes:
        return bytes(self._file(path).content)

    def read_part(self, path: Path, offset: int, size: int) -> bytes:
        return bytes(self._file(path).content[offset : offset + size])

    def facts(self, path: Path) -> FileFacts:
        return FileFacts(0o600, (len(self._file(path).content),))

    def write(self, path: Path, content: bytes) -> None:
        temporary = path.with_name(path.name + ".new")
        if temporary in self.names_now:
            self.remove(temporary)
        appender = self.create(temporary)
        appender.append(content)
        appender.sync()
        self.rename(temporary, path)

    def make_folder(self, path: Path) -> None:
        self.folders |= {path, *path.parents}

    def names(self, folder: Path) -> list[str]:
        inside = {path.name for path in self.names_now if path.parent == folder}
        return sorted(inside | {path.name for path in self.folders if path.parent == folder})

    def create(self, path: Path) -> Appending:
        self._operation()
        if path in self.names_now:
            raise ResourceError(f"cannot make {path}: File exists")
        assert path.parent in self.folders, f"no folder {path.parent}"
        file = File()
        self._change(NameChange(path, file))
        return Appending(self, file)

    def truncate(self, path: Path, size: int) -> None:
        self._operation()
        file = self._file(path)
        del file.content[size:]
        file.sync()

    def rename(self, old: Path, new: Path) -> None:
        self._operation()
        assert new.parent in self.folders, f"no folder {new.parent}"
        self._change(NameChange(new, self._file(old), old))

    def remove(self, path: Path) -> None:
        self._operation()
        self._file(path)
        self._change(NameChange(path, None))

    def remove_folder(self, path: Path) -> None:
        if not self.names(path):
            self.folders.discard(path)

    def sync_folder(self, path: Path) -> None:
        self._operation()
        for change in self.changes:
            if path in change.folders:
                change.apply(self.names_stored)
        self.changes = [change for change in self.changes if path not in change.folders]

    def scratch(self, directory: str):
        raise AssertionError("nothing here spills")

    def lock(self, path: Path) -> Callable[[], None]:
        if path in self.locked:
            raise ResourceError(f"{path} is held by another process")
        self.locked.add(path)
        return lambda: self.locked.discard(path)

    def _file(self, path: Path) -> File:
        if path not in self.names_now:
            raise ResourceError(f"cannot read {path}: No such file")
        return self.names_now[path]

    def _change(self, change: NameChange) -> None:
        change.apply(self.names_now)
        self.changes.append(change)


class Appending:
    """``world.Appender``."""

    def __init__(self, disk: SimulatedDisk, file: File) -> None:
        self.disk, self.file = disk, file

    def append(self, data: bytes) -> None:
        room = len(data)
        if self.disk.capacity is not None:
            room = max(0, self.disk.capacity - self.disk.used)
        try:
            self.disk._operation()
        except PowerCut:
            self.file.content += data[: self.disk.random.randrange(len(data) + 1)]
            raise
        self.file.content += data[:room]
        if room < len(data):
            raise DiskFull("cannot write: No space left on device")

    def sync(self) -> None:
        self.disk._operation()
        if self.disk.failing_syncs:
            self.disk.failing_syncs -= 1
            raise ResourceError("cannot sync: Input/output error")
        self.file.sync()

    def close(self) -> None:
        pass
