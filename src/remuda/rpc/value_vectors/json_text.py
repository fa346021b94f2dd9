"""Values as JSON has them: for clients that do not know lists and maps, and for the web."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa


def json_values(array: pa.Array) -> list[Any]:
    """Python values that ``json`` can write, one for each of ``array`` (external Arrow form).

    Numbers stay numbers, but DECIMALs and what is no number in JSON (NaN, the infinities) become
    texts; dates and times ISO 8601 texts, bytes Base64; JSON values what they say.
    """
    convert = _converter(array.type)
    if isinstance(array.type, pa.BaseExtensionType) and not isinstance(array.type, pa.UuidType):
        array = array.storage
    return [None if value is None else convert(value) for value in array.to_pylist()]


def _converter(arrow: pa.DataType) -> Callable[[Any], Any]:
    if isinstance(arrow, pa.JsonType):
        return json.loads
    if pa.types.is_list(arrow):
        element = _converter(arrow.value_type)
        return lambda items: [None if item is None else element(item) for item in items]
    if pa.types.is_struct(arrow):
        fields = [(field.name, _converter(field.type)) for field in arrow]
        return lambda row: {
            name: None if row[name] is None else convert(row[name]) for name, convert in fields
        }
    return _scalar


def _scalar(value: Any) -> Any:
    match value:
        case bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case Decimal():
            return format(value, "f")
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case UUID():
            return str(value)
        case timedelta():
            return str(value)
        case _:
            return iso_interval(value.months, value.days, value.nanoseconds // 1000)


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def iso_interval(months: int, days: int, micros: int) -> str:
    """ISO 8601, as Drill writes intervals: ``P1Y2M3DT4H5M6.5S``."""
    years, rest = abs(months) // 12, abs(months) % 12
    sign = "-" if months < 0 else ""
    dates = f"{sign}{years}Y" * (years > 0) + f"{sign}{rest}M" * (rest > 0)
    dates += f"{days}D" * (days != 0)
    seconds, fraction = divmod(abs(micros), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if micros < 0 else ""
    times = f"{sign}{hours}H" * (hours > 0) + f"{sign}{minutes}M" * (minutes > 0)
    if seconds or fraction:
        shown = f"{seconds}.{fraction:06}".rstrip("0") if fraction else str(seconds)
        times += f"{sign}{shown}S"
    if not dates and not times:
        return "PT0S"
    return "P" + dates + ("T" + times if times else "")
