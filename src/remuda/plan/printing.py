"""Expressions as SQL-like text: EXPLAIN, error messages, tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta
from typing import TypeAlias

from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.intervals import interval_text, unpack
from remuda.datatypes.uuids import uuid_text
from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import (
    AggregateCall,
    ArgumentOrder,
    Call,
    Case,
    Cast,
    ColumnId,
    ColumnRef,
    EachOf,
    Expression,
    InList,
    Literal,
    Parameter,
    SortKey,
    Subquery,
    SubqueryKind,
)
from remuda.plan.functions.arrays import OPERATORS as ARRAY_OPERATORS
from remuda.plan.functions.json import OPERATORS as JSON_OPERATORS

ColumnNames: TypeAlias = Callable[[ColumnId, str | None], str]
"""The text of a column, given its id and the name that the expression carries, if it does."""

LIST_ITEMS_SHOWN = 10
TEXT_SHOWN = 60

_OR, _AND, _NOT, _COMPARE, _CONCAT, _ADD, _MULTIPLY, _UNARY, _ATOM = range(9)
_INFIX = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "like", "ilike"), _COMPARE),
    **dict.fromkeys(("is_distinct_from", "is_not_distinct_from"), _COMPARE),
    **dict.fromkeys(("~", "~*", "similar_to"), _COMPARE),
    **dict.fromkeys(("||", *JSON_OPERATORS, *ARRAY_OPERATORS), _CONCAT),
    **dict.fromkeys(("&", "|", "#", "<<", ">>"), _CONCAT),
    **dict.fromkeys(("+", "-"), _ADD),
    **dict.fromkeys(("*", "/", "%"), _MULTIPLY),
}
_POSTFIX = {
    name: name.replace("_", " ").upper()
    for name in (
        "is_null",
        "is_not_null",
        "is_true",
        "is_false",
        "is_not_true",
        "is_not_false",
    )
}


def own_name(column: ColumnId, name: str | None) -> str:
    """The name in the expression itself."""
    return name or f"#{column}"


def expression_text(expression: Expression, names: ColumnNames = own_name) -> str:
    return _text(expression, names, _OR)


def aggregate_text(call: AggregateCall, names: ColumnNames = own_name) -> str:
    texts = [_text(argument, names, _OR) for argument in call.arguments]
    inside = ", ".join(texts) if texts else "*"
    if call.distinct:
        inside = f"DISTINCT {inside}"
    if call.order:
        inside += f" ORDER BY {_order_text(call.order, names)}"
    text = f"{call.function}({inside})"
    if call.filter is not None:
        text += f" FILTER (WHERE {_text(call.filter, names, _OR)})"
    return text


def _order_text(order: Iterable[ArgumentOrder], names: ColumnNames) -> str:
    return ", ".join(
        _text(key.expression, names, _OR) + _direction(key.descending, key.nulls_first)
        for key in order
    )


def _direction(descending: bool, nulls_first: bool) -> str:
    """NULLS FIRST or LAST is printed only where it differs from PostgreSQL's default."""
    text = " DESC" if descending else ""
    if nulls_first != descending:
        text += " NULLS FIRST" if nulls_first else " NULLS LAST"
    return text


def sort_text(keys: Iterable[SortKey], names: ColumnNames = own_name) -> str:
    return ", ".join(
        names(key.column, None) + _direction(key.descending, key.nulls_first) for key in keys
    )


def value_text(value: PhysicalValue, type_: SqlType) -> str:
    """A physical value as a SQL literal."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        shown = value if len(value) <= TEXT_SHOWN else value[:TEXT_SHOWN] + "…"
        return "'" + shown.replace("'", "''") + "'"
    if type_.kind is Kind.INTERVAL and isinstance(value, bytes):
        return f"INTERVAL '{interval_text(*unpack(value))}'"
    if type_.kind is Kind.UUID and isinstance(value, bytes):
        return f"UUID '{uuid_text(value)}'"
    if isinstance(value, tuple):
        return _nested_text(value, type_)
    if isinstance(value, bytes):
        return "'\\x" + value[: TEXT_SHOWN // 2].hex() + "'"
    if type_.kind is Kind.DECIMAL and isinstance(value, int):
        return _decimal_text(value, type_.scale or 0)
    if isinstance(value, int) and type_.kind in _TEMPORAL:
        return _TEMPORAL[type_.kind](value)
    return str(value)


def _nested_text(value: tuple[PhysicalValue, ...], type_: SqlType) -> str:
    if type_.element is None:
        fields = zip(value, type_.fields, strict=True)
        return "ROW(" + ", ".join(value_text(item, t) for item, (_, t) in fields) + ")"
    shown = [value_text(item, type_.element) for item in value[:LIST_ITEMS_SHOWN]]
    return f"ARRAY[{', '.join(shown)}{', …' if len(value) > LIST_ITEMS_SHOWN else ''}]"


def _decimal_text(unscaled: int, scale: int) -> str:
    if scale == 0:
        return str(unscaled)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def _date_text(days: int) -> str:
    try:
        return f"DATE '{date(1970, 1, 1) + timedelta(days=days)}'"
    except OverflowError:
        return f"DATE '1970-01-01' + {days}"


def _time_text(micros: int) -> str:
    return f"TIME '{(datetime(1970, 1, 1) + timedelta(microseconds=micros)).time()}'"  # noqa: DTZ001


def _timestamp_text(micros: int) -> str:
    try:
        return f"TIMESTAMP '{datetime(1970, 1, 1) + timedelta(microseconds=micros)}'"  # noqa: DTZ001
    except OverflowError:
        return f"TIMESTAMP '1970-01-01' + {micros} us"


_TEMPORAL: dict[Kind, Callable[[int], str]] = {
    Kind.DATE: _date_text,
    Kind.TIME: _time_text,
    Kind.TIMESTAMP: _timestamp_text,
    Kind.TIMESTAMPTZ: _timestamp_text,
}


def _text(expression: Expression, names: ColumnNames, outer: int) -> str:
    """``outer`` is the precedence of the surroundings: weaker operators get parentheses."""
    match expression:
        case ColumnRef(column=column, name=name):
            return names(column, name)
        case Literal(type=type_, value=value):
            return value_text(value, type_)
        case Parameter(index=index):
            return f"${index + 1}"
        case Cast(type=type_, operand=operand):
            return f"{_text(operand, names, _ATOM)}::{type_}"
        case Case(branches=branches, otherwise=otherwise):
            arms = " ".join(
                f"WHEN {_text(when, names, _OR)} THEN {_text(then, names, _OR)}"
                for when, then in branches
            )
            return f"CASE {arms} ELSE {_text(otherwise, names, _OR)} END"
        case InList(operand=operand, values=values):
            text = f"{_text(operand, names, _CONCAT)} IN ({_list_text(values, names)})"
            return _parenthesized(text, _COMPARE, outer)
        case EachOf(array=array):
            return f"each of {_text(array, names, _ATOM)}"
        case Call():
            return _call_text(expression, names, outer)
        case Subquery():
            return _subquery_text(expression, names)
        case _:
            return type(expression).__name__


def _subquery_text(subquery: Subquery, names: ColumnNames) -> str:
    """The question to the subquery; its plan is printed elsewhere, if at all."""
    text = "subquery"
    given = [
        f"{names(parameter, None)} := {_text(argument, names, _OR)}"
        for parameter, argument in zip(subquery.parameters, subquery.arguments, strict=True)
        if not (isinstance(argument, ColumnRef) and argument.column == parameter)
    ]
    if given:
        text += f"({', '.join(given)})"
    match subquery.kind:
        case SubqueryKind.EXISTS:
            return f"EXISTS {text}"
        case SubqueryKind.ANY:
            assert subquery.condition is not None
            return f"ANY {text} ({_text(subquery.condition, names, _OR)})"
        case SubqueryKind.SCALAR:
            column = subquery.plan.output[subquery.column]
            return f"{text}.{names(column.id, column.name)}"


def _list_text(values: tuple[Expression, ...], names: ColumnNames) -> str:
    shown = [_text(value, names, _OR) for value in values[:LIST_ITEMS_SHOWN]]
    if len(values) > LIST_ITEMS_SHOWN:
        shown.append(f"… {len(values)} values")
    return ", ".join(shown)


def _call_text(call: Call, names: ColumnNames, outer: int) -> str:
    name, arguments = call.function, call.arguments
    if name in _INFIX and len(arguments) >= 2:
        level = _INFIX[name]
        word = name.replace("_", " ").upper()
        parts = [_text(arguments[0], names, level)]
        # Same level on the right needs parentheses: a - (b - c). AND and OR are flat.
        inner = level if level <= _AND else level + 1
        parts += [_text(argument, names, inner) for argument in arguments[1:2]]
        if name in ("and", "or", "||"):
            parts += [_text(argument, names, inner) for argument in arguments[2:]]
        text = f" {word} ".join(parts)
        if name in ("like", "ilike") and len(arguments) == 3:
            text += f" ESCAPE {_text(arguments[2], names, _CONCAT)}"
        return _parenthesized(text, level, outer)
    if name in _POSTFIX:
        text = f"{_text(arguments[0], names, _CONCAT)} {_POSTFIX[name]}"
        return _parenthesized(text, _COMPARE, outer)
    if name == "not":
        return _parenthesized(f"NOT {_text(arguments[0], names, _COMPARE)}", _NOT, outer)
    if name == "neg":
        return _parenthesized(f"-{_text(arguments[0], names, _ATOM)}", _UNARY, outer)
    inside = ", ".join(_text(argument, names, _OR) for argument in arguments)
    return f"{name}({inside})"


def _parenthesized(text: str, level: int, outer: int) -> str:
    return f"({text})" if level < outer else text
