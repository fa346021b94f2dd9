"""Generated columns of the rows that a statement writes: computed from the new values of the other
columns, so that RETURNING, UNIQUE and conditions see them."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.schema import Column, Identity, MapSchema
from remuda.errors import GeneratedAlways, InvalidColumnReference
from remuda.plan.expression import ColumnRef, Expression, transform
from remuda.plan.logical import Logical
from remuda.sql.definitions.generated import generation
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.output import project
from remuda.sql.trees import ast


def computed(schema: MapSchema, row: Sequence[Expression]) -> list[Expression]:
    """``row``, all columns in schema order, with the expressions of generated columns over it. A
    column that they use is computed once more for each use."""
    found = list(row)
    for place in schema.generated:
        found[place] = _over(generation(schema, place), row)
    return found


def _over(expression: Expression, row: Sequence[Expression]) -> Expression:
    def rewrite(part: Expression) -> Expression:
        return row[part.column] if isinstance(part, ColumnRef) else part

    return transform(expression, rewrite)


def with_generated(context: Context, schema: MapSchema, plan: Logical, first: int = 0) -> Logical:
    """``plan``, whose output number ``first`` and those that follow are rows of the map, with the
    values of generated columns; the others stay as they are."""
    if not schema.generated:
        return plan
    columns: list[Expression] = [ColumnRef(c.type, c.id, c.name) for c in plan.output]
    width = len(schema.columns)
    columns[first : first + width] = computed(schema, columns[first : first + width])
    return project(context, plan, [column.name for column in plan.output], columns)


def refuse_given(context: Context, column: Column, place: ast.Node, *, overrides: bool) -> None:
    """Raises GeneratedAlways for a value that INSERT gives for a column that takes none.
    ``overrides``: the statement is OVERRIDING SYSTEM VALUE."""
    identity = column.identity is Identity.ALWAYS and not overrides
    if column.generated or identity:
        raise context.error(
            GeneratedAlways,
            f'cannot insert a non-DEFAULT value into column "{column.name}"',
            place,
            detail=_reason(column),
            hint="Use OVERRIDING SYSTEM VALUE to override." if identity else "",
        )


def refuse_value(context: Context, column: Column, value: ast.Node | None, place: ast.Node) -> None:
    """The same for a value that SET assigns."""
    if value is not None and (column.generated or column.identity is Identity.ALWAYS):
        raise context.error(
            GeneratedAlways,
            f'column "{column.name}" can only be updated to DEFAULT',
            place,
            detail=_reason(column),
        )


def refuse_generated(context: Context, schema: MapSchema, names: Sequence[ast.Node]) -> None:
    """Raises InvalidColumnReference for a generated column among the columns of COPY."""
    for node in names:
        name = identifier(node)
        if name in schema.position and schema.column(name).generated:
            raise context.error(
                InvalidColumnReference,
                f'column "{name}" is a generated column',
                node,
                detail="Generated columns cannot be used in COPY.",
            )


def _reason(column: Column) -> str:
    if column.generated:
        return f'Column "{column.name}" is a generated column.'
    return f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.'
