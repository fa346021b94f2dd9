"""Objects in whatever ``pyarrow.fs`` reaches: S3 and what speaks like it, Google Cloud, Azure."""

from __future__ import annotations

from typing import Final

from pyarrow import fs

from remuda.errors import DuplicateObject, ResourceError, UndefinedObject
from remuda.storage.snapshot.object_store import check_key, is_key

BUCKETS: Final = ("s3", "gcs", "abfs")
"""File systems that have objects in buckets, and no folders."""
_NETWORK: Final = ("NETWORK_CONNECTION", "curlCode", "timed out", "Timeout")
_DENIED: Final = (
    "ACCESS_DENIED", "InvalidAccessKeyId", "INVALID_ACCESS_KEY_ID", "SignatureDoesNotMatch",
    "SIGNATURE_DOES_NOT_MATCH", "HTTP status 403", "HTTP response code: 403",
)  # fmt: skip


def _failed(what: str, problem: OSError) -> ResourceError:
    text, hint = str(problem), ""
    if any(word in text for word in _DENIED):
        hint = "The store refuses the credentials: check them, and what they may do in the bucket."
    elif any(word in text for word in _NETWORK):
        hint = "Check that the members reach the store's endpoint, and the region."
    return ResourceError(what, detail=text, hint=hint)


class ArrowStore:
    """Objects below ``root`` (bucket and path). In an object store an object appears as a whole,
    when it is closed; nothing there refuses a second one, so a key has one writer at a time."""

    def __init__(self, filesystem: fs.FileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")
        self._has_buckets = filesystem.type_name in BUCKETS
        self._looked = False
        """There is a bucket."""

    def put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        if self._size(path) is not None:
            raise DuplicateObject(f"object {key} exists already", detail=path)
        try:
            if self._has_buckets:
                self._require_bucket()
            else:
                self._filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            with self._filesystem.open_output_stream(path, compression=None) as stream:
                stream.write(data)
        except OSError as problem:
            raise _failed(f"object {key} cannot be written", problem) from problem
        if self._size(path) != len(data):
            raise ResourceError(f"object {key} was not written as a whole", detail=path)

    def get(self, key: str) -> bytes:
        path = self._path(key)
        try:
            with self._filesystem.open_input_stream(path, compression=None) as stream:
                data: bytes = stream.read()
        except FileNotFoundError as problem:
            self._require_bucket()
            raise UndefinedObject(f"there is no object {key}", detail=path) from problem
        except OSError as problem:
            raise _failed(f"object {key} cannot be read", problem) from problem
        return data

    def keys(self, prefix: str) -> list[str]:
        folder, _, _ = prefix.rpartition("/")
        selector = fs.FileSelector(
            f"{self._root}/{folder}".rstrip("/"), allow_not_found=True, recursive=True
        )
        try:
            found = self._filesystem.get_file_info(selector)
        except OSError as problem:
            raise _failed(f"the objects in {self._root} cannot be listed", problem) from problem
        if not found:
            self._require_bucket()
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
            raise _failed(f"object {key} cannot be deleted", problem) from problem

    def _require_bucket(self) -> None:
        """One that is missing looks like an empty one. Raises ResourceError."""
        if self._looked or not self._has_buckets:
            return
        bucket = self._root.partition("/")[0]
        try:
            info = self._filesystem.get_file_info(bucket)
        except OSError as problem:
            raise _failed(f"bucket {bucket} cannot be reached", problem) from problem
        if info.type == fs.FileType.NotFound:
            raise ResourceError(
                f"there is no bucket {bucket}",
                hint="Make it, or correct the URL; members make no buckets.",
            )
        self._looked = True

    def _size(self, path: str) -> int | None:
        try:
            info = self._filesystem.get_file_info(path)
        except OSError as problem:
            raise _failed(f"{path} cannot be looked at", problem) from problem
        if info.type != fs.FileType.File:
            return None
        size: int = info.size
        return size

    def _path(self, key: str) -> str:
        check_key(key)
        return f"{self._root}/{key}"
