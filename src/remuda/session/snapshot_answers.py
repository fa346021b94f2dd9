"""The answers of statements about snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from remuda.datatypes.schema import Column
from remuda.datatypes.sql import BIGINT, BOOLEAN, INTEGER, TIMESTAMPTZ, VARCHAR
from remuda.session.answers import Answer, answer_rows
from remuda.storage.format.manifest import Manifest
from remuda.storage.snapshot.chain import Chain
from remuda.storage.snapshot.expiring import ExpirePlan
from remuda.storage.snapshot.verifying import VerifyReport

CUT_COLUMNS = (
    Column("snapshot", VARCHAR, nullable=False),
    Column("cut", BIGINT),
    Column("kind", VARCHAR),
    Column("created", TIMESTAMPTZ),
    Column("timestamp", BIGINT),
    Column("maps", INTEGER),
    Column("rows", BIGINT),
    Column("removed", BIGINT),
    Column("objects", INTEGER),
    Column("bytes", BIGINT),
    Column("key", VARCHAR),
    Column("problem", VARCHAR),
)
CREATED_COLUMNS = (*CUT_COLUMNS, Column("note", VARCHAR))
"""``note``: why it is a base where an increment was asked for."""
MAP_COLUMNS = (
    Column("snapshot", VARCHAR, nullable=False),
    Column("cut", BIGINT, nullable=False),
    Column("kind", VARCHAR, nullable=False),
    Column("map", VARCHAR),
    Column("rows", BIGINT),
    Column("removed", BIGINT),
    Column("objects", INTEGER),
    Column("bytes", BIGINT),
)
"""Segments hold rows of all maps, so an increment has no objects and bytes by map; it has a row
without a map if no map was written to, or nobody has counted."""
FINDING_COLUMNS = (
    Column("place", VARCHAR, nullable=False),
    Column("problem", VARCHAR, nullable=False),
    Column("kind", VARCHAR, nullable=False),
)
"""``kind``: "damage", or "left over": nothing that is to be restored is harmed."""
RESTORED_COLUMNS = (
    Column("map", VARCHAR, nullable=False),
    Column("restored_as", VARCHAR, nullable=False),
    Column("rows", BIGINT, nullable=False),
    Column("objects", INTEGER, nullable=False),
    Column("bytes", BIGINT, nullable=False),
)
GONE_COLUMNS = (
    Column("snapshot", VARCHAR, nullable=False),
    Column("cut", BIGINT, nullable=False),
    Column("kept", BOOLEAN, nullable=False),
)


def cut_row(manifest: Manifest, problem: str = "") -> tuple[Any, ...]:
    """One of ``CUT_COLUMNS``."""
    return (
        manifest.name,
        manifest.version,
        _kind(manifest),
        datetime.fromtimestamp(manifest.created / 1e6, UTC),
        manifest.timestamp,
        *_counts(manifest),
        len(manifest.objects),
        sum(each.size for each in manifest.objects),
        manifest.key or None,
        problem or None,
    )


def _kind(manifest: Manifest) -> str:
    return "base" if manifest.is_base else "increment"


def _counts(manifest: Manifest) -> tuple[int | None, int | None, int | None]:
    """Maps, rows and removed entries: of a base, what it holds; of an increment, the maps that were
    written to since the cut before, and the changes. None: they were not counted."""
    if manifest.is_base:
        return len(manifest.maps), sum(each.rows for each in manifest.maps), 0
    if manifest.changes is None:
        return None, None, None
    changes = manifest.changes
    return len(changes), sum(e.put for e in changes), sum(e.removed for e in changes)


def cut_rows(chain: Chain) -> list[tuple[Any, ...]]:
    """The cuts of a snapshot, then manifests that are damaged, and cuts that are being made or were
    left in the middle."""
    found = [cut_row(state.manifest, state.problem) for state in chain.states()]
    nothing = (None,) * (len(CUT_COLUMNS) - 3)
    for key, problem in chain.damaged:
        found.append((chain.name, None, *nothing, f"{key}: {problem}"))
    found += [(chain.name, each, *nothing, "its manifest is missing") for each in chain.lost()]
    begun = [version for version in chain.pending() if version not in chain.manifests]
    return found + [(chain.name, version, *nothing, "not finished") for version in begun]


def cuts_answer(rows: Sequence[tuple[Any, ...]]) -> Answer:
    return answer_rows(CUT_COLUMNS, rows)


def created_answer(manifest: Manifest, note: str) -> Answer:
    return answer_rows(CREATED_COLUMNS, [(*cut_row(manifest), note or None)])


def maps_answer(chain: Chain) -> Answer:
    """The contents of each cut of a snapshot."""
    rows = [
        (chain.name, version, _kind(manifest), *row)
        for version, manifest in sorted(chain.manifests.items())
        for row in (_maps_of_base if manifest.is_base else _maps_of_increment)(manifest)
    ]
    return answer_rows(MAP_COLUMNS, rows)


def _maps_of_base(manifest: Manifest) -> list[tuple[Any, ...]]:
    return [
        (
            entry.name,
            entry.rows,
            0,
            sum(each.map_id == entry.map_id for each in manifest.data),
            sum(each.size for each in manifest.data if each.map_id == entry.map_id),
        )
        for entry in sorted(manifest.maps, key=lambda entry: entry.name)
    ]


def _maps_of_increment(manifest: Manifest) -> list[tuple[Any, ...]]:
    if manifest.changes is None:
        return [(None,) * 5]
    changes = sorted(manifest.changes, key=lambda entry: entry.name)
    return [(e.name, e.put, e.removed, None, None) for e in changes] or [(None, 0, 0, None, None)]


def findings_answer(report: VerifyReport) -> Answer:
    rows = [(each.place, each.problem, each.kind) for each in report.findings]
    return answer_rows(FINDING_COLUMNS, rows)


def restored_answer(rows: Iterable[tuple[str, str, int, int, int]]) -> Answer:
    return answer_rows(RESTORED_COLUMNS, list(rows))


def gone_answer(plan: ExpirePlan) -> Answer:
    """Which cuts went, and which stayed."""
    rows = [(plan.name, cut, False) for cut in (*plan.cuts, *plan.unfinished)]
    rows += [(plan.name, cut, True) for cut in plan.kept]
    return answer_rows(GONE_COLUMNS, sorted(rows))
