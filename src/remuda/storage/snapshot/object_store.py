"""Where snapshots lie: immutable objects by key.

Keys are paths of lower-case letters, digits, ``-`` and ``_``; the last part has a suffix, the
others have none. An object appears whole or not at all and is never overwritten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from remuda.errors import (
    DiskFull,
    DuplicateObject,
    InputError,
    ResourceError,
    UndefinedObject,
)
from remuda.world import Appender, Disk

_KEY: Final = re.compile(r"(?:[a-z0-9_-]+/)*[a-z0-9_-]+(?:\.[a-z0-9_-]+)+")
_NAME: Final = re.compile(r"[a-z0-9_-]+")
_TEMPORARY: Final = ".writing-"
_TRIES: Final = 5


class ObjectStore(Protocol):
    """Blocking. All methods raise ``ResourceError`` when the store cannot be reached."""

    def put(self, key: str, data: bytes) -> None:
        """On the disk afterwards. Raises ``DuplicateObject`` when there is one."""

    def get(self, key: str) -> bytes:
        """Raises ``UndefinedObject``."""

    def keys(self, prefix: str) -> list[str]:
        """Of all objects whose key begins with it, sorted; a file without such a key is none."""

    def delete(self, key: str) -> None:
        """For good; nothing happens when there is none."""


@dataclass(frozen=True, slots=True)
class UnfinishedFile:
    """A file that becomes an object when it is whole: somebody is writing it, or was killed in the
    middle. ``modified``: microseconds since 1970, by the clock of the disk."""

    path: str
    size: int
    modified: int


@runtime_checkable
class KeepsUnfinished(Protocol):
    """A store in which unfinished objects can be seen."""

    def unfinished(self, prefix: str) -> list[UnfinishedFile]:
        """Those whose path below the root begins with ``prefix``."""

    def remove_unfinished(self, path: str) -> None: ...


def unfinished_files(store: ObjectStore, prefix: str) -> list[UnfinishedFile]:
    return store.unfinished(prefix) if isinstance(store, KeepsUnfinished) else []


def remove_unfinished(store: ObjectStore, prefix: str, *, before: int | None = None) -> int:
    """Take away the files that nobody writes any more, and those that were not written since
    ``before`` (microseconds since 1970; None: all); how many. A writer that is still at one gets an
    error."""
    if not isinstance(store, KeepsUnfinished):
        return 0
    found = store.unfinished(prefix)
    left = [each for each in found if before is None or each.modified < before]
    for each in left:
        store.remove_unfinished(each.path)
    return len(left)


def is_key(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


def check_key(key: str) -> None:
    """Raises ``InputError``."""
    if not is_key(key):
        raise InputError(f"{key!r} is no key of an object")


def check_name(name: str) -> None:
    """Raises ``InputError`` for what no snapshot may be called."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is no name of a snapshot",
            hint="Names have lower-case letters, digits, '-' and '_'.",
        )


class DirectoryStore:
    """Objects as files below ``root``: written under a temporary name, synced, renamed. ``writer``
    sets this store's temporary names apart from those of other processes, so that two that put one
    object do not write to one file."""

    def __init__(self, disk: Disk, root: Path, writer: str = "") -> None:
        self._disk = disk
        self._root = root
        self._temporary = _TEMPORARY + (f"{writer}-" if writer else "")

    def put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        if path.name in self._disk.names(path.parent):
            raise DuplicateObject(f"object {key} exists already", detail=str(path))
        temporary = path.with_name(self._temporary + path.name)
        appender = self._appender(temporary)
        try:
            try:
                appender.append(data)
                appender.sync()
            finally:
                appender.close()
            self._disk.rename(temporary, path)
        except ResourceError:  # a full disk: what nobody needs would keep it full
            if temporary.name in self._disk.names(temporary.parent):
                self._disk.remove(temporary)
            self._remove_empty(path.parent)
            raise
        self._disk.sync_folder(path.parent)

    def _appender(self, temporary: Path) -> Appender:
        folder = temporary.parent
        if temporary.name in self._disk.names(folder):
            self._disk.remove(temporary)  # of one that has ended in the middle
        for tries in range(1, _TRIES + 1):
            made = False
            try:
                self._disk.make_folder(folder)
                made = True
                return self._disk.create(temporary)
            except DiskFull:
                raise
            except ResourceError:
                last = tries == _TRIES and not made
                if last or folder.name in self._disk.names(folder.parent):
                    raise
                # Somebody has deleted the last object in it just now, and the folders.
        raise ResourceError(f"the folder of {temporary} is deleted again and again")

    def get(self, key: str) -> bytes:
        path = self._path(key)
        if path.name not in self._disk.names(path.parent):
            raise UndefinedObject(f"there is no object {key}", detail=str(path))
        return self._disk.read(path)

    def keys(self, prefix: str) -> list[str]:
        folder, _, _ = prefix.rpartition("/")
        return sorted(key for key in self._below(folder, prefix) if is_key(key))

    def delete(self, key: str) -> None:
        path = self._path(key)
        if path.name in self._disk.names(path.parent):
            self._disk.remove(path)
            self._disk.sync_folder(path.parent)
        self._remove_empty(path.parent)

    def _remove_empty(self, folder: Path) -> None:
        while folder != self._root and not self._disk.names(folder):
            self._disk.remove_folder(folder)
            folder = folder.parent

    # --- what is not an object yet ---

    def unfinished(self, prefix: str) -> list[UnfinishedFile]:
        folder, _, _ = prefix.rpartition("/")
        return [each for each in self._unfinished_below(folder) if each.path.startswith(prefix)]

    def _unfinished_below(self, folder: str) -> list[UnfinishedFile]:
        found: list[UnfinishedFile] = []
        for name in self._disk.names(self._root / folder):
            path = f"{folder}/{name}" if folder else name
            if name.startswith(_TEMPORARY):
                try:
                    facts = self._disk.facts(self._root / path)
                except ResourceError:
                    continue  # it is an object now
                found.append(UnfinishedFile(path, facts.size, facts.modified))
            elif _NAME.fullmatch(name):
                found += self._unfinished_below(path)
        return found

    def remove_unfinished(self, path: str) -> None:
        file = self._root / path
        if file.name.startswith(_TEMPORARY) and file.name in self._disk.names(file.parent):
            self._disk.remove(file)
            self._remove_empty(file.parent)

    def _path(self, key: str) -> Path:
        check_key(key)
        return self._root / key

    def _below(self, folder: str, prefix: str) -> list[str]:
        """Looks into no folder that has nothing of this prefix: a snapshot has many, and most
        questions are about one of them."""
        found: list[str] = []
        start = f"{folder}/" if folder else ""
        wanted = prefix[len(start) :]
        for name in self._disk.names(self._root / folder):
            if not name.startswith(wanted) or name.startswith("."):
                continue
            if "." in name:
                found.append(start + name)
            elif _NAME.fullmatch(name):  # what others keep there is not ours
                found += self._below(start + name, prefix)
        return found
