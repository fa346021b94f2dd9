"""Columns of texts as values of SQL types: Arrow's parsers where they agree with PostgreSQL's input
syntax, value by value where they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.buffers import validity_of
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.times.session_zones import session_zone
from remuda.datatypes.times.time_digits import fit_of
from remuda.datatypes.values import values_to_array
from remuda.errors import DataError, RemudaError

_UNREAD: Final = (pa.ArrowInvalid, pa.ArrowNotImplementedError)


@dataclass(frozen=True, slots=True)
class ValueFailure:
    """``text`` in the row ``place`` is no value of its column."""

    place: int
    text: str
    error: RemudaError


def parsed_column(texts: pa.Array, sql_type: SqlType, zone: str) -> pa.Array:
    """Texts in engine form; NULLs stay NULL. ``zone`` is that of moments whose text names none.
    Raises the DataErrors of ``parse_text``."""
    quick = _QUICK.get(sql_type.kind)
    if quick is not None and len(texts):
        try:
            found = quick(texts, sql_type)
        except _UNREAD:
            found = None  # blanks, a sign, or an error to be named
        if found is not None:
            return found
    return _one_by_one(texts, sql_type, zone)


def failures(texts: pa.Array, sql_type: SqlType, zone: str) -> Iterator[ValueFailure]:
    """The texts that are no values of the type, in the order of the rows."""
    here = session_zone(zone)
    known: dict[str, RemudaError | None] = {}
    for place, text in enumerate(texts.to_pylist()):
        if text is None:
            continue
        if text not in known:
            try:
                parse_text(text, sql_type, here)
            except DataError as error:
                known[text] = error
            else:
                known[text] = None
        problem = known[text]
        if problem is not None:
            yield ValueFailure(place, text, problem)


def _one_by_one(texts: pa.Array, sql_type: SqlType, zone: str) -> pa.Array:
    """Each text that occurs is read once."""
    here = session_zone(zone)
    unique = texts.dictionary_encode()
    values = [parse_text(text, sql_type, here) for text in unique.dictionary.to_pylist()]
    return values_to_array(values, sql_type).take(unique.indices)


# --- kinds -------------------------------------------------------------------------------------

_Quick = Callable[[pa.Array, SqlType], pa.Array | None]


def _all(mask: pa.Array) -> bool:
    """Whether it is true wherever it is known."""
    return pc.all(mask, min_count=0).as_py() is not False


def _integer(texts: pa.Array, sql_type: SqlType) -> pa.Array | None:
    """Arrow reads hexadecimal numbers, too, which PostgreSQL 15 refuses."""
    if _all(pc.invert(pc.match_substring(texts, "x", ignore_case=True))):
        return texts.cast(engine_type(sql_type))
    return None


def _float(texts: pa.Array, sql_type: SqlType) -> pa.Array | None:
    """None: a number may be out of range."""
    found = texts.cast(engine_type(sql_type))
    values = found.drop_null().to_numpy(zero_copy_only=False)
    return found if np.isfinite(values).all() and values.all() else None


def _text(texts: pa.Array, sql_type: SqlType) -> pa.Array | None:
    if sql_type.kind is Kind.CHAR:
        texts = pc.utf8_rtrim(texts, characters=" ")
    length = sql_type.length
    if length is not None and not _all(pc.less_equal(pc.utf8_length(texts), length)):
        return None
    return texts


def _boolean(texts: pa.Array, _: SqlType) -> pa.Array | None:
    true = pc.equal(texts, "t")
    return true if _all(pc.or_(true, pc.equal(texts, "f"))) else None


def _decimal(texts: pa.Array, sql_type: SqlType) -> pa.Array | None:
    """Numbers that need no rounding."""
    precision, scale = sql_type.precision or 0, sql_type.scale or 0
    if not _all(pc.match_substring_regex(texts, r"^[+-]?[0-9]+(\.[0-9]+)?$")):
        return None
    found = texts.cast(pa.decimal128(precision, scale))
    if engine_type(sql_type) != pa.int64():
        return found if found.type == engine_type(sql_type) else None
    words = np.frombuffer(found.buffers()[1], np.int64)[2 * found.offset :]
    data = np.ascontiguousarray(words[: 2 * len(found) : 2])
    return pa.Array.from_buffers(pa.int64(), len(found), [validity_of(found), pa.py_buffer(data)])


_CLOCK: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"


def _fits_as_it_is(sql_type: SqlType) -> bool:
    """Whether the type keeps all digits of seconds."""
    return fit_of(sql_type) is None


def _timestamp(texts: pa.Array, sql_type: SqlType) -> pa.Array | None:
    if not _fits_as_it_is(sql_type) or not _all(pc.match_substring_regex(texts, _CLOCK + "$")):
        return None
    return texts.cast(pa.timestamp("us"))


def _moment(texts: pa.Array, sql_type: SqlType) -> pa.Array | None:
    """Of moments in UTC."""
    if not _fits_as_it_is(sql_type):
        return None
    if not _all(pc.match_substring_regex(texts, _CLOCK + r"\+00(:00)?$")):
        return None
    clocks = pc.replace_substring_regex(texts, r"\+00(:00)?$", "")
    return clocks.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))


def _date(texts: pa.Array, sql_type: SqlType) -> pa.Array | None:
    if not _all(pc.match_substring_regex(texts, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")):
        return None
    return texts.cast(engine_type(sql_type))


_UUID_DIGITS: Final = np.array([p for p in range(36) if p not in (8, 13, 18, 23)])
_UUID_DASHES: Final = np.array([8, 13, 18, 23])
_NO_DIGIT: Final = 255


def _hex_digits() -> Any:
    table = np.full(256, _NO_DIGIT, np.uint8)
    for place, digits in enumerate("0123456789abcdef"):
        table[ord(digits)] = table[ord(digits.upper())] = place
    return table


_HEX_DIGITS: Final = _hex_digits()


def _uuid(texts: pa.Array, _: SqlType) -> pa.Array | None:
    """Of UUIDs in their usual form."""
    if texts.null_count or not _all(pc.equal(pc.binary_length(texts), 36)):
        return None
    data = np.frombuffer(texts.buffers()[2], np.uint8)
    data = data[_first_byte(texts) :][: 36 * len(texts)].reshape(-1, 36)
    digits = _HEX_DIGITS[data[:, _UUID_DIGITS]]
    if (digits == _NO_DIGIT).any() or (data[:, _UUID_DASHES] != ord("-")).any():
        return None
    found = np.ascontiguousarray(digits[:, ::2] << 4 | digits[:, 1::2])
    offsets = np.arange(0, 16 * (len(texts) + 1), 16, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(texts), [None, pa.py_buffer(offsets), pa.py_buffer(found)]
    )


def _first_byte(texts: pa.Array) -> int:
    """The place of its first text among its bytes."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    return int(offsets[texts.offset])


_QUICK: Final[dict[Kind, _Quick]] = {
    Kind.TINYINT: _integer,
    Kind.SMALLINT: _integer,
    Kind.INTEGER: _integer,
    Kind.BIGINT: _integer,
    Kind.REAL: _float,
    Kind.DOUBLE: _float,
    Kind.CHAR: _text,
    Kind.VARCHAR: _text,
    Kind.BOOLEAN: _boolean,
    Kind.DECIMAL: _decimal,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIMESTAMPTZ: _moment,
    Kind.UUID: _uuid,
}
