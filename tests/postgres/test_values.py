"""Values in text and binary form, beside psycopg's own codecs: what one side writes, the other
reads as the same value."""

from __future__ import annotations

import datetime as dt
import struct
import uuid

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from remuda.catalog.pg_types import type_oid
from remuda.datatypes import sql
from remuda.datatypes.sql import array, row
from remuda.datatypes.times import intervals
from remuda.datatypes.values import from_physical, to_physical, values_to_array
from remuda.errors import (
    DataError,
    InvalidByteSequence,
    InvalidText,
    NotSupported,
    NumericOverflow,
    UndefinedType,
)
from remuda.postgres.numeric_digits import decode_numeric, encode_numeric
from remuda.postgres.parameters import declared_type, decode
from remuda.postgres.rows import RowForm, value_encoder

TEXT, BINARY = 0, 1
EARLIEST, LATEST = (dt.datetime.fromisoformat(text) for text in ("0001-01-03", "9999-12-29"))
MOMENTS = st.datetimes(EARLIEST, LATEST)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
WHOLE = {
    sql.SMALLINT: st.integers(-(2**15), 2**15 - 1),
    sql.INTEGER: st.integers(-(2**31), 2**31 - 1),
    sql.BIGINT: st.integers(-(2**63), 2**63 - 1),
}
OTHERS = {
    sql.BOOLEAN: st.booleans(),
    sql.DOUBLE: st.floats(),
    sql.VARCHAR: TEXTS,
    sql.BYTEA: st.binary(max_size=30),
    sql.DATE: st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    sql.TIME: st.times(),
    sql.TIMESTAMP: MOMENTS,
    sql.TIMESTAMPTZ: MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    sql.UUID: st.uuids(),
    sql.decimal(38, 9): st.decimals(
        -(10**28), 10**28, places=9, allow_nan=False, allow_infinity=False
    ),
    sql.decimal(12, 3): st.decimals(-(10**8), 10**8, places=3),
}
VALUES = WHOLE | OTHERS
ARRAYS = {
    array(t): st.lists(st.none() | values, max_size=6)
    for t, values in VALUES.items()
    if t.kind is not sql.Kind.DECIMAL
}


def same(left, right):
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right or (left != left and right != right)


@pytest.mark.parametrize("form", [TEXT, BINARY])
@pytest.mark.parametrize("sql_type", [*VALUES, *ARRAYS], ids=str)
def test_psycopg_reads_what_is_written(sql_type, form):
    loader = Transformer().get_loader(type_oid(sql_type), Format(form))

    @settings(max_examples=40, deadline=None)
    @given((VALUES | ARRAYS)[sql_type])
    def run(value):
        data = value_encoder(sql_type, form)(to_physical(value, sql_type))
        assert same(loader.load(data), value)

    run()


AS_TEXT = [t for t in (*VALUES, *ARRAYS) if sql.BYTEA not in (t, t.element)]
"""Without a server psycopg writes BYTEA as text for the oldest ones, with twice the backslashes."""


@pytest.mark.parametrize(
    ("sql_type", "form"),
    [
        *[(t, PyFormat.TEXT) for t in AS_TEXT],
        *[(t, PyFormat.BINARY) for t in (*VALUES, *ARRAYS)],
    ],
    ids=str,
)
def test_what_psycopg_writes_is_read(sql_type, form):
    @settings(max_examples=40, deadline=None)
    @given((VALUES | ARRAYS)[sql_type])
    def run(value):
        transformer = Transformer()
        dumper = transformer.get_dumper(value, form)
        data = dumper.dump(value)
        found = decode(
            None if data is None else bytes(data), int(dumper.format), dumper.oid, sql_type
        )
        # By the type that the value has by itself: psycopg takes the smallest integer type.
        assert same(from_physical(found.value, found.type), value), found

    run()


INTERVALS = st.builds(
    intervals.pack,
    st.integers(-(2**20), 2**20),
    st.integers(-(2**20), 2**20),
    st.integers(-(2**50), 2**50),
)


@given(INTERVALS)
@settings(max_examples=100, deadline=None)
def test_an_interval_comes_back_in_both_forms(value):
    for form in (TEXT, BINARY):
        data = value_encoder(sql.INTERVAL, form)(value)
        assert decode(data, form, 1186, sql.INTERVAL).value == value


@given(st.integers(-(10**38), 10**38), st.integers(0, 38))
@example(0, 0)
@example(0, 5)
@example(10**8, 4)
@example(-1, 38)
@settings(max_examples=300, deadline=None)
def test_a_numeric_keeps_value_and_digits(unscaled, scale):
    found = decode_numeric(encode_numeric(unscaled, scale))
    digits = tuple(map(int, str(abs(unscaled))))
    assert found.as_tuple() == (int(unscaled < 0), digits, -scale)


def test_an_interval_has_the_layout_of_postgresql():
    data = value_encoder(sql.INTERVAL, BINARY)(intervals.pack(14, -3, 5))
    assert data == struct.pack("!qii", 5, -3, 14)


# --- many rows ---------------------------------------------------------------------------------

EDGES = {
    sql.BOOLEAN: [True, False, None],
    sql.TINYINT: [-128, 127, None],
    sql.SMALLINT: [-5, None],
    sql.INTEGER: [-(2**31), 2**31 - 1, 0],
    sql.BIGINT: [-(2**63), 2**63 - 1, None],
    sql.REAL: [1.5, None, float("nan")],
    sql.DOUBLE: [0.1, 1e20, 1e-7, -0.0, float("inf"), 123456789.0, 1e15, 1e14, 1e-4, None],
    sql.decimal(10, 2): [0, -5, 123456, None, -99],
    sql.decimal(30, 3): [10**25 + 7, None, -1],
    sql.decimal(5, 0): [12, -3],
    sql.computed_decimal(16, 4, 16): [10**16, 10**15, None, 3],
    sql.VARCHAR: ["é", "", None, "abc"],
    sql.JSON: ['{"a": 1}', None],
    sql.BYTEA: [b"\0\xff", b"", None],
    sql.DATE: [0, -719_163, None, 2_932_897, 100],
    sql.TIME: [0, 86_399_999_999, 3_600_000_000, 86_400_000_000, None],
    sql.TIMESTAMP: [0, 1, -1, 10**15 + 500_000, None, -(10**17)],
    sql.TIMESTAMPTZ: [0, 1_500_000, None, -(10**17)],
    sql.INTERVAL: [intervals.pack(14, -3, 5), None],
    sql.UUID: [uuid.UUID(int=1).bytes, None],
    array(sql.INTEGER): [(1, None, 3), (), None],
    array(sql.VARCHAR): [("a b", None, 'x,"y"')],
    row([("a", sql.INTEGER), ("b", sql.VARCHAR)]): [(1, "x y"), (None, None), None],
}


@pytest.mark.parametrize("form", [TEXT, BINARY])
@pytest.mark.parametrize("sql_type", list(EDGES), ids=str)
def test_a_batch_is_written_as_its_rows_one_by_one(sql_type, form):
    values = EDGES[sql_type]
    shape = RowForm([sql_type, sql.INTEGER], [form, BINARY])
    column = values_to_array(values, sql_type)
    numbers = values_to_array(list(range(len(values))), sql.INTEGER)
    expected = [shape.row((value, number)) for number, value in enumerate(values)]
    assert bytes(shape.rows([column, numbers], len(values))) == b"".join(expected)
    rest = shape.rows([column.slice(1), numbers.slice(1)], len(values) - 1)
    assert bytes(rest) == b"".join(expected[1:])


def test_a_row_without_columns_is_a_message():
    assert RowForm([], []).row(()) == b"D\0\0\0\x06\0\0"
    assert bytes(RowForm([], []).rows([], 2)) == b"D\0\0\0\x06\0\0" * 2


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "form", "oid", "wanted", "error"),
    [
        (b"\0\0", BINARY, 23, sql.INTEGER, InvalidText),
        (b"x", TEXT, 23, sql.INTEGER, InvalidText),
        (b"\xff", TEXT, 25, sql.VARCHAR, InvalidByteSequence),
        (b"1.5.5", TEXT, 1700, sql.decimal(5, 2), InvalidText),
        (struct.pack("!HhHH", 0, 0, 0xC000, 0), BINARY, 1700, sql.decimal(5, 2), NumericOverflow),
        (struct.pack("!HhHH", 1, 0, 0, 0), BINARY, 1700, sql.decimal(5, 2), InvalidText),
        (struct.pack("!iiIiiii", 2, 0, 23, 1, 1, 1, 1), BINARY, 1007, array(sql.INTEGER),
         NotSupported),
        (struct.pack("!i", 2**31 - 1), BINARY, 1082, sql.DATE, DataError),
        (b"12", BINARY, 2950, sql.UUID, InvalidText),
        (b"1", TEXT, 869, sql.VARCHAR, UndefinedType),
    ],
)  # fmt: skip
def test_a_wrong_value_gets_an_error_of_its_kind(data, form, oid, wanted, error):
    with pytest.raises(error):
        decode(data, form, oid, wanted)


def test_types_that_clients_leave_out_are_the_servers_choice():
    assert declared_type(0) is None
    assert declared_type(705) is None
    assert decode(b"7", TEXT, 0, sql.BIGINT).value == 7
    assert decode(struct.pack("!q", 7), BINARY, 0, sql.BIGINT).value == 7


@pytest.mark.parametrize(
    "call",
    [
        "pg_sleep(0)",
        "pg_notify('nobody', '')",
        "pg_advisory_lock(4711)",
        "pg_advisory_unlock_all()",
    ],
)
def test_functions_that_only_act_give_void(connection, call):
    """Drivers write them in FROM, too."""
    name = call.partition("(")[0]
    for text in (f"SELECT {call}", f"SELECT * FROM {call}", f"SELECT * FROM {call} AS {name}"):
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            cursor.execute(text)
            assert [(each.name, each.type_code) for each in cursor.description] == [(name, 2278)]
            assert cursor.pgresult.get_value(0, 0) == b""


def test_what_acts_in_from_stands_alone_there(connection):
    assert connection.execute("SELECT * FROM pg_try_advisory_lock(4712)").fetchone() == (True,)
    assert connection.execute("SELECT * FROM pg_try_advisory_lock(4713) AS got").description[
        0
    ].name == "got"  # fmt: skip
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="pg_sleep cannot stand here"):
        connection.execute("SELECT * FROM pg_sleep(0), pg_sleep(0)")
