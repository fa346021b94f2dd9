"""``put_all`` and ``get_all`` of many entries as columns mean the same as entry by entry."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from remuda.client.values.objects import ObjectCodec
from remuda.datatypes import sql
from remuda.datatypes.schema import VALUE_COLUMN, Column, MapSchema, ValueShape
from remuda.datatypes.values import arrays_to_rows

MANY = 100
TYPES = (
    sql.VARCHAR, sql.varchar(3), sql.DOUBLE, sql.REAL, sql.INTEGER, sql.SMALLINT, sql.BIGINT,
    sql.BOOLEAN, sql.BYTEA, sql.decimal(9, 2), sql.decimal(30, 2), sql.DATE, sql.TIMESTAMP,
    sql.UUID, sql.JSON,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    "a", "abcd", "ü", "\ud800", "", 1, -(2**15), 2**15, 2**31, 2**63, -(2**63), True, 1.5,
    float("nan"), float("inf"), 1e39, b"x", None, Decimal("1.25"), Decimal(10) ** 9,
    dt.date(2020, 2, 29), dt.datetime(2020, 2, 29, 1), [1], {"a": 1}, object(), UUID(int=5),  # noqa: DTZ001
)  # fmt: skip


@dataclass
class One:
    v: Any


class Pair(NamedTuple):
    v: Any
    w: Any = 7


@dataclass
class Computed:
    v: int
    double: int = field(init=False)

    def __post_init__(self) -> None:
        self.double = 2 * self.v


def value_schema(column_type: sql.SqlType, *, nullable: bool = True, key: Any = sql.BIGINT) -> Any:
    columns = (Column("__key", key, False), Column("v", column_type, nullable))
    return MapSchema("m", columns, ("__key",), ("__key",))


def row_by_row(codec: ObjectCodec, pairs: list[tuple[Any, Any]]) -> Any:
    """The rows that ``put`` of each would store, by key; or the error of the first misfit."""
    try:
        rows = [codec.row(key, value) for key, value in pairs]
    except Exception as error:  # noqa: BLE001 (compared)
        return type(error)
    return sorted({row[0]: repr(row) for row in rows}.items())


def as_columns(codec: ObjectCodec, pairs: list[tuple[Any, Any]]) -> Any:
    batch = codec.batch(pairs)
    if batch is None:
        return None
    batch.validate(full=True)
    types = [column.type for column in codec.schema.columns]
    return sorted((row[0], repr(row)) for row in arrays_to_rows(batch.columns, types))


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("column_type", TYPES, ids=str)
def test_a_column_holds_what_each_row_would(column_type: sql.SqlType, nullable: bool) -> None:
    codec = ObjectCodec(value_schema(column_type, nullable=nullable))
    taken = 0
    for value in VALUES:
        for others in (value, None, 1, "a"):
            pairs = [(key, One(others if key % 3 else value)) for key in range(MANY)]
            found = as_columns(codec, pairs)
            taken += found is not None
            assert found is None or found == row_by_row(codec, pairs), (value, others)
    assert taken


@pytest.mark.parametrize(
    ("key_type", "keys"),
    [
        (sql.BIGINT, [2**63]), (sql.BIGINT, [True]), (sql.BIGINT, [1.0]), (sql.INTEGER, [2**31]),
        (sql.VARCHAR, ["\ud800"]), (sql.VARCHAR, [1]), (sql.BIGINT, [None]), (sql.BIGINT, [(1,)]),
    ],
)  # fmt: skip
def test_a_key_that_is_not_plain_is_left_to_its_row(key_type: sql.SqlType, keys: Any) -> None:
    codec = ObjectCodec(value_schema(sql.BIGINT, key=key_type))
    plain = range(MANY) if key_type != sql.VARCHAR else map(str, range(MANY))
    mixed = [*plain, *keys]
    found = as_columns(codec, [(key, One(1)) for key in mixed])
    assert found is None
    assert codec.key_columns(mixed) is None


def test_the_last_of_equal_keys_counts() -> None:
    codec = ObjectCodec(value_schema(sql.BIGINT))
    pairs = [(key % 10, One(key)) for key in range(MANY)]
    assert as_columns(codec, pairs) == row_by_row(codec, pairs)


def test_values_of_several_shapes_are_left_to_their_rows() -> None:
    columns = (Column("__key", sql.BIGINT, False), Column("v", sql.BIGINT), Column("w", sql.BIGINT))
    codec = ObjectCodec(MapSchema("m", columns, ("__key",), ("__key",)))
    ones = [(key, One(key)) for key in range(MANY)]
    assert as_columns(codec, ones) == row_by_row(codec, ones)
    assert codec.batch([*ones, (MANY, Pair(1))]) is None
    mappings: list[Any] = [(key, {"w": key}) for key in range(MANY)]
    assert as_columns(codec, mappings) == row_by_row(codec, mappings)
    assert codec.batch([*mappings, (MANY, {"v": 1})]) is None
    swapped = [*mappings, (MANY, {"w": 1, "v": 2})]
    assert codec.batch(swapped) is None
    assert codec.batch([(key, {"other": 1}) for key in range(MANY)]) is None


def test_scalar_values_are_a_column() -> None:
    columns = (Column("__key", sql.VARCHAR, False), Column(VALUE_COLUMN, sql.DOUBLE, False))
    schema = MapSchema("m", columns, ("__key",), ("__key",), value_shape=ValueShape.SCALAR)
    codec = ObjectCodec(schema)
    pairs = [(str(key), key / 2) for key in range(MANY)]
    assert as_columns(codec, pairs) == row_by_row(codec, pairs)
    assert codec.batch([*pairs, ("x", None)]) is None  # type: ignore[list-item]
    batch = codec.batch(pairs)
    assert batch is not None
    assert codec.values(batch) == [value for _, value in pairs]


@pytest.mark.parametrize("value_type", [None, One, Pair, Computed])
def test_objects_of_columns_are_those_of_rows(value_type: type | None) -> None:
    names = ("v", "w") if value_type is Pair else ("v", "double") if value_type is Computed else "v"
    columns = (Column("__key", sql.BIGINT, False), *(Column(n, sql.DATE) for n in names))
    if value_type is Computed:
        columns = (columns[0], *(Column(n, sql.BIGINT) for n in names))
    codec = ObjectCodec(MapSchema("m", columns, ("__key",), ("__key",)), value_type)
    sources = [dict.fromkeys(names, None if key % 4 == 0 else key) for key in range(MANY)]
    if value_type is not Computed:
        days = [{n: v and dt.date.fromordinal(v) for n, v in s.items()} for s in sources]
        sources = days  # type: ignore[assignment]
    else:
        sources = [dict.fromkeys(names, key) for key in range(MANY)]
    pairs = list(enumerate(sources))
    batch = codec.batch(pairs)
    assert batch is not None
    rows = [codec.row(key, value) for key, value in pairs]
    assert codec.values(batch) == [codec.value(row) for row in rows]
