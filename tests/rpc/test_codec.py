"""Values, schemas, views and errors survive the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda import errors
from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema, ValueShape
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import ErrorReport, ErrorSubject, Position, ProtocolError, RemudaError
from remuda.rpc import codec, type_codec
from remuda.rpc.messages import common_pb2, user_pb2

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(10**38), 10**38),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=("Cs",))),
    st.binary(),
)
values = scalars | st.lists(scalars, max_size=3).map(tuple)


@given(st.lists(values, max_size=10))
def test_rows_round_trip_with_their_exact_types(row):
    message = common_pb2.Row()
    codec.fill_row(message, row)
    got = codec.decode_row(common_pb2.Row.FromString(message.SerializeToString()))
    assert got == tuple(row)
    assert [type(value) for value in got] == [type(value) for value in row]
    assert codec.decode_values(codec.encode_values(row)) == tuple(row)


def test_only_physical_values_are_encoded():
    with pytest.raises(TypeError, match="complex is not a physical value"):
        codec.encode_value(1j)


@pytest.mark.parametrize(
    "t",
    [
        sql.BIGINT,
        sql.decimal(7, 2),
        sql.decimal(38, 0),
        sql.varchar(),
        sql.varchar(10),
        sql.char(1),
        sql.UUID,
        sql.array(sql.decimal(7, 2)),
        sql.row([("a", sql.array(sql.varchar(3))), ("b", sql.JSON)]),
    ],
)
def test_types_round_trip(t):
    assert type_codec.decode_type(type_codec.encode_type(t)) == t


def test_an_unknown_type_is_a_protocol_error():
    with pytest.raises(ProtocolError, match="POINT"):
        type_codec.decode_type(common_pb2.SqlType(kind="POINT"))


def test_schema_round_trips():
    schema = MapSchema(
        name="trips",
        columns=(
            Column("id", sql.BIGINT, nullable=False),
            Column("zone", sql.varchar(3), nullable=False),
            Column("fare", sql.decimal(9, 2)),
        ),
        key=("id", "zone"),
        partition_by=("zone",),
        replicated=True,
        value_shape=ValueShape.SCALAR,
        map_id=7,
        version=3,
    )
    assert codec.decode_schema(codec.encode_schema(schema)) == schema


def test_a_schema_is_written_and_read_once_and_others_that_are_equal_to_it_too():
    column = Column("k", sql.BIGINT)
    schemas = [
        MapSchema("m", (column,), ("k",), ("k",), oid=oid, key_comment=f"comment {oid}")
        for oid in (20000, 20001)
    ]
    assert schemas[0] == schemas[1]  # OIDs and comments do not count
    for _ in range(2):
        read = [codec.decode_schema(codec.encode_schema(schema)) for schema in schemas]
        assert [(schema.oid, schema.key_comment) for schema in read] == [
            (20000, "comment 20000"),
            (20001, "comment 20001"),
        ]
    misses = codec._encoded.cache_info().misses, codec._decoded.cache_info().misses
    message = codec.encode_schema(schemas[0])
    message.name = "changed"  # a message is the caller's own
    assert codec.decode_schema(codec.encode_schema(schemas[0])) is read[0]
    assert misses == (codec._encoded.cache_info().misses, codec._decoded.cache_info().misses)


def test_view_round_trip():
    members = tuple(MemberInfo(n, f"uuid-{n}", "127.0.0.1", 1, 2, 3) for n in (1, 2))
    view = View(4, members, ((1, 2), (2,), ()) * 90, 7)
    assert codec.decode_view(codec.encode_view(view)) == view


@pytest.mark.parametrize("name", sorted(RemudaError.kinds))
def test_every_error_is_raised_again_as_the_same_class(name):
    error = RemudaError.kinds[name](
        "what",
        detail="why",
        hint="do this",
        member="3",
        position=Position(1, 8, 7, 4),
        subject=ErrorSubject("t", "c", "k"),
    )
    got = codec.decode_error(codec.encode_error(error), "SELECT nope")
    assert type(got) is type(error)
    assert got.to_report() == error.to_report()
    assert "^^^^" in str(got)


def test_an_unknown_or_foreign_error_is_an_internal_error():
    got = codec.decode_error(user_pb2.PBError(message="from Drill", error_type=3))
    assert type(got) is errors.InternalError
    assert got.to_report() == ErrorReport("InternalError", "XX000", "from Drill")
