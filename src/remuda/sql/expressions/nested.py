"""Handlers of arrays, rows and JSON: constructors, subscripts, fields, operators, ANY (array)."""

from __future__ import annotations

from typing import Final

from remuda.catalog.pg_types import VECTORS
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    JSON,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    array,
)
from remuda.datatypes.texts.text import type_name
from remuda.errors import (
    DataError,
    IndeterminateType,
    TypeMismatch,
    UndefinedColumn,
    WrongObjectType,
)
from remuda.plan.expression import Call, Cast, Expression, Literal
from remuda.plan.functions.arrays import field_signature
from remuda.sql.expressions.conversion import is_untyped
from remuda.sql.expressions.expressions import ExpressionBinder, Handler, register
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees import ast

_FIRST, _LAST = 1, 2**31 - 1


# --- constructors ------------------------------------------------------------------------------


def array_value(binder: ExpressionBinder, node: ast.Array) -> Expression:
    """``ARRAY[a, b]``"""
    parts = node.expressions
    if not parts:
        raise binder.context.error(
            IndeterminateType,
            "cannot determine type of empty array",
            node,
            hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
        )
    bound = [binder.bind(part) for part in parts]
    for expression, part in zip(bound, parts, strict=True):
        if expression.type.element is not None:
            raise binder.context.unsupported(
                "an array of more than one dimension",
                part,
                hint="Use JSON, or an array of one dimension.",
            )
    elements = binder.convert.unified(bound, parts, "ARRAY")
    of_type = array(elements[0].type)
    if all(isinstance(e, Literal) for e in elements):
        return Literal(of_type, tuple(e.value for e in elements if isinstance(e, Literal)))
    return Call(of_type, "array", elements)


def empty_array(node: ast.Node) -> bool:
    """``ARRAY[]``, whose type only a cast can say."""
    inner = node.unnest()
    return isinstance(inner, ast.Array) and not inner.expressions


def fields_null(value: Expression, negated: bool) -> Expression:
    """``value IS NULL``: all fields are, or the row is; negated: no field is."""
    tests: list[Expression] = []
    for place in range(len(value.type.fields)):
        signature = field_signature(value.type, place)
        part = Call(signature.result, "field", (value, Literal(INTEGER, place)))
        tests.append(Call(BOOLEAN, "is_not_null" if negated else "is_null", (part,)))
    return tests[0] if len(tests) == 1 else Call(BOOLEAN, "and", tuple(tests))


# --- parts -------------------------------------------------------------------------------------


def json_subscript(binder: ExpressionBinder, part: ast.Node) -> Expression:
    """A text or a whole number, perhaps untyped still. Raises TypeMismatch."""
    place = binder.bind(part)
    if is_untyped(place) or place.type.is_text or place.type.is_integer:
        return place
    raise binder.context.error(
        TypeMismatch,
        f"subscript type {type_name(place.type)} is not supported",
        part,
        hint="jsonb subscript must be coercible to either integer or text.",
    )


def _json_subscript(
    binder: ExpressionBinder, operand: Expression, part: ast.Node, node: ast.Bracket
) -> Expression:
    """A path of one step, as in PostgreSQL: a text counts in arrays, a number names a field of an
    object, and a scalar has no parts."""
    step = binder.convert.explicit(json_subscript(binder, part), VARCHAR, part)
    path = Call(array(VARCHAR), "array", (step,))
    return binder.convert.call("#>", [operand, path], [node.operand, part], node)


def _subscript(binder: ExpressionBinder, node: ast.Bracket) -> Expression:
    operand = binder.bind(node.operand)
    part = node.subscript
    if operand.type == JSON and not isinstance(part, ast.Slice):
        return _json_subscript(binder, operand, part, node)
    if operand.type.alias == "name" and not isinstance(part, ast.Slice):  # an array of "char"
        place = binder.convert.implicit(binder.bind(part), INTEGER, part, "array subscript")
        first = binder.convert.call("+", [place, Literal(INTEGER, 1)], [part, part], node)
        one = Literal(INTEGER, 1)
        return Call(VARCHAR, "substring", (operand, first, one))
    if operand.type.element is None:
        raise binder.context.error(
            TypeMismatch,
            f"cannot subscript type {type_name(operand.type)} because it does not support "
            "subscripting",
            node.operand,
        )
    if isinstance(part, ast.Slice):
        return _slice(binder, operand, node, part)
    place = binder.bind(part)
    if place.type == BIGINT or place.type.kind is Kind.DECIMAL:
        place = binder.convert.assigned(place, INTEGER, part, "array subscript")
    if not (is_untyped(place) or place.type.is_integer):
        raise binder.context.error(TypeMismatch, "array subscript must have type integer", part)
    if operand.type.alias in VECTORS:  # indkey[0] is the first
        place = binder.convert.call("+", [place, Literal(INTEGER, 1)], [part, part], node)
    return binder.convert.call("subscript", [operand, place], [node.operand, part], node)


def _slice(
    binder: ExpressionBinder, operand: Expression, node: ast.Bracket, part: ast.Slice
) -> Expression:
    bounds: list[Expression] = []
    places: list[ast.Node] = []
    for written, missing in ((part.lower, _FIRST), (part.upper, _LAST)):
        bounds.append(Literal(INTEGER, missing) if written is None else binder.bind(written))
        places.append(node if written is None else written)
    return binder.convert.call("array_slice", [operand, *bounds], [node.operand, *places], node)


def _field(binder: ExpressionBinder, node: ast.Dot) -> Expression:
    operand = binder.bind(node.this)
    name = node.expression.name
    if operand.type.kind is not Kind.ROW:
        raise binder.context.error(
            WrongObjectType,
            f"column notation .{name} applied to type {type_name(operand.type)}, which is not a "
            "composite type",
            node,
        )
    names = [field for field, _ in operand.type.fields]
    if name not in names:
        raise binder.context.error(
            UndefinedColumn,
            f'could not identify column "{name}" in record data type',
            node,
            hint=did_you_mean(name, names) or "Fields: " + ", ".join(names) + ".",
        )
    return field_of(operand, names.index(name))


def field_of(value: Expression, place: int) -> Expression:
    """A field of a row, by its place from 0."""
    signature = field_signature(value.type, place)
    return Call(signature.result, "field", (value, Literal(INTEGER, place)))


# --- ANY and ALL of arrays ---------------------------------------------------------------------


def array_quantifier(node: ast.Node) -> tuple[ast.Node, bool] | None:
    """(array, whether ALL) of ``ANY (array)``, ``SOME (array)``, ``ALL (array)``."""
    if isinstance(node, ast.AnyOf | ast.AllOf):
        return node.this.unnest(), isinstance(node, ast.AllOf)
    return None


def compared_with_array(
    binder: ExpressionBinder,
    name: str,
    left: ast.Node,
    found: tuple[ast.Node, bool],
    negate: bool = False,
) -> Expression:
    """``left name ANY (array)``; with ``negate`` the opposite of each single comparison."""
    node, every = found
    value, items = binder.bind(left), binder.bind(node)
    if is_untyped(items) and not is_untyped(value):
        items = binder.convert.typed(items, array(value.type), node)
    if items.type.element is None:
        raise binder.context.error(
            WrongObjectType, "op ANY/ALL (array) requires array on right side", node
        )
    operator = Literal(VARCHAR, f"not {name}" if negate else name)
    arguments = [operator, value, items]
    return binder.convert.call(
        "all_of" if every else "any_of", arguments, [node, left, node], node, shown=name
    )


# --- operators ---------------------------------------------------------------------------------


def _operator(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: ast.Node) -> Expression:
        return binder.call(name, node.args["this"], node.args["expression"], node=node)

    return bind


def concatenation(bound: Expression) -> Expression:
    """``||`` of arrays under the name of the function that it means: its NULLs are other ones."""
    if not isinstance(bound, Call) or bound.type.element is None:
        return bound
    left, right = (argument.type.element is not None for argument in bound.arguments)
    name = "array_cat" if left and right else "array_append" if left else "array_prepend"
    return Call(bound.type, name, bound.arguments)


def _match(binder: ExpressionBinder, node: ast.JSONBPathMatches) -> Expression:
    """``json @@ jsonpath``"""
    return binder.call("@@", node.this, node.expression, node=node)


# --- time zones --------------------------------------------------------------------------------


def _at_time_zone(binder: ExpressionBinder, node: ast.AtTimeZone) -> Expression:
    return at_time_zone(binder, node.zone, node.moment, node)


def at_time_zone(
    binder: ExpressionBinder, zone: ast.Node, source: ast.Node, node: ast.Node
) -> Expression:
    """``timestamp AT TIME ZONE zone``, also as ``timezone(zone, timestamp)``."""
    operand = binder.bind(source)
    if is_untyped(operand):
        operand = binder.convert.typed(operand, TIMESTAMPTZ, source)
    if operand.type.kind is Kind.DATE:
        operand = Cast(TIMESTAMPTZ, operand)
    if operand.type == TIME:
        raise binder.context.unsupported(
            "AT TIME ZONE of a TIME", node, hint="Add a date first, and cast the result to TIME."
        )
    if operand.type not in (TIMESTAMP, TIMESTAMPTZ):
        raise binder.context.error(
            TypeMismatch,
            f"AT TIME ZONE needs a timestamp, not type {type_name(operand.type)}",
            source,
        )
    arguments = [binder.bind(zone), operand]
    try:
        return binder.convert.call("timezone", arguments, [zone, source], node)
    except DataError as error:
        raise binder.context.located(error, zone) from None


_OPERATORS: Final[tuple[tuple[type[ast.Node], str], ...]] = (
    (ast.JSONExtract, "->"),
    (ast.JSONExtractScalar, "->>"),
    (ast.JSONBExtract, "#>"),
    (ast.JSONBExtractScalar, "#>>"),
    (ast.JSONBDeleteAtPath, "#-"),
    (ast.JSONBContainsTopKey, "?"),
    (ast.JSONBContainsAnyTopKeys, "?|"),
    (ast.JSONBContainsAllTopKeys, "?&"),
    (ast.ArrayContainsAll, "@>"),
    (ast.ArrayContainedBy, "<@"),
    (ast.ArrayOverlaps, "&&"),
    (ast.JSONBPathExists, "@?"),
)


def _register_all() -> None:
    for kind, name in _OPERATORS:
        register(kind, _operator(name), "this", "expression")
    register(ast.Bracket, _subscript)
    register(ast.Dot, _field, "this", "expression")
    register(ast.JSONBPathMatches, _match, "this", "expression")
    register(ast.AtTimeZone, _at_time_zone)


_register_all()
