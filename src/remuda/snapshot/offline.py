"""Work on snapshots where no member runs: any process that reaches the store can do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from remuda.errors import InputError, Position
from remuda.snapshot.export import Exported, export_here, target_of
from remuda.snapshot.plans import planned
from remuda.snapshot.store import open_store, read_key
from remuda.sql.trees.snapshot import RestoreSnapshotTree
from remuda.storage.format.sealing import ObjectKey
from remuda.storage.snapshot.object_store import ObjectStore
from remuda.storage.snapshot.restoring import RestorePlan
from remuda.world import system_world


@dataclass(frozen=True, slots=True)
class Store:
    """Where snapshots lie, as the members' settings ``snapshot_store`` and ``snapshot_key_file``
    say it. Small: it travels, and each process opens the store for itself."""

    place: str
    key_file: str = ""

    def open(self) -> tuple[ObjectStore, ObjectKey | None]:
        """Raises InputError, ResourceError."""
        if not self.place:
            raise InputError(
                "no store is named",
                hint="Name what the members have as snapshot_store: a folder, or a URL such as"
                " s3://bucket/path.",
            )
        world = system_world()
        key = read_key(self.key_file, world) if self.key_file else None
        return open_store(self.place, world), key


def path_to(
    store: ObjectStore, name: str, *, cut: int | None = None, moment: datetime | None = None
) -> RestorePlan:
    """To a cut, a moment, or the last cut. Raises InputError, UndefinedObject, DataCorrupted."""
    if cut is not None and moment is not None:
        raise InputError("either a cut or a moment, not both")
    if moment is not None and moment.tzinfo is None:
        raise InputError(f"the moment {moment} has no zone", hint="Such as tzinfo=UTC.")
    text = "" if moment is None else moment.astimezone(UTC).isoformat()
    tree = RestoreSnapshotTree(name, Position(0, 0, 0), cut=cut, moment=text)
    return planned(store, tree, archive=True)


def export_snapshot(
    store: str,
    name: str,
    to: str,
    *,
    cut: int | None = None,
    moment: datetime | None = None,
    maps: Sequence[str] | None = None,
    key_file: str = "",
    identity: str,
) -> list[Exported]:
    """Write the maps of a cut, or of a moment, as Parquet below ``to``, in this process. Raises
    UndefinedMap, DuplicateObject, ResourceError, DataCorrupted; nothing is left then."""
    opened, key = Store(store, key_file).open()
    path = path_to(opened, name, cut=cut, moment=moment)
    return export_here(opened, key, path, maps=maps, target=target_of(to, identity))
