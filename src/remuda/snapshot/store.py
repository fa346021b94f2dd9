"""Opens the object store of snapshots and reads its key, from a folder, a URL and a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from remuda.errors import InputError, RemudaError, ResourceError
from remuda.storage.format.sealing import NONCE_SIZE, ObjectKey, parse_key
from remuda.storage.snapshot.object_store import DirectoryStore, ObjectStore
from remuda.world import World

_OTHERS: Final = 0o077


def open_store(place: str, world: World, setting: str = "snapshot_store") -> ObjectStore:
    """``place``: a folder, or a URL that ``pyarrow.fs`` reads. Raises ResourceError."""
    if "://" in place:
        return _by_url(place, setting)
    path = Path(place)
    if not path.is_absolute():
        path = Path.cwd() / path
    return DirectoryStore(world.disk, path, writer=f"{world.chance.bits(64):016x}")


def read_key(name: str, world: World) -> ObjectKey:
    """The key in a file that nobody else may read. Raises InputError, ResourceError."""
    mode = world.disk.facts(Path(name)).permissions
    if mode & _OTHERS:
        raise InputError(
            f"the key file {name} can be read or changed by others (mode {mode:03o})",
            hint=f"chmod 600 {name}",
        )
    secret = parse_key(world.disk.read(Path(name)))
    chance = world.chance
    return ObjectKey(secret, lambda: chance.bits(8 * NONCE_SIZE).to_bytes(NONCE_SIZE))


def _by_url(url: str, setting: str) -> ObjectStore:
    from pyarrow import fs  # noqa: PLC0415 (it loads the libraries of every cloud)

    from remuda.storage.snapshot.arrow_store import ArrowStore  # noqa: PLC0415 (as above)

    try:
        filesystem, path = fs.FileSystem.from_uri(url)
    except RemudaError:
        raise
    except (ValueError, OSError, NotImplementedError) as problem:
        raise ResourceError(
            f"the {setting} {harmless_url(url)} cannot be opened: "
            + str(problem).replace(url, harmless_url(url)),
            hint=f"Set {setting} to a folder or to a URL that pyarrow.fs reads.",
        ) from problem
    return ArrowStore(filesystem, path)


def harmless_url(url: str) -> str:
    """Without the credentials that may be in it."""
    scheme, found, place = url.partition("?")[0].partition("://")
    return f"{scheme}://{place.rpartition('@')[2]}" if found else url
