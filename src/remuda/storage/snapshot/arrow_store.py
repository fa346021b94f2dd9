"""Objects in whatever ``pyarrow.fs`` reaches: S3 and what speaks like it, Google Cloud, Azure."""

from __future__ import annotations

from pyarrow import fs

from remuda.errors import DuplicateObject, ResourceError, UndefinedObject
from remuda.storage.snapshot.object_store import check_key, is_key


class ArrowStore:
    """Objects below ``root`` (bucket and path). In an object store an object appears as a whole,
    when it is closed; nothing there refuses a second one, so a key has one writer at a time."""

    def __init__(self, filesystem: fs.FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

    def put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        if self._size(path) is not None:
            raise DuplicateObject(f"object {key} exists already", detail=path)
        try:
            # Object stores have no folders, and ignore this.
            self._filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            with self._filesystem.open_output_stream(path, compression=None) as stream:
                stream.write(data)
        except OSError as problem:
            raise ResourceError(f"cannot write object {key}: {problem}") from problem
        if self._size(path) != len(data):
            raise ResourceError(f"object {key} was not written as a whole", detail=path)

    def get(self, key: str) -> bytes:
        path = self._path(key)
        try:
            with self._filesystem.open_input_stream(path, compression=None) as stream:
                data: bytes = stream.read()
        except FileNotFoundError as problem:
            raise UndefinedObject(f"there is no object {key}", detail=path) from problem
        except OSError as problem:
            raise ResourceError(f"cannot read object {key}: {problem}") from problem
        return data

    def keys(self, prefix: str) -> list[str]:
        folder, _, _ = prefix.rpartition("/")
        selector = fs.FileSelector(
            f"{self._root}/{folder}".rstrip("/"), allow_not_found=True, recursive=True
        )
        try:
            found = self._filesystem.get_file_info(selector)
        except OSError as problem:
            raise ResourceError(f"cannot list the objects of {prefix}: {problem}") from problem
        start = len(self._root) + 1
        keys = [info.path[start:] for info in found if info.type == fs.FileType.File]
        return sorted(key for key in keys if key.startswith(prefix) and is_key(key))

    def delete(self, key: str) -> None:
        path = self._path(key)
        try:
            self._filesystem.delete_file(path)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise ResourceError(f"cannot delete object {key}: {problem}") from problem

    def _size(self, path: str) -> int | None:
        try:
            info = self._filesystem.get_file_info(path)
        except OSError as problem:
            raise ResourceError(f"cannot look at {path}: {problem}") from problem
        if info.type != fs.FileType.File:
            return None
        size: int = info.size
        return size

    def _path(self, key: str) -> str:
        check_key(key)
        return f"{self._root}/{key}"
