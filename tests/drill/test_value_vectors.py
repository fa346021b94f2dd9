"""Value vectors: golden bytes, and everything read back by an independent reader."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import value_vector_reader as reader
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes import sql
from remuda.datatypes.arrow import external_type
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import SqlType, array, char, decimal, row, varchar
from remuda.errors import IntervalOverflow, NotSupported
from remuda.rpc.messages import vectors_pb2 as v
from remuda.rpc.value_vectors.batch import distinct_names, encode_batch

INTERVAL = pa.month_day_nano_interval()


def encoded(
    sql_type: SqlType, values: Any, *, nullable: bool = True, complex_types: bool = True
) -> tuple[Any, bytes]:
    arrow = values if isinstance(values, pa.Array) else made(sql_type, values)
    batch = pa.RecordBatch.from_arrays([arrow], names=["c"])
    fields, buffers = encode_batch(
        [Column("c", sql_type, nullable)], batch, complex_types=complex_types
    )
    body = b"".join(bytes(buffer) for buffer in buffers)
    # What arrives is what was serialized, not the object in hand.
    return [v.SerializedField.FromString(f.SerializeToString()) for f in fields], body


def made(sql_type: SqlType, values: Any) -> pa.Array:
    arrow = external_type(sql_type)
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, pa.array(values, arrow.storage_type))
    return pa.array(values, arrow)


def back(sql_type: SqlType, values: Any, **options: Any) -> list[Any]:
    fields, body = encoded(sql_type, values, **options)
    (column,) = reader.read_batch(fields, body).values()
    return column


# --- golden bytes -----------------------------------------------------------------------------


def test_a_required_bigint_is_its_values() -> None:
    (field,), body = encoded(sql.BIGINT, [1, -1], nullable=False)
    assert body.hex() == "0100000000000000" + "ffffffffffffffff"
    assert field.SerializeToString().hex() == "0a0408061001" + "12031201" + "63" + "2002" + "3810"


def test_a_nullable_varchar_is_bits_offsets_and_bytes() -> None:
    (field,), body = encoded(sql.VARCHAR, ["é", None, "ab"])
    assert body.hex() == "010001" + "00000000020000000200000004000000" + "c3a96162"
    assert str(field) == str(
        v.SerializedField(
            major_type=v.MajorType(minor_type=v.VARCHAR, mode=v.OPTIONAL),
            name_part=v.NamePart(name="c"),
            child=[
                v.SerializedField(
                    major_type=v.MajorType(minor_type=v.UINT1, mode=v.REQUIRED),
                    name_part=v.NamePart(name="$bits$"),
                    value_count=3,
                    buffer_length=3,
                ),
                v.SerializedField(
                    major_type=v.MajorType(minor_type=v.VARCHAR, mode=v.OPTIONAL),
                    name_part=v.NamePart(name="c"),
                    child=[
                        v.SerializedField(
                            major_type=v.MajorType(minor_type=v.UINT4, mode=v.REQUIRED),
                            name_part=v.NamePart(name="$offsets$"),
                            value_count=4,
                            buffer_length=16,
                        )
                    ],
                    value_count=3,
                    var_byte_length=4,
                    buffer_length=20,
                ),
            ],
            value_count=3,
            buffer_length=23,
        )
    )


@pytest.mark.parametrize(
    ("number", "digits"),
    [
        (0, "00"),
        (-1, "ff"),
        (127, "7f"),
        (128, "0080"),
        (-128, "80"),
        (-129, "ff7f"),
        (255, "00ff"),
        (32767, "7fff"),
        (10**38 - 1, "4b3b4ca85a86c47a098a223fffffffff"),
        (-(10**38) + 1, "b4c4b357a5793b85f675ddc000000001"),
    ],
)
def test_decimals_are_as_short_as_javas(number: int, digits: str) -> None:
    _, body = encoded(decimal(38, 0), [Decimal(number)], nullable=False)
    assert body[8:].hex() == digits


def test_bits_are_packed_from_the_lowest() -> None:
    _, body = encoded(sql.BOOLEAN, [True, False, False, True, False, False, False, False, True],
                      nullable=False)  # fmt: skip
    assert body.hex() == "0901"


def test_a_list_of_maps() -> None:
    kind = array(row([("a", sql.INTEGER), ("b", sql.VARCHAR)]))
    (field,), body = encoded(kind, [[{"a": 1, "b": "x"}, {"a": None, "b": "yz"}], []])
    assert field.major_type.minor_type == v.MAP
    assert field.major_type.mode == v.REPEATED
    assert [part.name_part.name for part in field.child] == ["$offsets$", "a", "b"]
    assert body.hex() == (
        "000000000200000002000000" + "0100" + "0100000000000000"
        "0101" + "000000000100000003000000" + "78797a"
    )


# --- every type -------------------------------------------------------------------------------

MOMENT = datetime.fromisoformat("2024-02-29T23:59:58.987")
BEFORE_1970 = datetime.fromisoformat("1969-12-31T23:59:59.999999")
ID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")

EVERY_TYPE: list[tuple[SqlType, list[Any], list[Any]]] = [
    (sql.BOOLEAN, [True, False], [True, False]),
    (sql.TINYINT, [-128, 127], [-128, 127]),
    (sql.SMALLINT, [-(2**15), 2**15 - 1], [-(2**15), 2**15 - 1]),
    (sql.INTEGER, [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    (sql.BIGINT, [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    (sql.REAL, [1.5, -0.25], [1.5, -0.25]),
    (sql.DOUBLE, [1e300, float("inf")], [1e300, float("inf")]),
    (decimal(5, 2), [Decimal("-123.45"), Decimal("0.01")], [Decimal("-123.45"), Decimal("0.01")]),
    (decimal(38, 10), [Decimal("-1E-10"), Decimal(7)], [Decimal("-1E-10"), Decimal(7)]),
    (sql.VARCHAR, ["", "日本語"], ["", "日本語"]),
    (char(3), ["ab", "c"], ["ab", "c"]),
    (varchar(9), ["ab", "c"], ["ab", "c"]),
    (sql.BYTEA, [b"", b"\x00\xff"], [b"", b"\x00\xff"]),
    (sql.DATE, [date(1, 1, 1), date(9999, 12, 31)], [date(1, 1, 1), date(9999, 12, 31)]),
    (
        sql.TIME,
        [time(0, 0), time(23, 59, 59, 999_999)],
        [time(0, 0), time(23, 59, 59, 999_000)],
    ),
    (
        sql.TIMESTAMP,
        [MOMENT, BEFORE_1970],
        [MOMENT, BEFORE_1970.replace(microsecond=999_000)],
    ),
    (sql.TIMESTAMPTZ, [MOMENT.replace(tzinfo=UTC)], [MOMENT]),
    (
        sql.INTERVAL,
        [pa.MonthDayNano([14, -3, 5_999_999]), pa.MonthDayNano([-1, 0, -5_999_999])],
        [(14, -3, 5), (-1, 0, -5)],
    ),
    (sql.UUID, [ID.bytes], [str(ID)]),
    (sql.JSON, ['{"a":[1,null]}', "3"], ['{"a":[1,null]}', "3"]),
    (array(sql.VARCHAR), [["a", ""], []], [["a", ""], []]),
    (array(decimal(4, 1)), [[Decimal("1.5")], []], [[Decimal("1.5")], []]),
    (
        row([("x", sql.BIGINT), ("l", array(sql.DATE))]),
        [{"x": 1, "l": [date(2020, 1, 1)]}, {"x": None, "l": []}],
        [{"x": 1, "l": [date(2020, 1, 1)]}, {"x": None, "l": []}],
    ),
    (
        array(row([("r", row([("s", sql.VARCHAR)]))])),
        [[{"r": {"s": "q"}}], [], [{"r": {"s": None}}, {"r": {"s": "t"}}]],
        [[{"r": {"s": "q"}}], [], [{"r": {"s": None}}, {"r": {"s": "t"}}]],
    ),
]


@pytest.mark.parametrize(
    ("kind", "values", "expected"), EVERY_TYPE, ids=[str(case[0]) for case in EVERY_TYPE]
)
def test_every_type_comes_back(kind: SqlType, values: list[Any], expected: list[Any]) -> None:
    assert back(kind, values, nullable=False) == expected
    assert back(kind, values) == expected
    assert back(kind, made(kind, values).slice(1)) == expected[1:]
    assert back(kind, made(kind, values).slice(1), nullable=False) == expected[1:]
    if not kind.is_nested:
        with_null = [values[0], None, *values[1:]]
        assert back(kind, with_null) == [expected[0], None, *expected[1:]]
        assert back(kind, made(kind, with_null).slice(1)) == [None, *expected[1:]]
        assert back(kind, [None, None]) == [None, None]


@pytest.mark.parametrize("kind", [case[0] for case in EVERY_TYPE], ids=str)
@pytest.mark.parametrize("nullable", [True, False])
def test_an_empty_batch_has_its_columns_and_no_bytes(kind: SqlType, nullable: bool) -> None:
    fields, body = encoded(kind, [], nullable=nullable)
    assert body == b""
    assert reader.read_batch(fields, body) == {"c": []}
    fields, body = encoded(kind, made(kind, [None, None]).slice(1, 0), nullable=nullable)
    assert body == b""


def test_null_arrays_are_empty_and_null_rows_hold_nulls() -> None:
    kind = row([("a", sql.INTEGER), ("l", array(sql.INTEGER))])
    assert back(kind, [None, {"a": 1, "l": None}]) == [{"a": None, "l": []}, {"a": 1, "l": []}]
    assert back(array(kind), [None, [None]]) == [[], [{"a": None, "l": []}]]


def test_what_null_hides_is_not_sent() -> None:
    hidden = pa.Array.from_buffers(
        pa.list_(pa.int32()),
        2,
        [pa.py_buffer(b"\x02"), pa.py_buffer(bytes([0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]))],
        children=[pa.array([7, 8, 9], pa.int32())],
    )
    assert back(array(sql.INTEGER), hidden) == [[], [9]]
    secret = pa.Array.from_buffers(pa.int32(), 1, [pa.py_buffer(b"\x00"), pa.py_buffer(b"abcd")])
    assert b"abcd" not in encoded(sql.INTEGER, secret)[1]


def test_a_null_in_a_list_is_refused() -> None:
    with pytest.raises(NotSupported, match='an array in column "c" has a NULL element'):
        encoded(array(sql.INTEGER), [[1, None]])
    assert back(array(sql.INTEGER), [[1, None]], complex_types=False) == ["[1, null]"]


def test_without_complex_types_nested_values_are_json() -> None:
    kind = array(row([("d", sql.DATE), ("n", decimal(4, 2)), ("u", sql.UUID), ("j", sql.JSON)]))
    value = {"d": date(2020, 1, 2), "n": Decimal("1.50"), "u": ID.bytes, "j": '{"k":1}'}
    values = pa.array(
        [[value], None], pa.list_(pa.struct([(f.name, _stored(f.type)) for f in kind_fields(kind)]))
    ).cast(external_type(kind))
    texts = back(kind, values, complex_types=False)
    assert json.loads(texts[0]) == [{"d": "2020-01-02", "n": "1.50", "u": str(ID), "j": {"k": 1}}]
    assert texts[1] is None


def kind_fields(kind: SqlType) -> list[pa.Field]:
    return list(external_type(kind).value_type)


def _stored(arrow: pa.DataType) -> pa.DataType:
    return arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow


def test_long_intervals_carry_their_hours_into_days() -> None:
    hours = 1000 * 3600 * 10**9
    assert back(sql.INTERVAL, [pa.MonthDayNano([0, 1, hours])]) == [(0, 42, 16 * 3600 * 1000)]
    with pytest.raises(IntervalOverflow):
        encoded(sql.INTERVAL, [pa.MonthDayNano([0, 2**31 - 1, hours])])


def test_an_interval_is_nullable_everywhere_but_in_a_list() -> None:
    """The JDBC driver gives null for those of a required vector."""
    values = [pa.MonthDayNano([1, 2, 3_000_000])] * 3
    (field,), body = encoded(sql.INTERVAL, values, nullable=False)
    assert field.major_type.mode == v.OPTIONAL
    assert body.hex() == "01" * 3 + ("01000000" + "02000000" + "03000000" + "00000000") * 3


def test_names_are_distinct_without_regard_to_case() -> None:
    assert distinct_names(["a", "A", "a", "a0", ""]) == ["a", "A0", "a1", "a00", ""]
    assert distinct_names(["a0", "a", "a"]) == ["a0", "a", "a1"]


def test_a_large_batch() -> None:
    texts = [None if i % 7 == 0 else "x" * (i % 13) for i in range(100_000)]
    assert back(sql.VARCHAR, texts) == texts
    assert back(array(sql.INTEGER), [[i] * (i % 3) for i in range(5000)])[4998:] == [[], [4999]]


# --- random round trips -----------------------------------------------------------------------

SCALARS: list[tuple[SqlType, st.SearchStrategy[Any]]] = [
    (sql.BOOLEAN, st.booleans()),
    (sql.TINYINT, st.integers(-128, 127)),
    (sql.BIGINT, st.integers(-(2**63), 2**63 - 1)),
    (sql.DOUBLE, st.floats(allow_nan=False)),
    (decimal(38, 6), st.decimals(-(10**31), 10**31, places=6)),
    (decimal(9, 0), st.integers(-(10**9) + 1, 10**9 - 1).map(Decimal)),
    (sql.VARCHAR, st.text(st.characters(exclude_categories=["Cs"]))),
    (sql.BYTEA, st.binary()),
    (sql.DATE, st.dates()),
    (
        sql.TIMESTAMP,
        st.datetimes().map(lambda m: m.replace(microsecond=m.microsecond // 1000 * 1000)),
    ),
]


@st.composite
def columns(draw: Any, depth: int = 2) -> tuple[SqlType, st.SearchStrategy[Any]]:
    shape = draw(st.sampled_from(["scalar", "scalar", "list", "row"]))
    if depth == 0 or shape == "scalar":
        kind, values = draw(st.sampled_from(SCALARS))
        return kind, st.none() | values
    inner = [draw(columns(depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    if shape == "list":
        kind, values = inner[0]
        if kind.kind is sql.Kind.ARRAY:
            return kind, values
        some = values.filter(lambda x: x is not None)
        return array(kind), st.lists(some, max_size=4)
    fields = [(f"f{i}", kind) for i, (kind, _) in enumerate(inner)]
    return row(fields), st.fixed_dictionaries({f"f{i}": s for i, (_, s) in enumerate(inner)})


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_columns_come_back(data: st.DataObject) -> None:
    kind, values = data.draw(columns())
    rows = data.draw(st.lists(values, max_size=12))
    first = data.draw(st.integers(0, len(rows)))
    count = data.draw(st.integers(0, len(rows) - first))
    assert back(kind, made(kind, rows).slice(first, count)) == rows[first : first + count]
