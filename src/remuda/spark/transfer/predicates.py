"""Spark's filters as conditions of the grid's SQL, with parameters.

A filter is only taken when both sides mean the same by it. Spark orders NaN above every number and
finds it equal to itself, so on floating-point columns only comparisons that no NaN can pass are
taken; everything refused here is applied by Spark.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isnan
from typing import Final

from pyspark.sql import datasource as ds

from remuda.datatypes.schema import Column
from remuda.datatypes.sql import Kind

IN_LIST_MAX: Final = 500
"""Values of one IN that are sent along; a longer list stays with Spark."""

_COMPARISONS: Final[Mapping[type[ds.Filter], str]] = {
    ds.EqualTo: "=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}
_NEGATED: Final = {"=": "<>", ">": "<=", ">=": "<", "<": ">=", "<=": ">"}
_SAFE_FOR_NAN: Final = ("=", "<", "<=")


@dataclass(frozen=True, slots=True)
class Condition:
    """``text`` has one ``?`` for each of ``parameters``."""

    text: str
    parameters: tuple[object, ...] = ()


def quote(name: str) -> str:
    """An identifier exactly as it is."""
    return '"' + name.replace('"', '""') + '"'


def condition(filter_: ds.Filter, columns: Mapping[str, Column]) -> Condition | None:
    """The same condition in SQL, or None when Spark has to apply it."""
    if isinstance(filter_, ds.Not):
        return _negation(filter_.child, columns)
    column = _column(filter_, columns)
    if column is None:
        return None
    name = quote(column.name)
    if isinstance(filter_, ds.IsNull):
        return Condition(f"{name} IS NULL")
    if isinstance(filter_, ds.IsNotNull):
        return Condition(f"{name} IS NOT NULL")
    if isinstance(filter_, ds.In):
        return _membership(name, column, filter_.value)
    if isinstance(filter_, ds.EqualNullSafe):
        if filter_.value is None:
            return Condition(f"{name} IS NULL")
        return _comparison(name, column, "=", filter_.value)
    if type(filter_) in _COMPARISONS:
        return _comparison(name, column, _COMPARISONS[type(filter_)], filter_.value)  # type: ignore[attr-defined]
    return _pattern(name, column, filter_)


def conjunction(conditions: Sequence[Condition]) -> Condition:
    """All of them; the empty text when there are none."""
    text = " AND ".join(f"({c.text})" for c in conditions)
    return Condition(text, tuple(p for c in conditions for p in c.parameters))


def _column(filter_: ds.Filter, columns: Mapping[str, Column]) -> Column | None:
    path: tuple[str, ...] = getattr(filter_, "attribute", ())
    return columns.get(path[0]) if len(path) == 1 else None


def _comparison(name: str, column: Column, sign: str, value: object) -> Condition | None:
    if not _comparable(column, value):
        return None
    if column.type.is_float and sign not in _SAFE_FOR_NAN:
        return None
    return Condition(f"{name} {sign} ?", (value,))


def _membership(name: str, column: Column, values: Sequence[object]) -> Condition | None:
    # A NULL in the list can only make the answer unknown, which a filter drops like false.
    present = [value for value in values if value is not None]
    if len(present) > IN_LIST_MAX or not all(_comparable(column, value) for value in present):
        return None
    if not present:
        return Condition("FALSE")
    return Condition(f"{name} IN ({', '.join('?' * len(present))})", tuple(present))


def _negation(child: ds.Filter, columns: Mapping[str, Column]) -> Condition | None:
    column = _column(child, columns)
    if column is None or column.type.is_float:
        return None
    name = quote(column.name)
    if isinstance(child, ds.IsNull):
        return Condition(f"{name} IS NOT NULL")
    if isinstance(child, ds.IsNotNull):
        return Condition(f"{name} IS NULL")
    if isinstance(child, ds.In):
        found = _membership(name, column, child.value)
        if found is None or None in child.value or not found.parameters:
            return None
        return Condition(f"NOT ({found.text})", found.parameters)
    if type(child) in _COMPARISONS:
        sign = _NEGATED[_COMPARISONS[type(child)]]
        return _comparison(name, column, sign, child.value)  # type: ignore[attr-defined]
    found = _pattern(name, column, child)
    return None if found is None else Condition(f"NOT ({found.text})", found.parameters)


def _pattern(name: str, column: Column, filter_: ds.Filter) -> Condition | None:
    value = getattr(filter_, "value", None)
    if not column.type.is_text or not isinstance(value, str):
        return None
    literal = value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    if isinstance(filter_, ds.StringStartsWith):
        return Condition(f"{name} LIKE ?", (literal + "%",))
    if isinstance(filter_, ds.StringEndsWith):
        return Condition(f"{name} LIKE ?", ("%" + literal,))
    if isinstance(filter_, ds.StringContains):
        return Condition(f"{name} LIKE ?", ("%" + literal + "%",))
    return None


def _plain_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return _plain_int(value) or (isinstance(value, Decimal) and value.is_finite())


def _float(value: object) -> bool:
    return _plain_int(value) or (isinstance(value, float) and not isnan(value))


def _text(value: object) -> bool:
    return isinstance(value, str)


def _date(value: object) -> bool:
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


def _naive(value: object) -> bool:
    return isinstance(value, datetime.datetime) and value.tzinfo is None


def _aware(value: object) -> bool:
    return isinstance(value, datetime.datetime) and value.tzinfo is not None


_ACCEPTED: Final[Mapping[Kind, Callable[[object], bool]]] = {
    Kind.BOOLEAN: lambda value: isinstance(value, bool),
    Kind.TINYINT: _plain_int,
    Kind.SMALLINT: _plain_int,
    Kind.INTEGER: _plain_int,
    Kind.BIGINT: _plain_int,
    Kind.REAL: _float,
    Kind.DOUBLE: _float,
    Kind.DECIMAL: _number,
    Kind.CHAR: _text,
    Kind.VARCHAR: _text,
    Kind.BYTEA: lambda value: isinstance(value, bytes),
    Kind.DATE: _date,
    Kind.TIMESTAMP: _naive,
    Kind.TIMESTAMPTZ: _aware,
}


def _comparable(column: Column, value: object) -> bool:
    accepted = _ACCEPTED.get(column.type.kind)
    return accepted is not None and accepted(value)
