"""The types of the columns that CREATE TABLE AS and CREATE VIEW make: those of expressions, and the
digits of seconds of columns and CASTs that the query puts out as they are."""

from __future__ import annotations

from remuda.datatypes.sql import INTERVAL_FIELDS, SqlType, array, restricted, unrestricted
from remuda.plan.expression import Call, ColumnId, ColumnRef, Expression, Literal
from remuda.plan.logical import Logical, Project, Scan, SetOperation, Union, inputs_of


def declared_types(plan: Logical) -> list[SqlType]:
    """The type of each column of ``plan``, in order."""
    return [_of_column(plan, column.id) for column in plan.output]


def _of_column(plan: Logical, column: ColumnId) -> SqlType:
    place = next(i for i, output in enumerate(plan.output) if output.id == column)
    bare = unrestricted(plan.output[place].type)
    match plan:
        case Scan(schema=schema, positions=positions):
            return schema.columns[positions[place]].type
        case Project(input=below, expressions=expressions):
            return _of_expression(below, expressions[place])
        case Union() | SetOperation():
            found = [_of_column(each, each.output[place].id) for each in inputs_of(plan)]
            return found[0] if len({str(t) for t in found}) == 1 else bare
        case _:
            inputs = [each for each in inputs_of(plan) if column in each.column_ids]
            return _of_column(inputs[0], column) if len(inputs) == 1 else bare


def _of_expression(plan: Logical, expression: Expression) -> SqlType:
    match expression:
        case ColumnRef(column=column) if column in plan.column_ids:
            return _of_column(plan, column)
        case Call(function="round_fraction", arguments=(_, Literal(value=int(digits)))):
            return _with(expression.type, digits, ())
        case Call(function="interval_fields", arguments=(_, Literal(value=int(field)))):
            return _with(expression.type, None, (INTERVAL_FIELDS[field],))
        case Literal(type=t):
            return t
        case _:
            return unrestricted(expression.type)


def _with(t: SqlType, fraction: int | None, span: tuple[str, ...]) -> SqlType:
    if t.element is not None:
        return array(restricted(unrestricted(t.element), fraction, span))
    return restricted(unrestricted(t), fraction, span)
