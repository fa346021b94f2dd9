"""``jsonb_to_record`` and ``jsonb_to_recordset``: members of objects as columns of the types that
a column definition list gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from remuda.datatypes.jsons import Json, json_text, parse_json
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.text import parse_text, type_name
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InputError, InvalidText


def _member(value: Json, target: SqlType) -> PhysicalValue:
    """A JSON value as a physical value of ``target``."""
    if target.kind is Kind.JSON:
        return json_text(value)
    if value is None:
        return None
    if target.element is not None and isinstance(value, list):
        return tuple(_member(item, target.element) for item in value)
    if target.element is not None and not isinstance(value, str):
        raise InvalidText(
            "expected JSON array", detail=f"The column is of type {type_name(target)}."
        )
    text = value if isinstance(value, str) else json_text(value)
    return parse_text(text, target)


def _columns(rows: Sequence[Any], names: Sequence[str], types: Sequence[SqlType]) -> Iterator[Any]:
    yield tuple(
        [_member(row.get(name), found) for row in rows]
        for name, found in zip(names, types, strict=True)
    )


def record(text: str, names: tuple[str, ...], *, types: Sequence[SqlType]) -> Iterator[Any]:
    value = parse_json(text)
    if not isinstance(value, dict):
        kind = "an array" if isinstance(value, list) else "a scalar"
        raise InputError(f"cannot call jsonb_to_record on {kind}")
    return _columns([value], names, types)


def recordset(text: str, names: tuple[str, ...], *, types: Sequence[SqlType]) -> Iterator[Any]:
    value = parse_json(text)
    if not isinstance(value, list):
        kind = "an object" if isinstance(value, dict) else "a scalar"
        raise InputError(f"cannot call jsonb_to_recordset on {kind}")
    for item in value:
        if not isinstance(item, dict):
            raise InputError("argument of jsonb_to_recordset must be an array of objects")
    return _columns(value, names, types)
