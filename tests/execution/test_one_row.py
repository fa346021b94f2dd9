"""Simple expressions over one row: the same values and errors as over columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    UUID,
    VARCHAR,
    SqlType,
    decimal,
)
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.errors import NumericOverflow, RemudaError
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.numbers import INTEGER_LIMITS
from remuda.execution.evaluate.one_row import Formulas
from remuda.execution.evaluate.predicate import Predicate
from remuda.plan.expression import Call, Cast, ColumnRef, Expression, Literal, Parameter

INTEGERS = [TINYINT, SMALLINT, INTEGER, BIGINT]
WIDE = decimal(38, 4)
TYPES = [*INTEGERS, DOUBLE, BOOLEAN, VARCHAR, BYTEA, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, UUID,
         decimal(9, 2), WIDE, REAL]  # fmt: skip
COMPARED = ["=", "<>", "<", "<=", ">", ">="]
SIMPLE = [t for t in TYPES if t != REAL]


def values_of(type_: SqlType) -> st.SearchStrategy[Any]:
    if type_.is_integer:
        limit = INTEGER_LIMITS[type_.kind][1]
        ends = st.sampled_from([-limit, limit - 1, 0, 1, -1])
        return st.one_of(ends, st.integers(-limit, limit - 1))
    known: dict[SqlType, st.SearchStrategy[Any]] = {
        DOUBLE: st.one_of(
            st.sampled_from([0.0, -0.0, float("nan"), float("inf"), 1e308, -1e308, 1e-300, 5e-324]),
            st.floats(),
        ),
        REAL: st.floats(width=32),
        BOOLEAN: st.booleans(),
        VARCHAR: st.text(max_size=3),
        BYTEA: st.binary(max_size=3),
        UUID: st.binary(min_size=16, max_size=16),
        DATE: st.integers(-700_000, 700_000),
        TIME: st.integers(0, 86_399_999_999),
        decimal(9, 2): st.integers(-(10**9) + 1, 10**9 - 1),
        WIDE: st.integers(-(10**38) + 1, 10**38 - 1),
    }
    return known.get(type_, st.integers(-(10**15), 10**15))


@st.composite
def leaves(draw: st.DrawFn, type_: SqlType) -> tuple[str, SqlType, Any]:
    value = draw(st.one_of(st.none(), values_of(type_)))
    return draw(st.sampled_from(["literal", "parameter", "column"])), type_, value


Tree = tuple[Any, ...]


def trees(type_: SqlType, depth: int) -> st.SearchStrategy[Tree]:
    """Descriptions of expressions of a type: a leaf, or (name, type, parts)."""
    if depth == 0:
        return leaves(type_)
    found: list[st.SearchStrategy[Tree]] = [leaves(type_), called(type_, depth)]
    return st.one_of(*found)


@st.composite
def called(draw: st.DrawFn, type_: SqlType, depth: int) -> Tree:
    if type_ == BOOLEAN:
        name = draw(st.sampled_from(["and", "or", "not", "null", "compare", "coalesce"]))
        if name == "compare":
            of = draw(st.sampled_from(SIMPLE))
            other = draw(st.sampled_from(INTEGERS)) if of.is_integer else of
            parts = [draw(trees(of, depth - 1)), draw(trees(other, depth - 1))]
            return draw(st.sampled_from(COMPARED)), BOOLEAN, parts
        if name == "null":
            of = draw(st.sampled_from(SIMPLE))
            name = draw(st.sampled_from(["is_null", "is_not_null"]))
            return name, BOOLEAN, [draw(trees(of, depth - 1))]
        count = 1 if name == "not" else draw(st.integers(2, 3))
        return name, BOOLEAN, [draw(trees(BOOLEAN, depth - 1)) for _ in range(count)]
    if type_.is_integer and draw(st.booleans()):
        of = draw(st.sampled_from(INTEGERS))
        return "cast", type_, [draw(trees(of, depth - 1))]
    if type_ == DOUBLE and draw(st.booleans()):
        return "cast", type_, [draw(trees(draw(st.sampled_from(INTEGERS)), depth - 1))]
    if type_.is_integer or type_ == DOUBLE:
        parts = [draw(trees(type_, depth - 1)) for _ in range(2)]
        return draw(st.sampled_from("+-*")), type_, parts
    return "coalesce", type_, [draw(trees(type_, depth - 1)) for _ in range(2)]


class Made:
    """The expression of a tree, with its parameters and its entry."""

    def __init__(self, tree: Tree) -> None:
        self.parameters: list[Any] = []
        self.entry: list[Any] = []
        self.columns: list[SqlType] = []
        self.expression = self._made(tree)

    def _made(self, tree: Tree) -> Expression:
        name, type_, rest = tree
        if name == "literal":
            return Literal(type_, rest)
        if name == "parameter":
            self.parameters.append(rest)
            return Parameter(type_, len(self.parameters) - 1)
        if name == "column":
            self.entry.append(rest)
            self.columns.append(type_)
            return ColumnRef(type_, 100 + len(self.entry), "c")
        parts = tuple(self._made(part) for part in rest)
        return Cast(type_, parts[0]) if name == "cast" else Call(type_, name, parts)

    def _columns(self) -> tuple[Compiler, Batch]:
        arrays = [
            values_to_array([value], t) for value, t in zip(self.entry, self.columns, strict=True)
        ]
        positions = {101 + place: place for place in range(len(arrays))}
        return Compiler(positions, self.parameters), Batch(arrays, 1)

    def value_by_columns(self) -> Any:
        compiler, batch = self._columns()
        type_ = self.expression.type
        array = canonical(compiler.column(self.expression)(batch), type_)
        return array_to_values(array, type_)[0]

    def passes_by_columns(self) -> bool:
        compiler, batch = self._columns()
        rows = Predicate(self.expression, compiler).select(batch)
        return rows is None or len(rows) > 0

    def formulas(self) -> Formulas:
        places = {101 + place: place for place in range(len(self.entry))}
        return Formulas([self.expression], len(self.parameters), places)


def outcome(compute: Any) -> tuple[str, str]:
    """``repr`` tells 1 from True and from 1.0, 0.0 from -0.0, and NaN is equal to itself."""
    try:
        return "value", repr(compute())
    except RemudaError as error:
        return error.sqlstate, error.message


@settings(max_examples=400, deadline=None)
@given(st.sampled_from([*SIMPLE, BOOLEAN, BOOLEAN]).flatmap(lambda type_: trees(type_, 3)))
def test_values_and_errors_are_those_of_columns(tree: Tree) -> None:
    made = Made(tree)
    formulas = made.formulas()
    scope = formulas.scope(made.parameters, made.entry)
    formula = formulas.of(made.expression)
    if formula is not None:
        assert outcome(lambda: formula(scope)) == outcome(made.value_by_columns)
    condition = formulas.condition(made.expression) if tree[1] == BOOLEAN else None
    if condition is not None:
        assert outcome(lambda: bool(condition(scope))) == outcome(made.passes_by_columns)


def test_usual_statements_are_simple() -> None:
    stock = ColumnRef(INTEGER, 1, "stock")
    more = Call(INTEGER, "+", (stock, Parameter(INTEGER, 0)))
    positive = Call(BOOLEAN, ">", (stock, Literal(INTEGER, 0)))
    both = Call(BOOLEAN, "and", (positive, Call(BOOLEAN, "is_not_null", (stock,))))
    formulas = Formulas([more, positive, both], 1, {1: 2})
    scope = formulas.scope((5,), ("a", "b", 7))
    found = [formulas.of(each) for each in (more, positive, both)]
    assert [each(scope) for each in found if each is not None] == [12, True, True]
    with pytest.raises(NumericOverflow, match="integer out of range"):
        found[0](formulas.scope((2**31 - 1,), ("a", "b", 1)))


@pytest.mark.parametrize(
    "expression",
    [
        Parameter(REAL, 0),
        Call(VARCHAR, "upper", (Parameter(VARCHAR, 0),)),
        Call(DOUBLE, "/", (Parameter(DOUBLE, 0), Parameter(DOUBLE, 0))),
        Call(BOOLEAN, "=", (Parameter(DATE, 0), Parameter(TIMESTAMP, 0))),
        Cast(VARCHAR, Parameter(INTEGER, 0)),
        ColumnRef(INTEGER, 9, "of another map"),
        Parameter(INTEGER, 1),
    ],
)
def test_what_columns_must_compute_is_not_simple(expression: Expression) -> None:
    formulas = Formulas([expression], 1, {1: 0})
    assert formulas.of(expression) is None


def test_a_part_of_a_filter_is_not_computed_behind_one_that_is_not_true() -> None:
    most = Parameter(INTEGER, 0)
    unknown = Call(BOOLEAN, "=", (ColumnRef(INTEGER, 1, "c"), most))
    raising = Call(BOOLEAN, "=", (Call(INTEGER, "+", (most, most)), most))
    both = Call(BOOLEAN, "and", (unknown, raising))
    formulas = Formulas([both], 1, {1: 0})
    condition = formulas.condition(both)
    assert condition is not None
    assert condition(formulas.scope((2**31 - 1,), (None,))) is False


def test_a_constant_that_raises_is_left_to_columns() -> None:
    """They compute it whatever the condition in front of it says."""
    column = Call(BOOLEAN, "is_null", (ColumnRef(INTEGER, 1, "c"),))
    most = Literal(INTEGER, 2**31 - 1)
    raising = Call(BOOLEAN, "=", (Call(INTEGER, "+", (most, most)), most))
    either = Call(BOOLEAN, "or", (column, raising))
    assert Formulas([either], 0, {1: 0}).of(either) is None
