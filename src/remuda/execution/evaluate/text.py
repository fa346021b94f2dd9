"""Functions of text and binary strings. Positions and lengths count characters, not bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import Kind
from remuda.datatypes.text import type_name
from remuda.errors import (
    InputError,
    InvalidEscape,
    InvalidSubstring,
    LimitExceeded,
    StringTooLong,
)
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.numbers import Value
from remuda.plan.expression import Call

_REPEAT_MAX = 64 * 1024 * 1024


def _per_row(function: Callable[..., Any]) -> Callable[[Call], Kernel]:
    """A kernel that calls ``function`` for each row without NULLs."""

    def make(call: Call) -> Kernel:
        type_ = engine_type(call.type)

        def kernel(values: list[Value], rows: int) -> pa.Array:
            columns = [
                value.to_pylist() if isinstance(value, pa.Array) else [value.as_py()] * rows
                for value in values
            ]
            return pa.array(
                [None if None in row else function(*row) for row in zip(*columns, strict=True)],
                type_,
            )

        return kernel

    return make


def _unary(function: Callable[[Any], pa.Array]) -> Callable[[Call], Kernel]:
    return lambda _call: lambda values, _rows: function(values[0])


def _constants(values: list[Value]) -> bool:
    """The first is a column and the others are constants: the common case, with Arrow's kernels."""
    return isinstance(values[0], pa.Array) and all(isinstance(v, pa.Scalar) for v in values[1:])


def _length(call: Call) -> Kernel:
    if call.arguments[0].type.kind is Kind.BYTEA:
        return lambda values, _: pc.binary_length(values[0])
    return lambda values, _: pc.utf8_length(values[0])


def substring_of(text: str, start: int, length: int | None = None) -> str:
    """SQL's substring: positions before 1 count, but hold nothing."""
    if length is not None and length < 0:
        raise InvalidSubstring("negative substring length not allowed")
    first = max(start - 1, 0)
    if length is None:
        return text[first:]
    return text[first : max(start - 1 + length, first)]


def _substring(call: Call) -> Kernel:
    slow = _per_row(substring_of)(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        if not _constants(values):
            return slow(values, rows)
        start = values[1].as_py() - 1
        if len(values) == 2:
            return pc.utf8_slice_codeunits(values[0], max(start, 0))
        length = values[2].as_py()
        if length < 0:
            raise InvalidSubstring("negative substring length not allowed")
        return pc.utf8_slice_codeunits(values[0], max(start, 0), max(start + length, 0))

    return kernel


def _trim(side: str) -> Callable[[Call], Kernel]:
    strip = {"trim": str.strip, "ltrim": str.lstrip, "rtrim": str.rstrip}[side]
    arrow = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[side]

    def trimmed(text: str, characters: str = " ") -> str:
        return strip(text, characters) if characters else text

    def make(call: Call) -> Kernel:
        slow = _per_row(trimmed)(call)

        def kernel(values: list[Value], rows: int) -> pa.Array:
            if not _constants(values):
                return slow(values, rows)
            characters = values[1].as_py() if len(values) > 1 else " "
            return arrow(values[0], characters=characters) if characters else values[0]

        return kernel

    return make


def _replace(call: Call) -> Kernel:
    slow = _per_row(lambda text, old, new: text.replace(old, new) if old else text)(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        if not _constants(values) or not values[1].as_py():
            return slow(values, rows)
        return pc.replace_substring(
            values[0], pattern=values[1].as_py(), replacement=values[2].as_py()
        )

    return kernel


def _starts_with(call: Call) -> Kernel:
    slow = _per_row(str.startswith)(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        if not _constants(values):
            return slow(values, rows)
        return pc.starts_with(values[0], pattern=values[1].as_py())

    return kernel


def _concatenation(_call: Call) -> Kernel:
    return lambda values, _: pc.binary_join_element_wise(
        *values, pa.scalar("" if pa.types.is_string(values[0].type) else b"", values[0].type)
    )


def _pad(left: bool) -> Callable[..., str]:
    def pad(text: str, length: int, fill: str = " ") -> str:
        if length <= len(text):
            return text[: max(length, 0)]
        if not fill:
            return text
        _check_size(length)
        missing = length - len(text)
        padding = (fill * (missing // len(fill) + 1))[:missing]
        return padding + text if left else text + padding

    return pad


def _repeat(text: str, times: int) -> str:
    _check_size(len(text) * max(times, 0))
    return text * max(times, 0)


def _check_size(length: int) -> None:
    if length > _REPEAT_MAX:
        raise LimitExceeded("requested length too large")


def _left(text: str, count: int) -> str:
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def _right(text: str, count: int) -> str:
    if count >= 0:
        return text[max(len(text) - count, 0) :]
    return text[-count:]


def _initcap(text: str) -> str:
    """Each run of letters and digits starts with a capital."""
    return re.sub(r"[^\W_]+", lambda word: word.group()[0].upper() + word.group()[1:].lower(), text)


def _split_part(text: str, delimiter: str, field: int) -> str:
    if field == 0:
        raise InputError("field position must not be zero")
    parts = text.split(delimiter) if delimiter else [text]
    index = field - 1 if field > 0 else len(parts) + field
    return parts[index] if 0 <= index < len(parts) else ""


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _concat_skipping(values: list[Value]) -> pa.Array:
    """``concat``: NULL counts as empty."""
    return pc.binary_join_element_wise(*values, "", null_handling="replace", null_replacement="")


concat_skipping = _concat_skipping


def _check_length(call: Call) -> Kernel:
    """What is stored in VARCHAR(n) is no longer than that; blanks at its end may be cut off."""

    def kernel(values: list[Value], _: int) -> pa.Array:
        texts = values[0]
        limit = values[1].as_py()
        if (pc.max(pc.utf8_length(texts)).as_py() or 0) <= limit:
            return texts
        rest = pc.utf8_slice_codeunits(texts, limit)
        if pc.max(pc.utf8_length(pc.utf8_rtrim(rest, characters=" "))).as_py():
            raise StringTooLong(f"value too long for type {type_name(call.type)}")
        return pc.utf8_slice_codeunits(texts, 0, limit)

    return kernel


# --- LIKE ------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def arrow_pattern(pattern: str, escape: str) -> str:
    """``pattern`` with backslash as its escape character, as Arrow's match_like reads it."""
    if len(escape) > 1:
        raise InvalidEscape("invalid escape string", hint="Escape string must be one character.")
    result: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            following = next(characters, None)
            if following is None:
                raise InvalidEscape("LIKE pattern must not end with escape character")
            result.append("\\" + following if following in "%_\\" else following)
        elif character == "\\":
            result.append("\\\\")
        else:
            result.append(character)
    return "".join(result)


@lru_cache(maxsize=4096)
def _like_regex(pattern: str, escape: str, ignore_case: bool) -> re.Pattern[str]:
    parts: list[str] = []
    characters = iter(arrow_pattern(pattern, escape))
    for character in characters:
        if character == "\\":
            parts.append(re.escape(next(characters)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def _like(call: Call) -> Kernel:
    ignore_case = call.function == "ilike"

    def matches(text: str, pattern: str, escape: str = "\\") -> bool:
        return _like_regex(pattern, escape, ignore_case).fullmatch(text) is not None

    slow = _per_row(matches)(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        if not _constants(values):
            return slow(values, rows)
        escape = values[2].as_py() if len(values) > 2 else "\\"
        pattern = arrow_pattern(values[1].as_py(), escape)
        return pc.match_like(values[0], pattern, ignore_case=ignore_case)

    return kernel


TEXT_FUNCTIONS: dict[str, Callable[[Call], Kernel]] = {
    "||": _concatenation,
    "like": _like,
    "ilike": _like,
    "upper": _unary(pc.utf8_upper),
    "lower": _unary(pc.utf8_lower),
    "length": _length,
    "octet_length": _unary(pc.binary_length),
    "substring": _substring,
    "trim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "replace": _replace,
    "left": _per_row(_left),
    "right": _per_row(_right),
    "position": _per_row(lambda part, text: text.find(part) + 1),
    "starts_with": _starts_with,
    "lpad": _per_row(_pad(left=True)),
    "rpad": _per_row(_pad(left=False)),
    "reverse": _per_row(lambda text: text[::-1]),
    "repeat": _per_row(_repeat),
    "initcap": _per_row(_initcap),
    "split_part": _per_row(_split_part),
    "md5": _per_row(_md5),
    "check_length": _check_length,
}
