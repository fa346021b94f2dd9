"""Expressions as Spark SQL.

An expression that Spark computes exactly as the grid does is written in its own words (*native*).
Everything else runs in Spark's Python workers by the grid's own evaluator: a call of a function
that stands for the whole expression. It is the whole expression, not the part that Spark lacks,
because Spark computes functions of Python for all rows first, also in arms of CASE that are not
taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from remuda.datatypes.sql import Kind, SqlType
from remuda.plan.codec import encode
from remuda.plan.expression import (
    Call,
    Case,
    Cast,
    ColumnId,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    Subquery,
    transform,
    walk,
)
from remuda.plan.functions.catalog import is_volatile
from remuda.sql.spark_sql.casts import native_cast
from remuda.sql.spark_sql.literals import COMPARABLE, literal, text, type_name
from remuda.sql.spark_sql.refusal import refused


def column(identity: ColumnId) -> str:
    return f"c{identity}"


@dataclass(frozen=True, slots=True)
class GridFunction:
    """A function to register with Spark under ``name``. ``expression`` is encoded
    (``plan.codec``); its columns are the arguments, numbered from 0."""

    name: str
    expression: bytes
    arguments: tuple[SqlType, ...]
    result: SqlType


class Expressions:
    """``functions`` are those that the texts made so far call."""

    def __init__(self) -> None:
        self.functions: dict[str, GridFunction] = {}

    def text(self, expression: Expression) -> str:
        """Raises NotOnSpark."""
        found = native(expression)
        return self._function(expression) if found is None else found

    def _function(self, expression: Expression) -> str:
        if is_volatile(expression):
            raise refused("an expression whose value is different each time it is computed")
        used: dict[ColumnId, int] = {}
        types: list[SqlType] = []
        for part in walk(expression):
            if isinstance(part, Parameter | Subquery):
                raise refused(f"a {type(part).__name__.lower()} that is left in an expression")
            if isinstance(part, ColumnRef) and part.column not in used:
                used[part.column] = len(used)
                types.append(part.type)
        for sql_type in (*types, expression.type):
            type_name(sql_type)
        if not used:
            raise refused("an expression without columns that has no constant value")

        def numbered(part: Expression) -> Expression:
            if isinstance(part, ColumnRef):
                return ColumnRef(part.type, used[part.column], "")
            return part

        body = encode(transform(expression, numbered))
        name = "remuda_" + hashlib.sha256(body).hexdigest()[:24]
        self.functions[name] = GridFunction(name, body, tuple(types), expression.type)
        return f"{name}({', '.join(column(identity) for identity in used)})"


def native(expression: Expression) -> str | None:
    """In Spark's own words; None if they would not give the same for all values."""
    match expression:
        case ColumnRef():
            return column(expression.column)
        case Literal(value=value):
            return literal(value, expression.type)
        case Cast(operand=operand):
            inner = native(operand)
            return None if inner is None else native_cast(inner, operand.type, expression.type)
        case Case(branches=branches, otherwise=otherwise):
            parts = _all([p for branch in branches for p in branch] + [otherwise])
            if parts is None:
                return None
            arms = [f"WHEN {w} THEN {t}" for w, t in zip(parts[:-1:2], parts[1::2], strict=True)]
            return f"CASE {' '.join(arms)} ELSE {parts[-1]} END"
        case InList(operand=operand, values=values):
            if operand.type.kind not in COMPARABLE:
                return None
            parts = _all([operand, *values])
            return None if parts is None else f"({parts[0]} IN ({', '.join(parts[1:])}))"
        case Call():
            return _native_call(expression)
        case _:
            return None


def _all(expressions: list[Expression]) -> list[str] | None:
    found: list[str] = []
    for expression in expressions:
        part = native(expression)
        if part is None:
            return None
        found.append(part)
    return found


def _native_call(call: Call) -> str | None:
    make = _NATIVE.get(call.function)
    if make is None:
        return None
    parts = _all(list(call.arguments))
    return None if parts is None else make(call, parts)


_Make = Callable[[Call, list[str]], str | None]


def _comparable(call: Call) -> bool:
    return all(argument.type.kind in COMPARABLE for argument in call.arguments)


def _comparison(operator: str) -> _Make:
    def make(call: Call, parts: list[str]) -> str | None:
        return f"({parts[0]} {operator} {parts[1]})" if _comparable(call) else None

    return make


def _distinct(call: Call, parts: list[str]) -> str | None:
    return f"(NOT ({parts[0]} <=> {parts[1]}))" if _comparable(call) else None


def _joined(word: str) -> _Make:
    return lambda _, parts: "(" + f" {word} ".join(parts) + ")"


def _after(word: str) -> _Make:
    return lambda _, parts: f"({parts[0]} {word})"


def _choice(function: str, *, compares: bool) -> _Make:
    def make(call: Call, parts: list[str]) -> str | None:
        if compares and not _comparable(call):
            return None
        if len(parts) == 1:
            return parts[0]
        return f"{function}({', '.join(parts)})"

    return make


def _additive(operator: str) -> _Make:
    """Whole numbers and decimals: Spark raises where the result does not fit, too. Floats are the
    grid's, which raises on overflow where Spark gives infinity."""

    def make(call: Call, parts: list[str]) -> str | None:
        left, right = (argument.type for argument in call.arguments)
        if call.type.is_integer and left.is_integer and right.is_integer:
            return f"({parts[0]} {operator} {parts[1]})"
        if call.type.kind is not Kind.DECIMAL or not _decimals(call):
            return None
        scales = (left.scale or 0, right.scale or 0)
        wanted = sum(scales) if operator == "*" else max(scales)
        if wanted != call.type.scale:
            return None
        return f"CAST({parts[0]} {operator} {parts[1]} AS {type_name(call.type)})"

    return make


def _decimals(call: Call) -> bool:
    return all(argument.type.kind is Kind.DECIMAL for argument in call.arguments)


def _plus(call: Call, parts: list[str]) -> str | None:
    if call.type.kind is Kind.DATE:
        day, days = (0, 1) if call.arguments[0].type.kind is Kind.DATE else (1, 0)
        return _moved(call, parts, day, days, "date_add")
    return _additive("+")(call, parts)


def _minus(call: Call, parts: list[str]) -> str | None:
    left, right = (argument.type for argument in call.arguments)
    if call.type.kind is Kind.DATE:
        return _moved(call, parts, 0, 1, "date_sub")
    if left.kind is Kind.DATE and right.kind is Kind.DATE:
        return f"datediff({parts[0]}, {parts[1]})"
    return _additive("-")(call, parts)


def _moved(call: Call, parts: list[str], day: int, days: int, function: str) -> str | None:
    """Only by a constant: more might leave the range of dates, which Spark does not look at."""
    by = call.arguments[days]
    if not isinstance(by, Literal) or not isinstance(by.value, int) or abs(by.value) > 100_000:
        return None
    return f"{function}({parts[day]}, {parts[days]})"


def _quotient(call: Call, parts: list[str]) -> str | None:
    if not call.type.is_integer:
        return None
    return f"CAST({parts[0]} DIV {parts[1]} AS {type_name(call.type)})"


def _remainder(call: Call, parts: list[str]) -> str | None:
    return f"({parts[0]} % {parts[1]})" if call.type.is_integer else None


def _negated(call: Call, parts: list[str]) -> str | None:
    if not (call.type.is_numeric and call.arguments[0].type == call.type):
        return None
    return f"(- {parts[0]})"


def _absolute(call: Call, parts: list[str]) -> str | None:
    return f"abs({parts[0]})" if call.arguments[0].type == call.type else None


_FIELDS: Final = {
    "quarter": "quarter({0})",
    "month": "month({0})",
    "day": "day({0})",
    "doy": "dayofyear({0})",
    "dow": "(dayofweek({0}) - 1)",
    "week": "weekofyear({0})",
    # The grid has no year 0: before Christ comes the year -1.
    "year": "CASE WHEN year({0}) <= 0 THEN year({0}) - 1 ELSE year({0}) END",
}
_CLOCK_FIELDS: Final = {"hour": "hour({0})", "minute": "minute({0})"}
_MOMENTS: Final = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def _extract(call: Call, parts: list[str]) -> str | None:
    field, source = call.arguments
    if not isinstance(field, Literal) or source.type.kind not in (Kind.DATE, *_MOMENTS):
        return None
    form = _FIELDS.get(str(field.value))
    if form is None and source.type.kind in _MOMENTS:
        form = _CLOCK_FIELDS.get(str(field.value))
    return None if form is None else f"CAST({form.format(parts[1])} AS {type_name(call.type)})"


_ESCAPE: Final = "!"
"""Spark wants a plain text there, whatever stands in the pattern."""


def _like(call: Call, parts: list[str]) -> str | None:
    """Spark takes an escape only before what it can escape, so the pattern is written anew."""
    pattern = call.arguments[1]
    escape = call.arguments[2] if len(call.arguments) > 2 else None
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    mark = "\\"
    if escape is not None:
        if not isinstance(escape, Literal) or not isinstance(escape.value, str):
            return None
        mark = escape.value
    written, rest = "", pattern.value
    while rest:
        character, rest = rest[0], rest[1:]
        if mark and character == mark:
            if not rest:
                return None  # the grid raises
            character, rest = rest[0], rest[1:]
            written += _ESCAPE + character if character in ("%", "_", _ESCAPE) else character
        else:
            written += _ESCAPE * 2 if character == _ESCAPE else character
    return f"({parts[0]} LIKE {text(written)} ESCAPE '{_ESCAPE}')"


def _substring(call: Call, parts: list[str]) -> str | None:
    """From a place inside the text, and no negative length: the rest is different."""
    if not call.arguments[0].type.is_text:
        return None
    numbers = [a.value if isinstance(a, Literal) else None for a in call.arguments[1:]]
    if not all(isinstance(n, int) for n in numbers):
        return None
    start, *length = numbers
    if not isinstance(start, int) or start < 1 or any(isinstance(n, int) and n < 0 for n in length):
        return None
    return f"substring({', '.join(parts)})"


def _length(_call: Call, parts: list[str]) -> str | None:
    return f"length({parts[0]})"


def _concatenated(call: Call, parts: list[str]) -> str | None:
    if not all(argument.type.is_text for argument in call.arguments):
        return None
    return f"concat({parts[0]}, {parts[1]})"


def _starts(_call: Call, parts: list[str]) -> str | None:
    return f"startswith({parts[0]}, {parts[1]})"


_NATIVE: Final[dict[str, _Make]] = {
    **{operator: _comparison(operator) for operator in ("=", "<>", "<", "<=", ">", ">=")},
    "is_not_distinct_from": _comparison("<=>"),
    "is_distinct_from": _distinct,
    "and": _joined("AND"),
    "or": _joined("OR"),
    "not": lambda _, parts: f"(NOT {parts[0]})",
    "is_null": _after("IS NULL"),
    "is_not_null": _after("IS NOT NULL"),
    "is_true": _after("IS TRUE"),
    "is_false": _after("IS FALSE"),
    "is_not_true": _after("IS NOT TRUE"),
    "is_not_false": _after("IS NOT FALSE"),
    "coalesce": _choice("coalesce", compares=False),
    "nullif": _choice("nullif", compares=True),
    "greatest": _choice("greatest", compares=True),
    "least": _choice("least", compares=True),
    "+": _plus,
    "-": _minus,
    "*": _additive("*"),
    "/": _quotient,
    "%": _remainder,
    "neg": _negated,
    "abs": _absolute,
    "extract": _extract,
    "like": _like,
    "substring": _substring,
    "length": _length,
    "||": _concatenated,
    "starts_with": _starts,
}
"""Functions that Spark has with the same answer for all values, NULLs, errors and types."""
