"""The printers: expressions as SQL, plans as trees, profiles."""

from __future__ import annotations

import pytest

from remuda.datatypes.sql import BIGINT, BOOLEAN, DATE, TIMESTAMP, VARCHAR, SqlType, decimal
from remuda.datatypes.values import PhysicalValue
from remuda.plan.explain.explain import OperatorProfile, explain, quantity
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
    Distribution,
    ExchangeKind,
    Fragment,
    PhysicalPlan,
    Placement,
    Pruning,
    Receive,
    Root,
    Send,
    Site,
    TableScan,
    Traits,
)
from remuda.plan.printing import aggregate_text, expression_text, sort_text, value_text

A = ColumnRef(BIGINT, 1, "a")
B = ColumnRef(BIGINT, 2, "b")


def call(function: str, *arguments: Expression) -> Call:
    return Call(BOOLEAN, function, arguments)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (call("and", call("or", A, B), A), "(a OR b) AND a"),
        (call("-", A, call("-", B, A)), "a - (b - a)"),
        (call("*", call("+", A, B), A), "(a + b) * a"),
        (call("not", call("=", A, B)), "NOT a = b"),
        (call("is_not_null", A), "a IS NOT NULL"),
        (call("like", A, Literal(VARCHAR, "x%"), Literal(VARCHAR, "!")), "a LIKE 'x%' ESCAPE '!'"),
        (call("neg", A), "-a"),
        (call("upper", A), "upper(a)"),
        (Cast(DATE, call("+", A, B)), "(a + b)::DATE"),
        (InList(BOOLEAN, A, tuple(Literal(BIGINT, i) for i in range(3))), "a IN (0, 1, 2)"),
        (Case(BIGINT, ((call("=", A, B), A),), B), "CASE WHEN a = b THEN a ELSE b END"),
        (Parameter(BIGINT, 0), "$1"),
    ],
)
def test_expressions(expression: Expression, text: str) -> None:
    assert expression_text(expression) == text


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (None, BIGINT, "NULL"),
        (True, BOOLEAN, "TRUE"),
        ("it's", VARCHAR, "'it''s'"),
        (-5, decimal(5, 2), "-0.05"),
        (12345, decimal(5, 2), "123.45"),
        (0, DATE, "DATE '1970-01-01'"),
        (10**7, TIMESTAMP, "TIMESTAMP '1970-01-01 00:00:10'"),
        (10**9, DATE, "DATE '1970-01-01' + 1000000000"),
    ],
)
def test_values(value: PhysicalValue, type_: SqlType, text: str) -> None:
    assert value_text(value, type_) == text


def test_calls_and_keys() -> None:
    assert aggregate_text(AggregateCall("count", None, BIGINT)) == "count(*)"
    distinct = AggregateCall("sum", A, BIGINT, True, call(">", B, A))
    assert aggregate_text(distinct) == "sum(DISTINCT a) FILTER (WHERE b > a)"
    assert sort_text((SortKey(1), SortKey(2, True, False))) == "#1, #2 DESC NULLS LAST"


def test_quantities() -> None:
    assert [quantity(v) for v in (0, 7, 999, 1000, 6087, 2.88e6, 3e9)] == [
        "0", "7", "999", "1k", "6.09k", "2.88M", "3G",
    ]  # fmt: skip


def plan() -> PhysicalPlan:
    column = OutputColumn(1, "a", BIGINT)
    spread = Traits(Distribution(Placement.PARTITIONED, ((1,),)), (), 10.0, 20.0)
    one = Traits(SINGLETON, (), 10.0, 30.0)
    scan = TableScan((column,), spread, "m", 1, 1, "x", (0,), call("=", A, Literal(BIGINT, 5)))
    send = Send((column,), spread, scan, 0, ExchangeKind.GATHER, 0)
    root = Root((column,), one, Receive((column,), one, 0, 1))
    pruning = Pruning(((Literal(BIGINT, 5),),))
    fragments = (
        Fragment(0, root, Site.INITIATOR),
        Fragment(1, send, Site.DATA_MEMBERS, pruning),
    )
    return PhysicalPlan(fragments, (column,), (), (), ("a rule",))


def test_explain() -> None:
    assert explain(plan()).splitlines() == [
        "Fragment 0 at the initiator",
        "  Root (a)  [SINGLETON rows=10 cost=30]",
        "    Receive from fragment 1  [SINGLETON rows=10 cost=30]",
        "Fragment 1 at the data members owning (5)",
        "  Send gather to fragment 0  [PARTITIONED (a) rows=10 cost=20]",
        "    Scan m x where a = 5  [PARTITIONED (a) rows=10 cost=20]",
    ]


def test_explain_verbose() -> None:
    text = explain(plan(), verbose=True)
    assert "Scan m x where a#1 = 5" in text
    assert "output: a#1 BIGINT" in text
    assert text.endswith("Rules: a rule")


def test_explain_analyze() -> None:
    profile = {
        (0, 0): {2: OperatorProfile(7, 1, 0.001)},
        (1, 1): {1: OperatorProfile(3, 1, 0.002), 2: OperatorProfile(4, 2, 0.005)},
    }
    lines = explain(plan(), profile=profile).splitlines()
    assert lines[2] == "      actual: rows=7 batches=1 time=1.000 ms"
    expected = "actual: rows=7 batches=3 time=5.000 ms (1: 3 in 2.000 ms, 2: 4 in 5.000 ms)"
    assert lines[-1].strip() == expected
    assert lines[4].strip() == "actual: not run"
