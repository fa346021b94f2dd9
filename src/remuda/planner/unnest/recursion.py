"""A recursive CTE that uses columns of the query around it, made independent of them.

It is computed once for all values that these columns have, its *parameters*: each row carries the
values that it is meant for, through the base, the working table and the step, so rows of different
values never meet. UNION compares them with the rest of the row, and the recursion for one value
ends when that value gives no more rows. Both terms start from the *domain*, the values that occur:
for others the recursion might have no end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Protocol

from remuda.datatypes.sql import BOOLEAN
from remuda.errors import NotSupported
from remuda.plan.expression import Call, ColumnId, ColumnRef, Expression, columns_of
from remuda.plan.logical import Logical, OutputColumn, Recursion, Supplied, Values
from remuda.plan.nullability import is_nullable, nullability
from remuda.plan.uses import operators_of
from remuda.planner.algebra import filtered, reference, substitute
from remuda.planner.rules.rule import Rewriting
from remuda.planner.unnest.bindings import Binding, Bound, listed


class Binder(Protocol):
    """``Dependent``, as far as it is needed here."""

    @property
    def rewriting(self) -> Rewriting: ...

    @property
    def parameters(self) -> Mapping[ColumnId, Expression]: ...

    def used_by(self, expressions: Iterable[Expression]) -> frozenset[ColumnId]: ...

    def domain(self, parameters: frozenset[ColumnId]) -> tuple[Logical, Binding]: ...

    def below(self, node: Logical) -> tuple[Logical, Binding]: ...

    def with_domain(
        self, node: Logical, bound: Binding, missing: Iterable[ColumnId]
    ) -> tuple[Logical, Binding]: ...

    def over(
        self,
        base: Logical,
        parameters: Mapping[ColumnId, Expression],
        working: WorkingTable | None = None,
    ) -> Binder: ...


@dataclass(frozen=True, slots=True)
class WorkingTable:
    """The relation that the step reads as ``old``: ``new`` has the same columns, from ``width`` on
    followed by the values of the parameters."""

    old: str
    new: str
    width: int
    carried: Mapping[ColumnId, tuple[OutputColumn, bool]]
    """parameter -> a column like its own, and whether it is never NULL."""

    def is_read_by(self, node: Logical) -> bool:
        return isinstance(node, Supplied) and node.relation == self.old

    def read(self, node: Supplied, rewriting: Rewriting) -> tuple[Logical, Binding]:
        """``node``, which reads ``old``, with the parameters."""
        made = {
            parameter: rewriting.fresh(like.name, like.type, not certain)
            for parameter, (like, certain) in self.carried.items()
        }
        bound = {p: Bound(reference(made[p]), certain) for p, (_, certain) in self.carried.items()}
        return with_carried(node, self.new, self.width, made.values()), bound


def with_carried(
    node: Supplied, relation: str, width: int, columns: Iterable[OutputColumn]
) -> Supplied:
    """``node`` reading ``relation``, which has ``columns`` from the place ``width`` on."""
    more = tuple(columns)
    return replace(
        node,
        output=(*node.output, *more),
        relation=relation,
        positions=(*node.positions, *range(width, width + len(more))),
    )


def bind_recursion(node: Supplied, definition: Recursion, outer: Binder) -> tuple[Logical, Binding]:
    """``node`` for all values of the parameters of ``outer`` that its arguments use, and the
    columns that tell them."""
    rewriting, step = outer.rewriting, definition.step
    assert step is not None
    _refuse_nested_working(definition, step)
    rewriting.count("correlated recursion over domain")
    used = outer.used_by(node.arguments)
    domain, binding = outer.domain(used) if used else (Values((), ((),)), Binding())
    values = {parameter: found.column for parameter, found in binding.items()}
    given = {
        parameter: substitute(argument, values)
        for parameter, argument in zip(node.parameters, node.arguments, strict=True)
    }
    known = nullability(domain)
    certain = {parameter: not is_nullable(value, known) for parameter, value in given.items()}
    base, carried = _with_parameters(outer.over(domain, given), definition.base, node.parameters)
    # The same text of a plan gives the same rows: copies in one statement may share the relation.
    digest = sha256(repr((base, step)).encode()).hexdigest()[:16]
    width = len(definition.base.output)
    working = WorkingTable(
        definition.working,
        f"{definition.working} {digest}",
        width,
        {p: (column, certain[p]) for p, column in carried.items()},
    )
    step, _ = _with_parameters(outer.over(domain, given, working), step, node.parameters)
    independent = replace(definition, working=working.new, base=base, step=step)
    columns = {
        parameter: rewriting.fresh(like.name, like.type, not certain[parameter])
        for parameter, like in carried.items()
    }
    made: Logical = replace(
        with_carried(node, f"{node.relation} {digest}", width, columns.values()),
        definition=independent,
        parameters=(),
        arguments=(),
    )
    return _for_outer(made, node, columns, certain, outer)


def _with_parameters(
    dependent: Binder, term: Logical, parameters: tuple[ColumnId, ...]
) -> tuple[Logical, dict[ColumnId, OutputColumn]]:
    """``term``, followed by the values of ``parameters``, and the columns that they come from."""
    node, bound = dependent.below(term)
    missing = [parameter for parameter in parameters if parameter not in bound]
    if missing:
        node, bound = dependent.with_domain(node, bound, missing)
    by_id = {column.id: column for column in node.output}
    carried = {parameter: by_id[bound[parameter].column.column] for parameter in parameters}
    made = listed(node, (*term.output, *carried.values()), dependent.rewriting)
    return made, carried


def _for_outer(
    made: Logical,
    node: Supplied,
    columns: Mapping[ColumnId, OutputColumn],
    certain: Mapping[ColumnId, bool],
    outer: Binder,
) -> tuple[Logical, Binding]:
    """``made``, which has the values of the arguments of ``node``, bound to what they use."""
    bound: Binding = {}
    rest: list[tuple[Expression, ColumnRef]] = []
    for parameter, argument in zip(node.parameters, node.arguments, strict=True):
        column = reference(columns[parameter])
        if (
            isinstance(argument, ColumnRef)
            and argument.column in outer.parameters
            and argument.column not in bound
        ):
            bound[argument.column] = Bound(column, certain[parameter])
        elif columns_of(argument):
            rest.append((argument, column))
    missing = outer.used_by(argument for argument, _ in rest) - bound.keys()
    if missing:
        made, bound = outer.with_domain(made, bound, missing)
    values = {parameter: found.column for parameter, found in bound.items()}
    conditions = [
        Call(BOOLEAN, "is_not_distinct_from", (substitute(argument, values), column))
        for argument, column in rest
    ]
    return filtered(made, conditions), bound


def _refuse_nested_working(definition: Recursion, step: Logical) -> None:
    """A recursive CTE inside of the step that reads the working table has definitions of its own,
    which would have to carry the parameters as well."""
    if any(
        isinstance(leaf, Supplied)
        and leaf.definition is not None
        and _mentions(leaf.definition, definition.working)
        for leaf in operators_of(step)
    ):
        raise NotSupported(
            f'the recursive query "{definition.name}" refers to columns of the query around it, '
            "and another recursive query inside of it reads it: this is not supported",
            hint="Join the recursive query instead of referring to columns around it.",
        )


def _mentions(definition: Recursion, relation: str) -> bool:
    return any(
        leaf.relation == relation
        or (leaf.definition is not None and _mentions(leaf.definition, relation))
        for term in (definition.base, definition.step)
        if term is not None
        for leaf in operators_of(term)
        if isinstance(leaf, Supplied)
    )
