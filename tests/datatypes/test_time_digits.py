"""TIMESTAMP(n), TIME(n) and INTERVAL with fields: what a column of such a type keeps."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes.arrow import engine_schema, to_engine
from remuda.datatypes.conformance import RowCheck, check_batch
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import (
    DATE,
    INTERVAL,
    INTERVAL_FIELDS,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    array,
    is_span,
    restricted,
    unrestricted,
)
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.times.intervals import Interval, pack, unpack
from remuda.datatypes.times.time_digits import fit_array, fit_of, keeps_all
from remuda.datatypes.values import from_physical, to_physical, values_to_array
from remuda.datatypes.widening import widening
from remuda.errors import DataError, DatetimeOverflow, ProtocolError
from remuda.rpc import type_codec
from remuda.rpc.messages import common_pb2

SPANS = [
    span
    for span in [(), *((a,) for a in INTERVAL_FIELDS)]
    + [(a, b) for a in INTERVAL_FIELDS for b in INTERVAL_FIELDS]
    if is_span(span)
]
TYPES = [
    *(restricted(t, n) for t in (TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL) for n in range(7)),
    *(restricted(INTERVAL, None, span) for span in SPANS),
    *(restricted(INTERVAL, 2, span) for span in SPANS if span and span[-1] == "second"),
]
MICROS = st.integers(-(2**55), 2**55)


def physical(t):
    if t.kind is INTERVAL.kind:
        return st.builds(pack, st.integers(-1000, 1000), st.integers(-1000, 1000), MICROS)
    return MICROS if t.kind is not TIME.kind else st.integers(0, 86_399_000_000)


def test_there_are_the_thirteen_spans_of_the_standard_and_none():
    assert len(SPANS) == 14


@pytest.mark.parametrize("t", TYPES, ids=str)
@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_values_and_arrays_are_kept_alike_and_twice_is_once(t, data):
    values = data.draw(st.lists(st.none() | physical(t), max_size=5))
    fit = fit_of(t)
    kept = values if fit is None else [None if v is None else fit(v) for v in values]
    found = fit_array(values_to_array(values, t), t)
    assert found.equals(values_to_array(kept, t))
    assert fit_array(found, t).equals(found)
    nested = values_to_array([tuple(values), None], array(t))
    assert fit_array(nested, array(t)).equals(values_to_array([tuple(kept), None], array(t)))


@pytest.mark.parametrize(
    ("text", "t", "kept"),
    [
        ("2024-01-01 10:00:00.5", restricted(TIMESTAMP, 0), "2024-01-01 10:00:01"),
        ("1999-01-01 10:00:00.5", restricted(TIMESTAMP, 0), "1999-01-01 10:00:00"),
        ("1999-12-31 23:59:59.995", restricted(TIMESTAMP, 2), "1999-12-31 23:59:59.99"),
        ("10:00:00.05", restricted(TIME, 1), "10:00:00.1"),
        ("2024-01-01 10:00:00.1234567", restricted(TIMESTAMP, 6), "2024-01-01 10:00:00.123457"),
        ("-1.235 s", restricted(INTERVAL, 2), "-1.24 s"),
        ("2", restricted(INTERVAL, None, ("year",)), "2 years"),
        ("1 year 15 mons 3 days", restricted(INTERVAL, None, ("year",)), "2 years"),
        ("1 mon 2 days 3:04:05", restricted(INTERVAL, None, ("day", "hour")), "1 mon 2 days 3:00"),
        ("1 mon 2 days 3:04:05", restricted(INTERVAL, None, ("month",)), "1 mon"),
        ("-3:04:05.678", restricted(INTERVAL, 1, ("hour", "second")), "-3:04:05.7"),
    ],
)
def test_text_is_rounded_as_in_postgresql(text, t, kept):
    bare = unrestricted(t)
    assert parse_text(text, t) == parse_text(kept, bare)
    whole = from_physical(parse_text(text, bare), bare)
    if t.span != ("year",):  # gives a bare number of a text its unit
        assert to_physical(whole, t) == parse_text(kept, bare)
        assert to_engine(pa.array([to_arrow(whole)]), t).equals(
            values_to_array([parse_text(kept, bare)], t)
        )


def to_arrow(value):
    if isinstance(value, Interval):
        months, days, micros = value.months, value.days, value.microseconds
        return pa.MonthDayNano([months, days, micros * 1000])
    return value


def test_what_is_rounded_out_of_range():
    with pytest.raises(DatetimeOverflow, match="24:00:00"):
        parse_text("23:59:59.9", restricted(TIME, 0))
    with pytest.raises(DatetimeOverflow, match="24:00:00"):
        to_engine(pa.array([None, dt.time(23, 59, 59, 900_000)]), restricted(TIME, 0))
    last = 2**63 - 1
    for kept in (lambda t: fit_of(t)(last), lambda t: fit_array(values_to_array([last], t), t)):
        with pytest.raises(DatetimeOverflow, match="out of range"):
            kept(restricted(TIMESTAMP, 0))


@pytest.mark.parametrize("t", TYPES, ids=str)
def test_names_equality_and_the_wire(t):
    bare = unrestricted(t)
    assert t == bare and hash(t) == hash(bare)
    assert not bare.is_restricted
    assert str(type_codec.decode_type(type_codec.encode_type(array(t)))) == f"{t}[]"
    assert Column("a", t) == Column("a", type_codec.decode_type(type_codec.encode_type(t)))
    if str(t) != str(bare):
        assert Column("a", t) != Column("a", bare)
        assert type_codec.encode_types((t,)) == type_codec.encode_types((bare,))


def test_a_release_without_such_types_refuses_them():
    found = type_codec.encode_type(restricted(TIMESTAMPTZ, 3))
    assert found.kind == "TIMESTAMP(3) WITH TIME ZONE"  # no name of a Kind


@pytest.mark.parametrize(
    "message",
    [
        common_pb2.SqlType(kind="x", restricts="TIMESTAMP", fraction=7),
        common_pb2.SqlType(kind="x", restricts="DATE", fraction=1),
        common_pb2.SqlType(kind="x", restricts="TIMESTAMP", span=["year"]),
        common_pb2.SqlType(kind="x", restricts="INTERVAL", span=["day", "year"]),
        common_pb2.SqlType(kind="x", restricts="INTERVAL", span=["week"]),
        common_pb2.SqlType(kind="x", restricts="x"),
    ],
)
def test_damaged_types_are_protocol_errors(message):
    with pytest.raises(ProtocolError):
        type_codec.decode_type(message)


@pytest.mark.parametrize("stored", TYPES, ids=str)
@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_columns_widen_only_if_every_value_stays(stored, data):
    wanted = data.draw(st.sampled_from([t for t in TYPES if t.kind is stored.kind]))
    fit, keep = fit_of(stored), fit_of(wanted)
    value = data.draw(physical(stored))
    value = value if fit is None else fit(value)
    if keeps_all(stored, wanted):
        assert widening(stored, wanted) is not None
        assert keep is None or keep(value) == value
    else:
        assert widening(stored, wanted) is None


def test_what_does_not_widen():
    assert widening(TIMESTAMP, restricted(TIMESTAMP, 5)) is None
    assert widening(restricted(TIMESTAMP, 3), restricted(TIMESTAMP, 2)) is None
    assert widening(DATE, restricted(TIMESTAMP, 0)) is None
    assert widening(INTERVAL, restricted(INTERVAL, None, ("year", "month"))) is None
    assert widening(array(TIMESTAMP), array(restricted(TIMESTAMP, 0))) is None
    assert widening(restricted(TIMESTAMP, 3), TIMESTAMP) is not None
    year = restricted(INTERVAL, None, ("year",))
    assert widening(year, restricted(INTERVAL, None, ("day", "hour"))) is not None
    assert widening(year, restricted(INTERVAL, 0)) is not None


SCHEMA = MapSchema("m", (Column("k", TIMESTAMP), Column("v", restricted(INTERVAL, 3))), ("k",), ())


def test_rows_that_were_not_rounded_do_not_reach_the_store():
    check = RowCheck(SCHEMA)
    check.row((0, pack(0, 0, 5000)))
    with pytest.raises(DataError, match=r'"v" has more digits .* INTERVAL\(3\)'):
        check.row((0, pack(0, 0, 5001)))
    batch = pa.RecordBatch.from_arrays(
        [values_to_array([0], TIMESTAMP), values_to_array([pack(0, 0, 1)], INTERVAL)],
        schema=engine_schema(SCHEMA),
    )
    with pytest.raises(DataError, match="more digits"):
        check_batch(batch, SCHEMA)
    assert unpack(pack(0, 0, 1)) == (0, 0, 1)
