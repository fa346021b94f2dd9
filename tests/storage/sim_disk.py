"""A disk that keeps only what it was told to keep.

It has ``world.Disk``'s interface. What is written is visible at once and *on the disk* after a sync
of the file; names are on the disk after a sync of their folder. ``lose_power`` leaves of all else
any part: pieces of a write may be kept, lost or overtaken by later ones. Pieces are a few bytes of
which again a part may be kept, or whole sectors (``Grain``). ``power_cut`` counts down operations
to the one in which the power goes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from remuda.errors import DiskFull, ResourceError
from remuda.world import FileFacts


@dataclass(frozen=True)
class Grain:
    """``piece``: how many bytes are written together; ``sector``: of these, at least so many as a
    whole, or not at all."""

    piece: int
    sector: int


BYTES = Grain(16, 1)
"""Small, so that small logs are torn inside; of the last sector a part may be there."""
SECTORS = Grain(512, 512)
PAGES = Grain(4096, 512)
"""A disk of larger sectors, or an operating system that writes whole pages, below the same log."""
GRAINS = (BYTES, SECTORS, PAGES)


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
    def __init__(self, random: Random | None = None, grain: Grain = BYTES) -> None:
        self.random = random or Random(0)
        self.grain = grain
        self.sector = grain.sector
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
        size = self.grain.piece
        for start in range(0, len(new), size):
            piece = new[start : start + size]
            if piece == old[start : start + size]:
                continue
            keep = manner == "all" or (manner != "nothing" and self.random.random() < 0.5)
            if not keep and manner == "prefix":
                break
            if keep:
                if self.sector == 1 and self.random.random() < 0.3:
                    piece = piece[: self.random.randrange(len(piece) + 1)]
                result.extend(bytes(max(0, start - len(result))))
                result[start : start + len(piece)] = piece
        cut = len(new) < len(old) and manner != "nothing"
        if cut and (manner == "all" or self.random.random() < 0.5):
            del result[len(new) :]
        elif len(new) > len(result) and manner == "some" and self.random.random() < 0.3:
            result.extend(bytes(len(new) - len(result)))  # its size is there, and not its bytes
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
        self.end = 0

    def append(self, data: bytes) -> None:
        self._write(data, self.end)
        self.end += len(data)

    def _write(self, data: bytes, start: int) -> None:
        content = self.file.content
        room = len(data)
        if self.disk.capacity is not None:
            room = len(content) - start + max(0, self.disk.capacity - self.disk.used)
        try:
            self.disk._operation()
        except PowerCut:
            # The operating system copies a page as a whole before it may go to the disk.
            stop = start + self.disk.random.randrange(len(data) + 1)
            written = data[: max(stop - stop % self.disk.sector - start, 0)]
            content[start : start + len(written)] = written
            raise
        written = data[:room]
        content[start : start + len(written)] = written
        if room < len(data):
            raise DiskFull("cannot write: No space left on device")

    def extend(self, size: int) -> None:
        start = len(self.file.content)
        try:
            self._write(bytes(size - start), start)
        except DiskFull:
            del self.file.content[start:]
            raise
        self.sync()

    def cut(self, size: int) -> None:
        self.disk._operation()
        del self.file.content[size:]
        self.end = size
        self.sync()

    def sync(self) -> None:
        self.disk._operation()
        if self.disk.failing_syncs:
            self.disk.failing_syncs -= 1
            raise ResourceError("cannot sync: Input/output error")
        self.file.sync()

    def close(self) -> None:
        pass
