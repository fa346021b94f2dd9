"""Changes of single entries: the assignments and the condition of ``map.compute``, without a query.

They are what follows SET and WHERE in an UPDATE of one map; but they see the columns of one row
and nothing else, so that the owner of the row computes them where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from remuda.datatypes.identifiers import sql_name
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType, unrestricted
from remuda.errors import InvalidDefinition, LimitExceeded, RemudaError, SqlSyntaxError
from remuda.limits import ENTRY_CHANGE_LENGTH_MAX
from remuda.plan.expression import ColumnRef, Expression
from remuda.sql.changes.generated_columns import refuse_value
from remuda.sql.changes.modify import assignments_of
from remuda.sql.definitions.constraints import NoMaps, default_of
from remuda.sql.expressions.expressions import ExpressionBinder, Forbidding
from remuda.sql.expressions.functions.sequences import refuse_calls
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.context import Context
from remuda.sql.scope.scope import Scope
from remuda.sql.text.lexemes import end_of, too_deep
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import ChangeTree

CLAUSE = "an expression that changes one entry"


@dataclass(frozen=True, slots=True)
class EntryChange:
    """Column ids of the expressions are schema positions. ``values`` are of exactly the types of
    their columns. Parameters after those of ``parameter_types`` stand for the clock functions
    named by ``clock_parameters``, if the session has put them there."""

    positions: tuple[int, ...]
    values: tuple[Expression, ...]
    condition: Expression | None
    parameter_types: tuple[SqlType, ...]
    clock_parameters: tuple[str, ...] = ()

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The condition, if there is one, then the values."""
        return self.values if self.condition is None else (self.condition, *self.values)

    def rewritten(
        self, expressions: tuple[Expression, ...], clock_parameters: tuple[str, ...]
    ) -> EntryChange:
        """With other ``expressions`` in the same order."""
        first = 0 if self.condition is None else 1
        return replace(
            self,
            condition=expressions[0] if first else None,
            values=expressions[first:],
            clock_parameters=clock_parameters,
        )


def text_of(schema: MapSchema, assignments: str, condition: str) -> str:
    """The statement that stands for them: errors show it, with the place. Each part ends with its
    line, so that a comment in one does not swallow the other."""
    text = f"UPDATE {sql_name(schema)} SET {assignments}"  # noqa: S608 (its own text)
    return f"{text}\nWHERE {condition}\n" if condition.strip() else text


def bind_entry_change(
    schema: MapSchema,
    assignments: str,
    condition: str,
    types: Sequence[SqlType] | None,
) -> EntryChange:
    """``types`` are those that the client gave its parameters; None: infer them.

    Raises the InputErrors of the binder, all with the statement attached.
    """
    text = text_of(schema, assignments, condition)
    if len(text) > ENTRY_CHANGE_LENGTH_MAX:
        raise LimitExceeded(
            f"{CLAUSE} has at most {ENTRY_CHANGE_LENGTH_MAX} characters",
            hint="Write long values as parameters, or use UPDATE.",
        )
    try:
        return _bound(schema, text, types)
    except RemudaError as error:
        raise error.within(text) from error.__cause__
    except RecursionError:
        raise too_deep(None).within(text) from None


def _bound(schema: MapSchema, text: str, types: Sequence[SqlType] | None) -> EntryChange:
    parsed = parse(text)
    context = Context(text, NoMaps(schema.columns), parsed.parameters, types)
    node = parsed.tree.root if isinstance(parsed.tree, ChangeTree) else None
    if not isinstance(node, ast.Update):
        raise SqlSyntaxError(f"{CLAUSE} is written as column = value, ...")
    context.only(node, "this", "expressions", "where")
    if not node.expressions:
        raise SqlSyntaxError("SET needs column = value", position=end_of(text))
    scope = Scope()
    columns: list[tuple[str, Expression]] = [
        (column.name, ColumnRef(unrestricted(column.type), position, column.name))
        for position, column in enumerate(schema.columns)
    ]
    scope.add(context, schema.name, columns, node)
    binder = ExpressionBinder(context, scope, Forbidding(context, CLAUSE))
    positions, values = [], []
    for assignment in assignments_of(context, schema, schema.name, node.expressions):
        column = schema.columns[assignment.position]
        if assignment.position in schema.key_positions:
            raise context.error(
                InvalidDefinition,
                f'column "{column.name}" is part of the key, which an entry keeps',
                assignment.place,
                hint="Remove the entry, and put it under its other key.",
            )
        refuse_value(context, column, assignment.value, assignment.place)
        positions.append(assignment.position)
        value = (
            default_of(column)
            if assignment.value is None
            else binder.convert.assigned(
                binder.bind(assignment.value),
                column.type,
                assignment.value,
                f'column "{column.name}"',
            )
        )
        values.append(refuse_calls(context, value, CLAUSE, assignment.place))
    where = node.args.get("where")
    condition = None
    if where is not None:
        condition = refuse_calls(context, binder.condition(where.this, "WHERE"), CLAUSE, where)
    return EntryChange(tuple(positions), tuple(values), condition, context.finish_parameters())
