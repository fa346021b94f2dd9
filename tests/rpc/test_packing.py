"""Packed rows: bytes and back, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.datatypes import sql
from remuda.datatypes.sql import SqlType
from remuda.errors import ProtocolError
from remuda.rpc.packing import RowPacker, packer

LONG = 10**38 - 1
VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    sql.NULL: st.none(),
    sql.BOOLEAN: st.booleans(),
    sql.TINYINT: st.integers(-(2**7), 2**7 - 1),
    sql.SMALLINT: st.integers(-(2**15), 2**15 - 1),
    sql.INTEGER: st.integers(-(2**31), 2**31 - 1),
    sql.BIGINT: st.integers(-(2**63), 2**63 - 1),
    sql.REAL: st.floats(width=32, allow_nan=False),
    sql.DOUBLE: st.floats(allow_nan=False),
    sql.decimal(18, 4): st.integers(-(10**18) + 1, 10**18 - 1),
    sql.decimal(38, 4): st.integers(-LONG, LONG),
    sql.VARCHAR: st.text(st.characters(exclude_categories=["Cs"])),
    sql.char(3): st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    sql.BYTEA: st.binary(),
    sql.DATE: st.integers(-(2**31), 2**31 - 1),
    sql.TIME: st.integers(0, 86_399_999_999),
    sql.TIMESTAMP: st.integers(-(2**63), 2**63 - 1),
    sql.TIMESTAMPTZ: st.integers(-(2**63), 2**63 - 1),
    sql.UUID: st.binary(min_size=16, max_size=16),
    sql.INTERVAL: st.binary(min_size=16, max_size=16),
    sql.JSON: st.text(st.characters(exclude_categories=["Cs"])),
    sql.array(sql.INTEGER): st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)).map(tuple),
    sql.array(sql.VARCHAR): st.lists(st.none() | st.just("é") | st.just("")).map(tuple),
    sql.array(sql.decimal(38, 4)): st.lists(st.integers(-LONG, LONG)).map(tuple),
    sql.row([("a", sql.BIGINT), ("b", sql.array(sql.BOOLEAN))]): st.tuples(
        st.none() | st.integers(-5, 5), st.none() | st.lists(st.booleans()).map(tuple)
    ),
}


@st.composite
def typed_rows(draw: st.DrawFn) -> tuple[tuple[SqlType, ...], tuple[Any, ...]]:
    types = tuple(draw(st.lists(st.sampled_from(list(VALUES)), max_size=20)))
    row = tuple(draw(st.none() | VALUES[sql_type]) for sql_type in types)
    return types, row


@given(typed_rows())
def test_round_trip(found: tuple[tuple[SqlType, ...], tuple[Any, ...]]) -> None:
    types, row = found
    made = RowPacker(types)
    again = made.unpack(made.pack(row))
    assert again == row
    assert [type(value) for value in again] == [type(value) for value in row]


def test_layout() -> None:
    types = (sql.BIGINT, sql.VARCHAR, sql.INTEGER, sql.decimal(38, 0))
    assert packer(types).pack((1, "hé", None, -2)) == (
        b"\x04"  # the third is NULL
        b"\x01\x00\x00\x00\x00\x00\x00\x00"
        b"\x03\x00\x00\x00"
        b"\x00\x00\x00\x00"
        b"\x01\x00\x00\x00"
        b"h\xc3\xa9"
        b"\xfe"
    )


@pytest.mark.parametrize(
    "row",
    [(), (1,), (1, "a", 2), ("a", "a"), (2**63, "a"), (1, 5), (1, b"a"), (None,), (1, "\ud800")],
)
def test_other_rows_are_refused(row: tuple[Any, ...]) -> None:
    with pytest.raises(ProtocolError):
        packer((sql.BIGINT, sql.VARCHAR)).pack(row)


@given(st.binary(max_size=40))
def test_other_bytes_are_refused_or_are_a_row(data: bytes) -> None:
    made = packer((sql.BIGINT, sql.VARCHAR, sql.decimal(38, 2)))
    try:
        row = made.unpack(data)
    except ProtocolError:
        return
    assert made.unpack(made.pack(row)) == row


def test_truncated_and_extended_bytes_are_refused() -> None:
    for types, row in (((sql.BIGINT,), (5,)), ((sql.BIGINT, sql.VARCHAR), (5, "abc"))):
        data = packer(types).pack(row)
        for wrong in (data[:-1], data + b"x", b"", b"\xf0" + data[1:]):
            with pytest.raises(ProtocolError):
                packer(types).unpack(wrong)
    with pytest.raises(ProtocolError):
        packer((sql.VARCHAR,)).unpack(b"\x00\x01\x00\x00\x00\xff")
