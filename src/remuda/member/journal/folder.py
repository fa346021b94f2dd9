"""The folder of a member that keeps a log: whose it is, and which view its member was last in.

::

    DIR/lock                    held by the process that uses the folder
    DIR/member.json             the state below
    DIR/log-0001/               segments (``storage.log.files``)
    DIR/image-0001/             the image of the last checkpoint (``member.journal.image``)

A member that comes back when the others went on without it begins anew: ``generation`` grows, and
so does the name of its log, which gets an identity of its own: snapshots must not take the segments
of the one for those of the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import google_crc32c

from remuda.datatypes.view import View
from remuda.errors import DataCorrupted, RemudaError, ResourceError, UnknownFormat
from remuda.formats import FOLDER_STATE
from remuda.release import VERSIONS, __version__
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2
from remuda.storage.format.segment import Identity
from remuda.world import Disk

STATE = "member.json"
LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Holders:
    """The members that had the last copies of a partition, the primary first, up to view
    ``view``."""

    view: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FolderState:
    """``number``: of the member in ``view``; ``accepted``: a later view that it has voted for, and
    which may have been decided."""

    identity: Identity
    number: int
    view: View
    accepted: View | None = None
    lost: Mapping[int, Holders] = field(default_factory=dict)
    generation: int = 1
    settled: bool = False
    """``accepted`` is the view of a start: the member has ended what was in doubt, and has given up
    what others have in it. It counts when all members of it have done so."""

    @property
    def newest(self) -> View:
        """The last view that may have been decided, as far as this member knows."""
        accepted = self.accepted
        if accepted is not None and accepted.number > self.view.number:
            return accepted
        return self.view

    def in_view(self, view: View) -> FolderState:
        return replace(self, view=view, lost=lost_after(self.lost, self.view, view))


def lost_after(lost: Mapping[int, Holders], before: View, view: View) -> dict[int, Holders]:
    """The last holders of the partitions of which no member of ``view`` has a copy."""
    found: dict[int, Holders] = {}
    for partition in view.absent:
        row = before.replicas[partition] if partition < len(before.replicas) else ()
        if row:
            found[partition] = Holders(before.number, row)
        elif partition in lost:
            found[partition] = lost[partition]
    return found


class Folder:
    """``path``, locked until ``close``."""

    def __init__(self, disk: Disk, path: Path) -> None:
        """Raises ResourceError when another process uses it, DataCorrupted, DiskFull."""
        self.disk = disk
        self.path = path
        disk.make_folder(path)
        try:
            self._unlock: Callable[[], None] | None = disk.lock(path / LOCK)
        except ResourceError as error:
            raise ResourceError(
                f"data_dir {path} is used by another process",
                detail=error.message,
                hint="Each member needs a folder of its own. End the other process first, if it is"
                " this member.",
            ) from error
        self.state: FolderState | None = None
        try:
            if STATE in disk.names(path):
                self.state = decode_state(disk.read(path / STATE), path / STATE)
        except RemudaError:
            self.close()
            raise

    def save(self, state: FolderState) -> None:
        """On the disk when this returns. Raises DiskFull, ResourceError."""
        self.write(state)
        self.state = state

    def write(self, state: FolderState) -> None:
        """The same for a thread: ``state`` of the folder is left to the loop."""
        self.disk.write(self.path / STATE, encode_state(state))
        self.disk.sync_folder(self.path)

    def log(self, generation: int) -> Path:
        return self.path / f"log-{generation:04d}"

    def image(self, generation: int) -> Path:
        return self.path / f"image-{generation:04d}"

    def close(self) -> None:
        if self._unlock is not None:
            self._unlock()
            self._unlock = None


def encode_state(state: FolderState) -> bytes:
    body = {
        "format": FOLDER_STATE.number,
        "cluster": state.identity.cluster.hex(),
        "member": state.identity.member.hex(),
        "number": state.number,
        "generation": state.generation,
        "view": _view_text(state.view),
        "accepted": None if state.accepted is None else _view_text(state.accepted),
        "settled": state.settled,
        "lost": {str(p): [each.view, *each.members] for p, each in state.lost.items()},
    }
    text = json.dumps(body, sort_keys=True)
    checksum = google_crc32c.value(text.encode())
    return json.dumps({"state": body, "crc32c": checksum}, sort_keys=True, indent=1).encode()


def decode_state(data: bytes, path: Path) -> FolderState:
    """Raises DataCorrupted, UnknownFormat."""
    try:
        whole = json.loads(data)
        body = whole["state"]
        if google_crc32c.value(json.dumps(body, sort_keys=True).encode()) != whole["crc32c"]:
            raise _damaged(path, "its checksum is another one")
        FOLDER_STATE.check(body["format"], str(path))
        state = FolderState(
            Identity(bytes.fromhex(body["cluster"]), bytes.fromhex(body["member"])),
            body["number"],
            _view_of(body["view"]),
            None if body["accepted"] is None else _view_of(body["accepted"]),
            {int(p): Holders(each[0], tuple(each[1:])) for p, each in body["lost"].items()},
            body["generation"],
            body.get("settled", False),
        )
    except (KeyError, TypeError, ValueError, IndexError) as problem:
        raise _damaged(path, str(problem)) from problem
    version = max(state.view.version, state.newest.version)
    if version > VERSIONS.highest:
        raise UnknownFormat(
            f"{path}: the folder belongs to a cluster in version {version}; this release,"
            f" {__version__}, works in {VERSIONS}",
            hint="The upgrade of the cluster was finished. Start the member with the release that"
            " the other members have; the folder is left as it is.",
        )
    return state


def _damaged(path: Path, why: str) -> DataCorrupted:
    return DataCorrupted(
        f"{path} cannot be read: {why}",
        hint="Put the file back from a copy, or start the member with an empty folder: it gets its"
        " data from the others then.",
    )


def _view_text(view: View) -> str:
    return codec.encode_view(view).SerializeToString(deterministic=True).hex()


def _view_of(text: str) -> View:
    return codec.decode_view(common_pb2.View.FromString(bytes.fromhex(text)))
