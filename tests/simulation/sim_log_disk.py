"""The disk of a simulated member that keeps a log: folders and files in memory, without faults.
(What logs bear of a disk is shown in tests/storage.)"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim_world import SimulatedDisk

from remuda.errors import ResourceError


class LogDisk(SimulatedDisk):
    def make_folder(self, path: Path) -> None:
        """Folders are where files are."""

    def names(self, folder: Path) -> list[str]:
        depth = len(folder.parts)
        below = [path.parts[depth] for path in self.files if folder in path.parents]
        return sorted(set(below))

    def read_part(self, path: Path, offset: int, size: int) -> bytes:
        return self.read(path)[offset : offset + size]

    def create(self, path: Path) -> Any:
        if path in self.files:
            raise ResourceError(f"{path} is there")
        self.files[path] = b""
        return _Appender(self.files, path)

    def truncate(self, path: Path, size: int) -> None:
        self.files[path] = self.files[path][:size]

    def rename(self, old: Path, new: Path) -> None:
        self.files[new] = self.files.pop(old)

    def remove(self, path: Path) -> None:
        del self.files[path]

    def sync_folder(self, path: Path) -> None:
        """Nothing is lost here."""

    def lock(self, _path: Path) -> Callable[[], None]:
        return lambda: None


class _Appender:
    def __init__(self, files: dict[Path, bytes], path: Path) -> None:
        self._files = files
        self._path = path

    def append(self, data: bytes) -> None:
        self._files[self._path] += data

    def sync(self) -> None:
        """Nothing is lost here."""

    def close(self) -> None:
        """It stays as it is."""
