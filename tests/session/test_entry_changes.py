"""Changes of entries that are kept ready: what they compute is what was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.errors import NumericOverflow
from remuda.rpc.packing import packer
from remuda.rpc.type_codec import encode_types
from remuda.session.client_session import ClientSession
from remuda.session.entry_changes import ROWS_ONE_BY_ONE, SIZE_KEPT, EntryChanges


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


CHANGED_ALIKE = (
    ("v = v + ?", (3,), ""),
    ("v = v * v", (), ""),
    ("v = coalesce(v, 0) - ?", (2**62,), ""),
    ("v = v + 1", (), "v > 0"),
    ("v = NULL", (), "v IS NOT NULL AND id < 30"),
    ("v = abs(v)", (), "v < 0 OR v IS NULL"),
    ("v = v / (id - 5)", (), "id <> 5"),
)


@pytest.mark.parametrize(("assignments", "values", "condition"), CHANGED_ALIKE)
def test_rows_are_changed_alike_one_by_one_and_together(
    assignments: str, values: tuple[int, ...], condition: str
) -> None:
    rows = [(place, (None, -7, 0, 5, 10**6)[place % 5]) for place in range(2 * ROWS_ONE_BY_ONE)]
    types = (sql.BIGINT,) * len(values)
    compute = EntryChanges().computing(
        schema(kind=sql.BIGINT), assignments, condition, encode_types(types) if types else b"",
        packer(types).pack(values) if types else b"", 0, ClientSession(user="ada"),
    )  # fmt: skip
    alone = [compute([row])[0] for row in rows]
    assert alone == compute(rows)
    assert any(row is not None for row in alone)


def test_one_row_and_many_fail_alike() -> None:
    compute = computing(EntryChanges(), "v = v + ?", 1, kind=sql.BIGINT, of=schema(1, sql.BIGINT))
    for rows in ([(1, 2**63 - 1)], [(1, 2**63 - 1)] * (ROWS_ONE_BY_ONE + 1)):
        with pytest.raises(NumericOverflow):
            compute(rows)
