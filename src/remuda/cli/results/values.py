"""Values as text, in a table, in CSV and in JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal

from remuda.datatypes.jsons import from_python, json_text
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.arraytext import array_text, row_text


def show(value: object, sql_type: SqlType | None = None) -> str:
    """A value as PostgreSQL prints it; ``sql_type`` tells JSON from arrays and rows."""
    kind = None if sql_type is None else sql_type.kind
    if kind is Kind.JSON:
        return json_text(from_python(value))
    if isinstance(value, list | tuple):
        return _show_nested(value, sql_type)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ")
        return text.removesuffix(":00") if value.tzinfo is not None else text
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float):
        return _show_float(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


def _show_nested(value: Sequence[object], sql_type: SqlType | None) -> str:
    """``{1,NULL,"a b"}`` or ``(1,,"a b")``; truth values are one letter there."""
    is_row = sql_type is not None and sql_type.kind is Kind.ROW
    types = _part_types(value, sql_type)
    items = [
        None if item is None else show(item, t)[:1] if isinstance(item, bool) else show(item, t)
        for item, t in zip(value, types, strict=True)
    ]
    return row_text(items) if is_row else array_text(items)


def _part_types(value: Sequence[object], sql_type: SqlType | None) -> list[SqlType | None]:
    if sql_type is None:
        return [None] * len(value)
    if sql_type.element is not None:
        return [sql_type.element] * len(value)
    return [t for _, t in sql_type.fields]


def csv_field(text: str, separator: str = ",") -> str:
    """A field of CSV, in quotes if it needs them."""
    marks = (separator, '"', "\n", "\r")
    if text and not any(mark in text for mark in marks) and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


def json_value(value: object, sql_type: SqlType | None = None) -> str:
    """A value as JSON; ``sql_type`` tells JSON from arrays and rows."""
    if sql_type is not None and sql_type.kind is Kind.JSON and value is not None:
        return show(value, sql_type)
    if isinstance(value, list | tuple):
        types = _part_types(value, sql_type)
        items = [json_value(item, t) for item, t in zip(value, types, strict=True)]
        if sql_type is not None and sql_type.kind is Kind.ROW:
            names = [json.dumps(name, ensure_ascii=False) for name, _ in sql_type.fields]
            pairs = zip(names, items, strict=True)
            return "{" + ", ".join(f"{name}: {item}" for name, item in pairs) + "}"
        return "[" + ", ".join(items) + "]"
    if isinstance(value, Decimal) and value.is_finite():
        return show(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    return json.dumps(show(value), ensure_ascii=False)


def _show_float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    text = repr(value)
    return text.removesuffix(".0")
