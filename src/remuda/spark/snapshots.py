"""Snapshots in bulk, by Spark: verify, compact, restore and export them, in parallel, from the
object store alone. The members' own code does the work, in Spark's tasks instead of in members.

Every machine of Spark must reach the store (and the key file, if there is one, under one path).
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from pyspark.sql import SparkSession

from remuda.client.blocking.client import Client
from remuda.client.values.row import Row
from remuda.errors import InputError
from remuda.snapshot.export import (
    Exported,
    Target,
    abandon_export,
    begin_export,
    export_piece,
    finish_export,
    target_of,
)
from remuda.snapshot.offline import Store, path_to
from remuda.snapshot.pieces import (
    BaseWriter,
    NewBase,
    Piece,
    begin_base,
    catalog_of,
    chosen_maps,
    finish_base,
    pieces_of,
)
from remuda.spark.pieces import run_pieces, slots
from remuda.storage.format.manifest import DataObject, Manifest
from remuda.storage.snapshot import writing
from remuda.storage.snapshot.chain import load
from remuda.storage.snapshot.restoring import RestorePlan
from remuda.storage.snapshot.verifying import (
    Finding,
    Level,
    Verifier,
    VerifyReport,
    begun,
    owners_of,
)

PIECES_PER_SLOT = 2
OBJECTS_PER_PIECE = 4


# --- verify ---------------------------------------------------------------------------------------


def verify_snapshot(
    spark: SparkSession, store: str, name: str, level: int = 3, *, key_file: str = ""
) -> VerifyReport:
    """The findings of ``VERIFY SNAPSHOT``, object by object and cut by cut in parallel. Raises
    UndefinedObject, InputError."""
    if level not in list(Level):
        raise InputError(f"level must be 1, 2 or 3, not {level!r}")
    place = Store(store, key_file)
    opened, _ = place.open()
    chain = load(opened, name)
    report = begun(opened, chain, Level(level), now=time.time_ns() // 1000)
    objects = len(owners_of(chain))
    cuts = sorted(chain.manifests) if level >= Level.REPLAY else []
    looks = [("objects", start) for start in range(0, objects, OBJECTS_PER_PIECE)]
    looks += [("cut", version) for version in cuts]
    for answer in run_pieces(spark, len(looks), _Look(place, name, Level(level), tuple(looks))):
        found = json.loads(answer)
        findings = [Finding(**each) for each in found.pop("findings")]
        report.add(VerifyReport(Level(found.pop("level")), **found, findings=findings))
    return report


@dataclass(frozen=True, slots=True)
class _Look:
    store: Store
    name: str
    level: Level
    looks: tuple[tuple[str, int], ...]

    def __call__(self, piece: int, _attempt: int) -> str:
        store, key = self.store.open()
        chain = load(store, self.name)
        report, owners = VerifyReport(self.level), owners_of(chain)
        verifier = Verifier(store, key, report, owners)
        what, number = self.looks[piece]
        if what == "cut":
            verifier.check_cut(chain, chain.manifests[number])
        else:
            for each in list(owners)[number : number + OBJECTS_PER_PIECE]:
                verifier.check_object(each, self.level)
        return json.dumps(asdict(report))


# --- compact --------------------------------------------------------------------------------------


def compact_snapshot(
    spark: SparkSession,
    store: str,
    name: str,
    *,
    into: str | None = None,
    cut: int | None = None,
    moment: datetime | None = None,
    key_file: str = "",
    pieces: int | None = None,
) -> Manifest:
    """Make a base of a cut and the increments that lead to it; the new cut.

    Without ``into`` the last cut becomes a base at the end of the same snapshot: further increments
    rest on it, and ``expire`` may give up what was before. With ``into``, any cut or moment becomes
    the only cut of a new snapshot. ``pieces``: into how many tasks the logs are cut (default: twice
    the session's slots); each reads the log of a member for its share of the partitions. Until all
    is there, nothing is visible; on a failure what was written is taken away. Raises InputError,
    DuplicateObject, UndefinedObject, DataCorrupted.
    """
    place = Store(store, key_file)
    opened, key = place.open()
    path = path_to(opened, name, cut=cut, moment=moment)
    began = time.time_ns() // 1000
    made = begin_base(opened, load(opened, name), path, into or name, began)
    try:
        ids = {schema.map_id for schema in catalog_of(path).maps}
        work = pieces_of(path, ids, pieces or PIECES_PER_SLOT * slots(spark))
        answers = run_pieces(spark, len(work), _Compact(place, path, tuple(work), made))
        objects = [_data_object(each) for answer in answers for each in json.loads(answer)]
        now = time.time_ns() // 1000
        return finish_base(opened, path, made, objects, now=now, key=key)
    except BaseException:
        writing.abandon(opened, made.name, made.version)
        raise


@dataclass(frozen=True, slots=True)
class _Compact:
    store: Store
    path: RestorePlan
    pieces: tuple[Piece, ...]
    made: NewBase

    def __call__(self, piece: int, attempt: int) -> str:
        store, key = self.store.open()
        writer = BaseWriter(store, key, self.path, self.made, attempt)
        return json.dumps([asdict(each) for each in writer.write(self.pieces[piece])])


def _data_object(values: Mapping[str, object]) -> DataObject:
    found = dict(values)
    found["partitions"] = tuple(found["partitions"])  # type: ignore[arg-type]
    return DataObject(**found)  # type: ignore[arg-type]


# --- restore --------------------------------------------------------------------------------------


def restore_snapshot(
    spark: SparkSession,
    client: Client,
    store: str,
    name: str,
    *,
    cut: int | None = None,
    moment: datetime | None = None,
    maps: Iterable[str] | Mapping[str, str] | None = None,
    prefix: str = "",
    key_file: str = "",
) -> list[Row]:
    """Restore a snapshot with its logs replayed by Spark: they become a base of its own in the same
    store (``compact_snapshot``), the members read that, each its share, all maps appear together or
    not at all, and the base goes again. ``store`` is what the members of ``client``'s cluster have
    as ``snapshot_store``, as it is called here. The maps that are there now, as
    ``client.snapshots.restore`` tells them; the same arguments, and the same errors."""
    place = Store(store, key_file)
    opened, _ = place.open()
    path = path_to(opened, name, cut=cut, moment=moment)
    if not path.from_logs:
        return client.snapshots.restore(name, cut=path.cut.version, maps=maps, prefix=prefix)
    aside = f"{name}-restoring-{secrets.token_hex(8)}"
    try:
        made = compact_snapshot(
            spark, store, name, into=aside, cut=cut, moment=moment, key_file=key_file
        )
        return client.snapshots.restore(aside, cut=made.version, maps=maps, prefix=prefix)
    finally:
        for key in sorted(opened.keys(f"{aside}/"), key=_place_in_deletion):
            opened.delete(key)


def _place_in_deletion(key: str) -> int:
    """The record first, or the manifest would be missed."""
    return next(n for n, end in enumerate((".record", ".manifest", "")) if key.endswith(end))


# --- export ---------------------------------------------------------------------------------------


def export_snapshot(
    spark: SparkSession,
    store: str,
    name: str,
    to: str,
    *,
    cut: int | None = None,
    moment: datetime | None = None,
    maps: Sequence[str] | None = None,
    key_file: str = "",
    pieces: int | None = None,
) -> list[Exported]:
    """Write the maps of a cut, or of a moment, as Parquet below ``to`` (a folder, or a URL that
    ``pyarrow.fs`` reads): a folder per map, in parallel. ``to`` must be new or empty. Raises
    UndefinedMap, DuplicateObject, ResourceError, DataCorrupted; nothing is left then."""
    place = Store(store, key_file)
    path = path_to(place.open()[0], name, cut=cut, moment=moment)
    ids = {schema.map_id for schema in chosen_maps(path, maps)}
    target = target_of(to, secrets.token_hex(4))
    begin_export(target)
    try:
        work = tuple(pieces_of(path, ids, pieces or PIECES_PER_SLOT * slots(spark)))
        chosen = None if maps is None else tuple(maps)
        answers = run_pieces(spark, len(work), _Export(place, path, work, chosen, target))
        parts = [
            Exported(each["map"], each["rows"], tuple(each["files"]))
            for answer in answers
            for each in json.loads(answer)
        ]
        return finish_export(path, maps, target, parts)
    except BaseException:
        abandon_export(target)
        raise


@dataclass(frozen=True, slots=True)
class _Export:
    store: Store
    path: RestorePlan
    pieces: tuple[Piece, ...]
    maps: tuple[str, ...] | None
    target: Target

    def __call__(self, piece: int, attempt: int) -> str:
        store, key = self.store.open()
        found = export_piece(
            store,
            key,
            self.path,
            self.pieces[piece],
            maps=self.maps,
            target=self.target,
            name=f"part-{piece:05}-{attempt}",
        )
        return json.dumps([asdict(each) for each in found])
