"""Handlers of function calls, of the calls with a grammar of their own, and of intervals."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    FRACTION_MAX,
    INTEGER,
    JSON,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    VARCHAR,
    Kind,
    SqlType,
    restricted,
)
from remuda.datatypes.texts.text import type_name
from remuda.errors import (
    AmbiguousFunction,
    GroupingError,
    InvalidParameterValue,
    NotSupported,
    SqlSyntaxError,
    UndefinedFunction,
    WrongObjectType,
)
from remuda.plan.expression import Call, Expression, Literal
from remuda.plan.functions.catalog import (
    AGGREGATE_FUNCTIONS,
    ALIASES,
    INTERNAL,
    OPERATORS,
    SCALAR_FUNCTIONS,
    WINDOW_FUNCTIONS,
    callable_names,
    extract_signature,
)
from remuda.plan.functions.datetime_fields import (
    EXTRACT_FIELDS,
    TIME_FIELDS,
    TRUNC_FIELDS,
    ZONE_FIELDS,
)
from remuda.plan.functions.set_functions import SET_FUNCTIONS
from remuda.sql.expressions.aggregates import call_inside
from remuda.sql.expressions.conversion import Converter, is_untyped
from remuda.sql.expressions.expressions import (
    CALL_HANDLERS,
    ExpressionBinder,
    Handler,
    register,
    register_call,
)
from remuda.sql.expressions.hypothetical import hypothetical
from remuda.sql.expressions.intervals import make_interval
from remuda.sql.expressions.nested import at_time_zone
from remuda.sql.expressions.row_values import row_value
from remuda.sql.expressions.variadic import variadic_call
from remuda.sql.scope.context import Context
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees import ast

_NOT_CALLABLE: Final = OPERATORS | INTERNAL
_TYPES_AS_FUNCTIONS: Final = {
    "bool": BOOLEAN,
    "bytea": BYTEA,
    "float4": REAL,
    "float8": DOUBLE,
    "int2": SMALLINT,
    "int4": INTEGER,
    "int8": BIGINT,
    "json": JSON,
    "jsonb": JSON,
    "text": VARCHAR,
    "timestamptz": TIMESTAMPTZ,
    "uuid": UUID,
    "varchar": VARCHAR,
}
"""Types whose name with one argument is a cast, where no function has the name."""


def function_name(node: ast.Node) -> str:
    """The name in ``name(...)``, in lower case unless it is quoted."""
    return str(node.this) if node.args.get("quoted") else str(node.this).lower()


def _to_precision(context: Context, bound: Expression, digits: ast.Node | None) -> Expression:
    """``current_timestamp(digits)``. Raises SqlSyntaxError unless ``digits`` is a whole number."""
    if digits is None:
        return bound
    known = _whole(digits)
    if known is None:
        raise context.error(SqlSyntaxError, "a precision is a whole number", digits)
    kept = restricted(bound.type, min(known, FRACTION_MAX))
    return Converter(context).kept(bound, kept, digits)


def _whole(node: object) -> int | None:
    if isinstance(node, ast.Literal) and not node.is_string and node.this.isdecimal():
        return int(node.this)
    return None


# --- plain calls -------------------------------------------------------------------------------


def _call(binder: ExpressionBinder, node: ast.Call) -> Expression:
    name = function_name(node)
    if name == "row":
        return row_value(binder, node)
    if name == "timezone" and len(node.expressions) == 2:
        zone, source = node.expressions
        return at_time_zone(binder, zone, source, node)
    if name in AGGREGATE_FUNCTIONS:
        return binder.surroundings.aggregate(name, node, None)
    if name in SET_FUNCTIONS:
        return binder.surroundings.set_function(name, node.expressions, node)
    if name == "grouping":
        return binder.surroundings.grouping_operation(node)
    if name in WINDOW_FUNCTIONS:
        raise binder.context.error(
            WrongObjectType, f"window function {name} requires an OVER clause", node
        )
    if name in CALL_HANDLERS:
        return CALL_HANDLERS[name](binder, node)
    if node.expressions and isinstance(node.expressions[-1], ast.Variadic):
        return variadic_call(binder, name, node)
    catalog_name = ALIASES.get(name, name)
    if catalog_name not in SCALAR_FUNCTIONS or name in _NOT_CALLABLE:
        if name in _TYPES_AS_FUNCTIONS and len(node.expressions) == 1:
            (operand,) = node.expressions
            return binder.convert.explicit(binder.bind(operand), _TYPES_AS_FUNCTIONS[name], node)
        raise _undefined(binder, node, name)
    if catalog_name == "make_interval":
        return make_interval(binder, node)
    return binder.call(catalog_name, *node.expressions, node=node, shown=name)


def _strpos(binder: ExpressionBinder, node: ast.Call) -> Expression:
    return binder.call("position", *reversed(node.expressions), node=node, shown="strpos")


def _log(binder: ExpressionBinder, node: ast.Call) -> Expression:
    """``log(x)`` is of base 10, ``log(b, x)`` of base b."""
    name = "log10" if len(node.expressions) == 1 else "log"
    return binder.call(name, *node.expressions, node=node, shown="log")


def _undefined(binder: ExpressionBinder, node: ast.Node, name: str) -> UndefinedFunction:
    arguments = node.expressions
    types = []
    for argument in arguments:
        if isinstance(argument, ast.Star):
            types.append("*")
            continue
        bound = binder.bind(argument)
        types.append("unknown" if is_untyped(bound) else type_name(bound.type))
    return binder.context.error(
        UndefinedFunction,
        f"function {name}({', '.join(types)}) does not exist",
        node,
        hint=did_you_mean(name, callable_names(), "the function"),
    )


def _filtered(binder: ExpressionBinder, node: ast.Filter) -> Expression:
    """``aggregate(...) FILTER (WHERE condition)``"""
    inner, call = node.this, call_inside(node.this)
    if isinstance(inner, ast.WithinGroup):
        found = hypothetical(binder, inner, node.args["expression"].this)
        if found is not None:
            return found
    if isinstance(call, ast.Call) and function_name(call) in AGGREGATE_FUNCTIONS:
        condition = node.args["expression"].this
        return binder.surroundings.aggregate(function_name(call), inner, condition)
    raise binder.context.error(
        GroupingError, "FILTER is specified, but the function is not an aggregate", inner
    )


def _within_group(binder: ExpressionBinder, node: ast.WithinGroup) -> Expression:
    """``aggregate(...) WITHIN GROUP (ORDER BY ...)``"""
    call = node.this
    if isinstance(call, ast.Call) and function_name(call) in AGGREGATE_FUNCTIONS:
        return binder.surroundings.aggregate(function_name(call), node, None)
    found = hypothetical(binder, node, None)
    if found is not None:
        return found
    raise binder.context.error(
        WrongObjectType, "WITHIN GROUP specified, but the function is not an aggregate", call
    )


def _constant_call(name: str) -> Handler:
    def bind(binder: ExpressionBinder, node: ast.Node) -> Expression:
        return _to_precision(binder.context, binder.call(name, node=node), node.args.get("this"))

    return bind


def _now_as(target: SqlType) -> Handler:
    """localtimestamp, localtime, current_time (PostgreSQL's has a time zone: here all are UTC)"""

    def bind(binder: ExpressionBinder, node: ast.Node) -> Expression:
        now = binder.call("current_timestamp", node=node)
        made = binder.convert.explicit(now, target, node)
        return _to_precision(binder.context, made, node.args.get("this"))

    return bind


def _age(binder: ExpressionBinder, node: ast.Call) -> Expression:
    """``age(x)`` is counted from the midnight that today began with."""
    later = [ast.CurrentDate()] if len(node.expressions) == 1 else []
    return binder.call("age", *later, *node.expressions, node=node)


def _overlaps(binder: ExpressionBinder, node: ast.Overlaps) -> Expression:
    """``(start, end) OVERLAPS (start, end)``; an end may be given as the length of the period."""
    points: list[Expression] = []
    places: list[ast.Node] = []
    for side in (node.this, node.args["expression"]):
        parts = list(side.expressions) if isinstance(side, ast.Tuple) else []
        if len(parts) != 2:
            raise binder.context.error(
                SqlSyntaxError, "OVERLAPS compares two pairs: (start, end) OVERLAPS (start, end)",
                side,
            )  # fmt: skip
        start, end = (binder.bind(part) for part in parts)
        if end.type.kind is Kind.INTERVAL:
            end = binder.convert.call("+", [start, end], parts, node)
        points += [start, end]
        places += parts
    return binder.convert.call("overlaps", points, places, node, "OVERLAPS")


# --- calls with words inside -------------------------------------------------------------------


def _extract(binder: ExpressionBinder, node: ast.Extract) -> Expression:
    return _extract_call(binder, str(node.field.this), node.source)


def _date_part(binder: ExpressionBinder, node: ast.Call) -> Expression:
    """``date_part('field', x)``: DOUBLE PRECISION, in contrast to EXTRACT."""
    field = _field_literal(binder, node, "date_part")
    found = _extract_call(binder, field, node.expressions[1], days_have_hours=True)
    return binder.convert.explicit(found, DOUBLE, node)


def _extract_with_comma(binder: ExpressionBinder, node: ast.Call) -> Expression:
    """``extract('field', x)``"""
    field = _field_literal(binder, node, "extract")
    return _extract_call(binder, field, node.expressions[1])


def _field_literal(binder: ExpressionBinder, node: ast.Call, name: str, most: int = 2) -> str:
    arguments = node.expressions
    if not 2 <= len(arguments) <= most:
        raise binder.context.error(
            UndefinedFunction, f"{name} takes a field and a value: {name}('month', x)", node
        )
    field = arguments[0]
    if not isinstance(field, ast.Literal) or not field.args["is_string"]:
        raise binder.context.unsupported(
            f"{name} with a field that is not a literal",
            field,
            hint="Write the field as a word, such as extract(month FROM x), or use date_part.",
        )
    return str(field.this).lower()


_FIELD_NAMES: Final = """
millennium mil millennia mils; century c cent centuries; decade dec decades decs
year y years yr yrs; quarter quarters qtr; month mon months mons; week w weeks; day d days
hour h hours hr hrs; minute m minutes min mins; second s seconds sec secs
milliseconds millisecond ms msec msecs msecond mseconds
microseconds microsecond us usec usecs usecond useconds
julian j jd; dow dayofweek; doy dayofyear; timezone_hour timezone_h; timezone_minute timezone_m
"""
_FIELD_ALIASES: Final = {
    other: name
    for name, *others in map(str.split, _FIELD_NAMES.strip().replace("\n", ";").split(";"))
    for other in others
}
"""PostgreSQL's other names of the fields of dates and times."""


def _extract_call(
    binder: ExpressionBinder, field: str, source: ast.Node, *, days_have_hours: bool = False
) -> Expression:
    name = field.lower()
    name = _FIELD_ALIASES.get(name, name)
    operand = binder.bind(source)
    if is_untyped(operand):
        operand = binder.convert.typed(operand, TIMESTAMP, source)
    if days_have_hours and operand.type == DATE:
        operand = binder.convert.explicit(operand, TIMESTAMP, source)
    signature = extract_signature(name, operand.type)
    if signature is None:
        if name not in (*EXTRACT_FIELDS, *ZONE_FIELDS):
            raise binder.context.error(
                InvalidParameterValue,
                f'unit "{name}" is not recognized',
                source,
                did_you_mean(name, EXTRACT_FIELDS) or "Units: " + ", ".join(EXTRACT_FIELDS) + ".",
            )
        raise binder.context.error(
            NotSupported,
            f'unit "{name}" not supported for type {type_name(operand.type)}',
            source,
            hint="Cast the value to a TIMESTAMP, DATE, TIME or INTERVAL.",
        )
    return Call(signature.result, "extract", (Literal(VARCHAR, name), operand))


def _date_trunc(binder: ExpressionBinder, node: ast.Call) -> Expression:
    field = _field_literal(binder, node, "date_trunc", 3)
    field = _FIELD_ALIASES.get(field, field)
    unit, source, *zone = node.expressions
    if field not in TRUNC_FIELDS:
        raise binder.context.error(
            InvalidParameterValue,
            f'unit "{field}" is not recognized',
            unit,
            hint=did_you_mean(field, TRUNC_FIELDS) or "Units: " + ", ".join(TRUNC_FIELDS) + ".",
        )
    arguments = [Literal(VARCHAR, field), binder.bind(source)]
    if isinstance(arguments[1], Literal) and is_untyped(arguments[1]) and not zone:
        raise binder.context.error(
            AmbiguousFunction,
            "function date_trunc(unknown, unknown) is not unique",
            source,
            hint="Say which type it is: TIMESTAMP '...', or CAST.",
        )
    if not zone:
        return binder.convert.call("date_trunc", arguments, [unit, source], node)
    moment = binder.convert.implicit(arguments[1], TIMESTAMPTZ, source, "date_trunc's argument")
    where, places = binder.bind(zone[0]), [zone[0], source]
    there = binder.convert.call("timezone", [where, moment], places, node)
    cut = binder.convert.call("date_trunc", [arguments[0], there], [unit, source], node)
    if field in TIME_FIELDS:  # in an hour that comes twice, it stays in the same of both
        less = binder.convert.call("-", [cut, there], [source, source], node)
        return binder.convert.call("+", [moment, less], [source, source], node)
    return binder.convert.call("timezone", [where, cut], places, node)


def _position(binder: ExpressionBinder, node: ast.StrPosition) -> Expression:
    return binder.call("position", node.part, node.text, node=node)


_TRIMS: Final = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def _trim(binder: ExpressionBinder, node: ast.Trim) -> Expression:
    parts = [node.text] + ([] if node.characters is None else [node.characters])
    return binder.call(_TRIMS[node.side], *parts, node=node)


register(ast.Call, _call, "this", "expressions", "quoted")
register_call("strpos", _strpos)
register_call("log", _log)
register_call("age", _age)
register_call("extract", _extract_with_comma)
register_call("date_part", _date_part)
register_call("date_trunc", _date_trunc)
register(ast.Filter, _filtered, "this", "expression")
register(ast.WithinGroup, _within_group, "this", "expression")
register(ast.CurrentDate, _constant_call("current_date"))
register(ast.CurrentTimestamp, _constant_call("current_timestamp"), "this")
register(ast.Localtimestamp, _now_as(TIMESTAMP), "this")
register(ast.Localtime, _now_as(TIME), "this")
register(ast.CurrentTime, _now_as(TIME), "this")
register(ast.Overlaps, _overlaps, "this", "expression")
register(ast.Extract, _extract)
register(ast.StrPosition, _position)
register(ast.Trim, _trim)
