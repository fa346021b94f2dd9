"""INTERSECT and EXCEPT by operators that have distributed plans already.

- Where no pair of columns can be NULL on both sides, rows are equal exactly if an equi-join finds
  them: SEMI and ANTI joins of the first input, made distinct.
- Otherwise all inputs are read into one aggregate that counts, for each distinct row, where it
  came from: NULLs are equal there, and each member counts its own rows first.

ALL numbers the occurrences of each row within its input, and then every (row, number) is distinct:
the third 'a' of one input meets the third 'a' of the other.
"""

from __future__ import annotations

from dataclasses import replace

from remuda.datatypes.sql import BIGINT, BOOLEAN, SMALLINT
from remuda.plan.expression import AggregateCall, Call, Expression, Literal, conjunction
from remuda.plan.logical import (
    Aggregate,
    JoinKind,
    Logical,
    OutputColumn,
    Project,
    SetKind,
    SetOperation,
    Union,
)
from remuda.plan.windows import WindowCall
from remuda.planner.algebra import (
    empty,
    is_empty,
    make_filter,
    make_join,
    make_window,
    reference,
)
from remuda.planner.rules.rule import Rewriting, Rule


def _prune_set_operation(node: Logical, _: Rewriting) -> Logical | None:
    """An empty input of INTERSECT empties it; EXCEPT can do without all but the first."""
    assert isinstance(node, SetOperation)
    if not any(is_empty(child) for child in node.inputs):
        return None
    if node.kind is SetKind.INTERSECT or is_empty(node.inputs[0]):
        return empty(node.output)
    rest = tuple(child for child in node.inputs if not is_empty(child))
    if len(rest) > 1:
        return replace(node, inputs=rest)
    only = _renamed(rest[0], node.output)
    return _distinct(only) if node.distinct else only


PRUNE_SET_OPERATION = Rule("prune set operation", (SetOperation,), _prune_set_operation)


def _set_operation_to_join(node: Logical, rewriting: Rewriting) -> Logical | None:
    assert isinstance(node, SetOperation)
    first, *others = node.inputs
    for other in others:
        pairs = zip(first.output, other.output, strict=True)
        if any(a.nullable and b.nullable for a, b in pairs):
            return None
    kind = JoinKind.SEMI if node.kind is SetKind.INTERSECT else JoinKind.ANTI
    if not node.distinct:
        others = _merged(node.kind, others, rewriting)
    plan = _renamed(first, node.output)
    plan = _distinct(plan) if node.distinct else _numbered(plan, rewriting)
    for other in others:
        right = other if node.distinct else _numbered(other, rewriting)
        equalities: tuple[Expression, ...] = tuple(
            Call(BOOLEAN, "=", (reference(a), reference(b)))
            for a, b in zip(plan.output, right.output, strict=True)
        )
        plan = make_join(kind, plan, right, conjunction(equalities))
    return plan


SET_OPERATION_TO_JOIN = Rule("set operation to join", (SetOperation,), _set_operation_to_join)


def _set_operation_to_aggregate(node: Logical, rewriting: Rewriting) -> Logical | None:
    assert isinstance(node, SetOperation)
    first, *others = node.inputs
    others = _merged(node.kind, others, rewriting)
    sources = [first, *others]
    keys = node.output
    if not node.distinct:
        sources = [_numbered(source, rewriting) for source in sources]
        keys = (*keys, rewriting.fresh("occurrence", BIGINT, nullable=False))
    origin = rewriting.fresh("origin", SMALLINT, nullable=False)
    tagged = tuple(_tagged(source, place, rewriting) for place, source in enumerate(sources))
    counts = [rewriting.fresh("count", BIGINT, nullable=False) for _ in sources]
    calls = tuple(
        AggregateCall("count", None, BIGINT, filter=_is(origin, "=", Literal(SMALLINT, place)))
        for place in range(len(sources))
    )
    group = tuple(column.id for column in keys)
    plan = Aggregate((*keys, *counts), Union((*keys, origin), tagged), group, calls)
    none = Literal(BIGINT, 0)
    wanted = "=" if node.kind is SetKind.EXCEPT else ">"
    conditions = [_is(counts[0], ">", none), *(_is(count, wanted, none) for count in counts[1:])]
    condition = conjunction(tuple(conditions))
    assert condition is not None
    return make_filter(plan, condition)


SET_OPERATION_TO_AGGREGATE = Rule(
    "set operation to aggregate", (SetOperation,), _set_operation_to_aggregate
)


def _is(column: OutputColumn, comparison: str, value: Literal) -> Expression:
    return Call(BOOLEAN, comparison, (reference(column), value))


def _renamed(node: Logical, output: tuple[OutputColumn, ...]) -> Logical:
    return Project(output, node, tuple(reference(column) for column in node.output))


def _distinct(node: Logical) -> Logical:
    return Aggregate(node.output, node, tuple(column.id for column in node.output), ())


def _merged(kind: SetKind, others: list[Logical], rewriting: Rewriting) -> list[Logical]:
    """``a EXCEPT b EXCEPT c``: the rows of b and c go together."""
    if kind is SetKind.INTERSECT or len(others) == 1:
        return others
    output = tuple(
        rewriting.fresh(column.name, column.type, any(o.output[i].nullable for o in others))
        for i, column in enumerate(others[0].output)
    )
    return [Union(output, tuple(others))]


def _numbered(node: Logical, rewriting: Rewriting) -> Logical:
    """``node`` with a column that counts equal rows from 1."""
    number = rewriting.fresh("occurrence", BIGINT, nullable=False)
    keys = tuple(column.id for column in node.output)
    return make_window(node, keys, (), (WindowCall("row_number", (), BIGINT),), (number,))


def _tagged(node: Logical, place: int, rewriting: Rewriting) -> Logical:
    tag = rewriting.fresh("origin", SMALLINT, nullable=False)
    own = tuple(reference(column) for column in node.output)
    return Project((*node.output, tag), node, (*own, Literal(SMALLINT, place)))
