"""Plans as bytes: what goes in comes out, and nothing else is accepted."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.datatypes.sql import BIGINT, BOOLEAN, DOUBLE, VARCHAR, decimal
from remuda.errors import InternalError, ProtocolError
from remuda.plan.codec import decode, decode_plan, encode, encode_plan
from remuda.plan.expression import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    SortKey,
)
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import (
    SINGLETON,
    Fragment,
    MapDependency,
    PhysicalPlan,
    Root,
    Site,
    Traits,
    ValuesScan,
)

types = st.sampled_from([BIGINT, BOOLEAN, DOUBLE, VARCHAR, decimal(38, 10)])
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**38), 10**38),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(max_size=20),
)
leaves: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Literal, types, values),
    st.builds(ColumnRef, types, st.integers(0, 100), st.text(max_size=5)),
    st.builds(Parameter, types, st.integers(0, 5)),
)


def compounds(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    some = st.lists(parts, min_size=1, max_size=3).map(tuple)
    branches = st.lists(st.tuples(parts, parts), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        st.builds(Call, types, st.sampled_from(["+", "and", "like"]), some),
        st.builds(Cast, types, parts),
        st.builds(Case, types, branches, parts),
        st.builds(InList, types, parts, some),
    )


expressions = st.recursive(leaves, compounds, max_leaves=12)


@given(expressions)
def test_expressions_round_trip(expression: Expression) -> None:
    again = decode(encode(expression))
    assert again == expression
    assert repr(again) == repr(expression), "1, 1.0, True and -0.0 stay what they are"


@given(st.lists(values, max_size=4))
def test_plans_round_trip(row: list[object]) -> None:
    columns = tuple(OutputColumn(i, f"c{i}", BIGINT) for i in range(len(row)))
    traits = Traits(SINGLETON, (SortKey(1, True, True),), 1.5, math.inf)
    root = Root(columns, traits, ValuesScan(columns, traits, (tuple(row),)))  # type: ignore[arg-type]
    plan = PhysicalPlan(
        (Fragment(0, root, Site.INITIATOR),),
        columns,
        ("BIGINT",),
        (MapDependency("m", 1, 2),),
        ("a rule",),
    )
    assert repr(decode_plan(encode_plan(plan))) == repr(plan)


def test_nan_and_aggregates() -> None:
    call = AggregateCall("sum", Literal(DOUBLE, float("nan")), DOUBLE, True, None)
    assert repr(decode(encode(call))) == repr(call)


def test_fields_with_their_defaults_are_left_out_at_the_end() -> None:
    """A field that a later release appends does not stand in plans that do not use it."""
    column = ColumnRef(BIGINT, 0, "a")
    plain, used = SortKey(column), SortKey(column, False, True)
    node = json.loads(encode(plain))[1][-1]
    assert (node[0], len(node)) == ("SortKey", 2)
    assert len(json.loads(encode(used))[1][-1]) == 4
    assert (decode(encode(plain)), decode(encode(used))) == (plain, used)
    version, nodes, root = json.loads(encode(plain))
    for more in ([False], [False, False]):  # as a release writes that leaves none out
        written = json.dumps([version, [*nodes[:-1], node + more], root])
        assert decode(written.encode()) == plain
    with pytest.raises(ProtocolError, match="SortKey has 3 fields, found 4"):
        decode(json.dumps([version, [*nodes[:-1], [*node, False, False, 1]], root]).encode())


def test_types_are_written_once() -> None:
    many = Call(BIGINT, "+", tuple(ColumnRef(BIGINT, i, "x") for i in range(100)))
    assert encode(many).count(b"SqlType") == 1


def test_unknown_types_are_refused() -> None:
    with pytest.raises(InternalError, match="object is not a plan value"):
        encode((object(),))
    with pytest.raises(InternalError):
        encode({"a": 1})


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"\xff",
        b"{}",
        b"[1]",
        b"[99,[],1]",
        b'[1,[["os.system","x"]],[0]]',
        b'[1,[["Kind","NOPE"]],[0]]',
        b'[1,[["Literal",1]],[0]]',
        b"[1,[],[0]]",
        b"[1,[],[true]]",
        b'[1,[],["b","*"]]',
        b'[1,[],["f","1"]]',
        b'[1,[],{"a":1}]',
        b"[" * 5000,
    ],
)
def test_anything_else_is_refused(document: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(document)


def test_a_plan_is_expected() -> None:
    with pytest.raises(ProtocolError, match="expected a plan"):
        decode_plan(json.dumps([1, [], 5]).encode())
