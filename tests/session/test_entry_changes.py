"""Changes of entries that are kept ready: what they compute is what was asked for."""

from __future__ import annotations

from typing import Any

from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.rpc.codec import encode_types
from remuda.rpc.packing import packer
from remuda.session.client_session import ClientSession
from remuda.session.entry_changes import SIZE_KEPT, EntryChanges


def schema(version: int = 1, kind: Any = sql.DOUBLE) -> MapSchema:
    columns = (Column("id", sql.BIGINT, nullable=False, id=1), Column("v", kind, id=2))
    return MapSchema("m", columns, ("id",), ("id",), map_id=7, version=version)


def computing(
    changes: EntryChanges,
    assignments: str,
    *values: PhysicalValue,
    kind: Any = sql.DOUBLE,
    now: int = 0,
    of: MapSchema | None = None,
) -> Any:
    types = (kind,) * len(values)
    return changes.computing(
        of or schema(), assignments, "", encode_types(types) if types else b"",
        packer(types).pack(values) if types else b"", now, ClientSession(user="ada"),
    )  # fmt: skip


def test_the_same_change_is_made_once() -> None:
    changes = EntryChanges()
    first = computing(changes, "v = v + ?", 1.5)
    assert computing(changes, "v = v + ?", 1.5) is first
    assert first([(1, 1.0)]) == first([(1, 1.0)]) == [(1, 2.5)]
    assert computing(changes, "v = v + ?", 2.0)([(1, 1.0)]) == [(1, 3.0)]


def test_equal_values_that_differ_are_told_apart() -> None:
    changes = EntryChanges()
    signs = [computing(changes, "v = ?", value)([(1, 1.0)])[0] for value in (0.0, -0.0, 0.0)]
    assert [str(row[1]) for row in signs] == ["0.0", "-0.0", "0.0"]


def test_another_schema_is_another_change() -> None:
    changes = EntryChanges()
    assert computing(changes, "v = v + 1")([(1, 1.0)]) == [(1, 2.0)]
    other = schema(2, sql.BIGINT)
    assert computing(changes, "v = v + 1", of=other)([(1, 2**53)]) == [(1, 2**53 + 1)]


def test_a_change_that_depends_on_its_moment_is_made_each_time() -> None:
    changes = EntryChanges()
    asked = "v = extract(epoch FROM current_timestamp)"
    found = [computing(changes, asked, now=now)([(1, 0.0)]) for now in (1_000_000, 3_000_000)]
    assert found == [[(1, 1.0)], [(1, 3.0)]]


def test_a_volatile_function_is_computed_each_time() -> None:
    change = computing(EntryChanges(), "v = random()")
    assert change([(1, 0.0)]) != change([(1, 0.0)])


def test_a_long_change_is_not_kept() -> None:
    changes = EntryChanges()
    asked = "v = length(?)"
    text = "x" * SIZE_KEPT
    first = computing(changes, asked, text, kind=sql.VARCHAR)
    assert first([(1, 0.0)]) == [(1, float(SIZE_KEPT))]
    assert computing(changes, asked, text, kind=sql.VARCHAR) is not first
