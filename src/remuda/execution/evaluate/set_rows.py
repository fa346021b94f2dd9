"""Functions that give rows: from the arguments of one call to pieces of rows.

A piece is a tuple of columns, each a list of physical values or, where there are many, an array in
engine form. A function gives as many pieces as it likes, so that long series are never held whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.jsons import Json, json_text, parse_json
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.intervals import MICROS_PER_DAY, unpack
from remuda.datatypes.times.session_zones import UTC, session_zone
from remuda.datatypes.times.zones import Zone
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InputError, InvalidDatetime
from remuda.execution.evaluate.json_paths import found
from remuda.execution.evaluate.json_records import record, recordset
from remuda.execution.evaluate.points import add_months
from remuda.execution.evaluate.regex import split
from remuda.execution.evaluate.regex_syntax import compiled
from remuda.execution.evaluate.session_zones import move
from remuda.limits import BATCH_ROWS
from remuda.plan.functions.set_functions import VECTOR_SUBSCRIPTS

Column: TypeAlias = list[PhysicalValue] | pa.Array
Piece: TypeAlias = tuple[Column, ...]
SetEvaluator: TypeAlias = Callable[..., Iterator[Piece]]
"""Takes the physical values of the arguments (none of them NULL, unless it is in ``TAKES_NULL``)
and the types of the columns (``types=``)."""

SMALL_PIECE: Final = 1024
"""Up to so many values a list is cheaper than an array."""
_TIMESTAMP_RANGE: Final = range(-211_813_488_000_000_000, 9_223_371_331_200_000_000)


def _integers(start: int, stop: int, step: int, sql_type: SqlType) -> Iterator[Piece]:
    count = max(0, (stop - start) // step + 1)
    arrow = engine_type(sql_type)
    fixed = arrow in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    for first in range(0, count, BATCH_ROWS):
        rows = min(BATCH_ROWS, count - first)
        low = start + first * step
        values = range(low, low + rows * step, step)
        if rows <= SMALL_PIECE or not fixed:
            yield (list(values),)
        else:
            # The last value fits, the one behind it may not.
            numbers = low + np.arange(rows, dtype=np.int64) * step
            yield (pa.array(numbers, type=pa.int64()).cast(arrow),)


def _series(
    start: Any, stop: Any, step: Any = None, zone: str = UTC, *, types: Sequence[SqlType]
) -> Iterator[Piece]:
    [sql_type] = types
    if sql_type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        yield from _moments(start, stop, step, sql_type, session_zone(zone))
        return
    if step is None:
        step = 10 ** (sql_type.scale or 0)
    if step == 0:
        raise InputError("step size cannot equal zero")
    yield from _integers(start, stop, step, sql_type)


def _moments(
    start: int, stop: int, step: bytes, sql_type: SqlType, zone: Zone | None
) -> Iterator[Piece]:
    months, days, micros = unpack(step)
    fixed = days * MICROS_PER_DAY + micros
    length = months * 30 * MICROS_PER_DAY + fixed
    if length == 0:
        raise InputError("step size cannot equal zero")
    if not months and (not days or zone is None):
        yield from _times(start, stop, fixed, sql_type)
        return
    moments: list[PhysicalValue] = []
    moment = start
    while moment <= stop if length > 0 else moment >= stop:
        moments.append(moment)
        if len(moments) == SMALL_PIECE:
            yield (moments,)
            moments = []
        if zone is not None:
            moment = move(moment, months, days, micros, zone)
            continue
        day, time = divmod(moment, MICROS_PER_DAY)
        moved = add_months(np.array([day], np.int64), np.array([months], np.int64))
        moment = int(moved[0]) * MICROS_PER_DAY + time + fixed
        if moment not in _TIMESTAMP_RANGE:
            raise InvalidDatetime("timestamp out of range")
    yield (moments,)


def _times(start: int, stop: int, step: int, sql_type: SqlType) -> Iterator[Piece]:
    arrow = engine_type(sql_type)
    for (piece,) in _integers(start, stop, step, SqlType(Kind.BIGINT)):
        yield (piece if isinstance(piece, list) else piece.cast(arrow),)


def _unnest(values: Sequence[PhysicalValue], *, types: Sequence[SqlType]) -> Iterator[Piece]:  # noqa: ARG001
    yield (list(values),)


def _numbered(values: Sequence[PhysicalValue], *, types: Sequence[SqlType]) -> Iterator[Piece]:  # noqa: ARG001
    yield list(values), list(range(1, len(values) + 1))


def _options(values: Sequence[PhysicalValue], *, types: Sequence[SqlType]) -> Iterator[Piece]:  # noqa: ARG001
    """An option without ``=`` has no value."""
    parts = [str(value).partition("=") for value in values if value is not None]
    yield [name for name, _, _ in parts], [value if equal else None for _, equal, value in parts]


def _subscripts(first: int) -> SetEvaluator:
    """``first``: the lower bound of the arrays."""

    def subscripts(
        values: Sequence[PhysicalValue],
        dimension: int,
        reverse: bool = False,
        *,
        types: Sequence[SqlType],  # noqa: ARG001
    ) -> Iterator[Piece]:
        if dimension == 1:
            numbers = range(first, first + len(values))
            yield (list(reversed(numbers) if reverse else numbers),)

    return subscripts


def _string_to_table(
    text: str | None,
    separator: str | None,
    null: str | None = None,
    *,
    types: Sequence[SqlType],  # noqa: ARG001
) -> Iterator[Piece]:
    if not text:
        return
    parts: Sequence[str] = list(text)
    if separator is not None:
        parts = text.split(separator) if separator else [text]
    yield ([None if part == null else part for part in parts],)


def _regexp_split(
    text: str,
    pattern: str,
    flags: str = "",
    *,
    types: Sequence[SqlType],  # noqa: ARG001
) -> Iterator[Piece]:
    yield (list(split(text, pattern, flags)),)


def _regexp_matches(
    text: str,
    pattern: str,
    flags: str = "",
    *,
    types: Sequence[SqlType],  # noqa: ARG001
) -> Iterator[Piece]:
    matches: list[PhysicalValue] = []
    for match in compiled(pattern, flags.replace("g", "")).matches(text):
        matches.append(match.groups() or (match[0],))
        if "g" not in flags:
            break
    yield (matches,)


# --- JSON --------------------------------------------------------------------------------------


def _text(value: Json) -> str | None:
    """A JSON value as plain text: strings without their quotes, null as NULL."""
    if value is None:
        return None
    return value if isinstance(value, str) else json_text(value)


def _elements(shown: Callable[[Json], str | None]) -> SetEvaluator:
    def evaluate(text: str, *, types: Sequence[SqlType]) -> Iterator[Piece]:  # noqa: ARG001
        value = parse_json(text)
        if not isinstance(value, list):
            kind = "an object" if isinstance(value, dict) else "a scalar"
            raise InputError(f"cannot extract elements from {kind}")
        yield ([shown(element) for element in value],)

    return evaluate


def _members(shown: Callable[[Json], str | None]) -> SetEvaluator:
    def evaluate(text: str, *, types: Sequence[SqlType]) -> Iterator[Piece]:  # noqa: ARG001
        value = parse_json(text)
        if not isinstance(value, dict):
            raise InputError("cannot call jsonb_each on a non-object")
        yield (list(value), [shown(member) for member in value.values()])

    return evaluate


def _keys(text: str, *, types: Sequence[SqlType]) -> Iterator[Piece]:  # noqa: ARG001
    value = parse_json(text)
    if not isinstance(value, dict):
        kind = "an array" if isinstance(value, list) else "a scalar"
        raise InputError(f"cannot call jsonb_object_keys on {kind}")
    yield (list(value),)


def _path_query(zones: bool) -> SetEvaluator:
    def evaluate(
        text: str,
        path: str,
        variables: str | None = None,
        silent: bool = False,
        *,
        types: Sequence[SqlType],  # noqa: ARG001
    ) -> Iterator[Piece]:
        values = found(parse_json(text), path, variables, silent, zones=zones)
        yield ([json_text(value) for value in values],)

    return evaluate


TAKES_NULL: Final = frozenset({"string_to_table"})
SET_EVALUATORS: Final[dict[str, SetEvaluator]] = {
    "generate_series": _series,
    "generate_subscripts": _subscripts(1),
    VECTOR_SUBSCRIPTS: _subscripts(0),
    "unnest": _unnest,
    "_pg_expandarray": _numbered,
    "pg_options_to_table": _options,
    "string_to_table": _string_to_table,
    "regexp_split_to_table": _regexp_split,
    "regexp_matches": _regexp_matches,
    "json_array_elements": _elements(json_text),
    "json_array_elements_text": _elements(_text),
    "json_each": _members(json_text),
    "json_each_text": _members(_text),
    "json_object_keys": _keys,
    "json_path_query": _path_query(zones=False),
    "json_path_query_tz": _path_query(zones=True),
    "json_to_record": record,
    "json_to_recordset": recordset,
}
