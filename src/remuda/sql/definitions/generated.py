"""Generated columns: expressions over the other columns of a row, which a schema keeps as text."""

from __future__ import annotations

from dataclasses import replace

from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import unrestricted
from remuda.errors import (
    DependentObjects,
    InvalidGeneration,
    NotSupported,
    NumberNotDefined,
    RemudaError,
    SqlSyntaxError,
)
from remuda.plan.expression import ColumnRef, Expression, columns_of
from remuda.plan.logical import Logical
from remuda.sql.definitions.constraints import NoMaps
from remuda.sql.expressions.expressions import ExpressionBinder, Forbidding
from remuda.sql.parsing.snippets import expression_of, parse_expression
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.notices import Notice
from remuda.sql.scope.scope import Scope
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import (
    ChangeDefault,
    ColumnDefinition,
    DropExpression,
    Name,
    SetExpression,
    Snippet,
)

CLAUSE = "column generation expressions"


class _Generation(Forbidding):
    def __init__(self, context: Context) -> None:
        super().__init__(context, CLAUSE)

    def subquery(self, node: ast.Node) -> Logical:
        raise self.context.error(
            NotSupported,
            f"cannot use subquery in {CLAUSE[:-1]}",
            node,
            hint="Use columns of the same row, or a view.",
        )


# --- definitions -------------------------------------------------------------------------------


def check_clauses(context: Context, definition: ColumnDefinition, table: str) -> None:
    """Raises SqlSyntaxError for a generated column that has another source of values as well."""
    name, generated = definition.name, definition.generated
    assert generated is not None
    other = ""
    if definition.default is not None or definition.serial:
        other = "default"
    elif definition.identity is not None:
        other = "identity"
    if other:
        problem = (
            f'both {other} and generation expression specified for column "{name.text}" '
            f'of table "{table}"'
        )
        place = Name(name.text, generated.position)
        raise placed(context, SqlSyntaxError(problem), place)


def check_generated(context: Context, schema: MapSchema, column: Column, snippet: Snippet) -> None:
    """Raises the errors of the expression of a column of a map of this schema."""
    node = expression_of(context, snippet)
    for part in node.walk():
        if isinstance(part, ast.Column) and not isinstance(part.this, ast.Star):
            name = identifier(part.this)
            if name in schema.position and schema.column(name).generated:
                raise context.error(
                    InvalidGeneration,
                    f'cannot use generated column "{name}" in column generation expression',
                    part,
                    detail="A generated column cannot reference another generated column.",
                )
    _bound(context, schema, column, node)
    if column.name in schema.key:
        error = NotSupported(
            f'column "{column.name}" is part of the key and cannot be generated',
            hint="Clients find a row by its key before the row is computed. "
            "Use a UNIQUE constraint.",
        )
        raise placed(context, error, Name(column.name, snippet.position))


def _bound(context: Context, schema: MapSchema, column: Column, node: ast.Node) -> Expression:
    scope = Scope()
    columns: list[tuple[str, Expression]] = [
        (each.name, ColumnRef(unrestricted(each.type), position, each.name))
        for position, each in enumerate(schema.columns)
    ]
    scope.add(context, schema.local, columns, node)
    binder = ExpressionBinder(context, scope, _Generation(context))
    return binder.convert.assigned(binder.bind(node), column.type, node, f'column "{column.name}"')


# --- use ---------------------------------------------------------------------------------------


def generation(schema: MapSchema, position: int) -> Expression:
    """The value of the generated column at ``position``, of exactly its type; column ids are schema
    positions."""
    column = schema.columns[position]
    context = Context(column.generated, NoMaps(schema.columns), 0)
    try:
        return _bound(context, schema, column, parse_expression(column.generated))
    except RemudaError as error:
        raise error.saying(f'generated column "{column.name}": {error.message}') from (
            error.__cause__
        )


def computed_from(schema: MapSchema, name: str) -> list[Column]:
    """The generated columns that use the column ``name``."""
    position = schema.position[name]
    return [
        schema.columns[place]
        for place in schema.generated
        if position in columns_of(generation(schema, place))
    ]


def refuse_new_type(schema: MapSchema, name: str) -> None:
    """Raises NotSupported if a generated column uses the column ``name``."""
    for column in computed_from(schema, name):
        raise NotSupported(
            "cannot alter type of a column used by a generated column",
            detail=f'Column "{name}" is used by generated column "{column.name}".',
            hint="Drop that column, change the type, and add the column again.",
        )


def without_dependents(schema: MapSchema, name: str, *, cascade: bool) -> MapSchema:
    """``schema``, whose column ``name`` is dropped, without the columns that use it. Raises
    DependentObjects if there are some and ``cascade`` does not allow that."""
    gone = computed_from(schema, name)
    if gone and not cascade:
        raise DependentObjects(
            f"cannot drop column {name} of table {schema.local} because other objects depend on it",
            detail="\n".join(
                f"column {each.name} of table {schema.local} depends on column {name} "
                f"of table {schema.local}"
                for each in gone
            ),
            hint="Use DROP ... CASCADE to drop the dependent objects too.",
        )
    left = tuple(column for column in schema.columns if column not in gone)
    return replace(schema, columns=left)


# --- refusals ----------------------------------------------------------------------------------


def no_default(schema: MapSchema, column: Column, action: ChangeDefault) -> SqlSyntaxError:
    return SqlSyntaxError(
        f'column "{column.name}" of relation "{schema.local}" is a generated column',
        hint=""
        if action.default is not None
        else "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.",
    )


def altered_generation(
    context: Context, schema: MapSchema, column: Column, action: SetExpression | DropExpression
) -> Column | Notice:
    """The column as SET or DROP EXPRESSION leaves it, or a notice that it stays as it is. Raises
    NumberNotDefined, and the errors of the expression."""
    if not column.generated:
        problem = (
            f'column "{column.name}" of relation "{schema.local}" is not a stored generated column'
        )
        if isinstance(action, DropExpression) and action.if_exists:
            return Notice(f"{problem}, skipping")
        raise placed(context, NumberNotDefined(problem), action.name)
    if isinstance(action, DropExpression):
        return replace(column, generated="")
    changed = replace(column, generated=action.expression.text)
    check_generated(context, schema, changed, action.expression)
    return changed
