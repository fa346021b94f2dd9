"""Functions of text and binary strings. Positions and lengths count characters, not bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.sql import Kind
from remuda.datatypes.texts.text import too_long
from remuda.errors import (
    InputError,
    InvalidEscape,
    InvalidSubstring,
    LimitExceeded,
)
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.numbers import Value
from remuda.execution.evaluate.result_size import check_joined
from remuda.execution.evaluate.rows import per_row
from remuda.plan.expression import Call

_REPEAT_MAX = 64 * 1024 * 1024
_REPLACEMENT_LONG = 100


def _unary(function: Callable[[Any], pa.Array]) -> Callable[[Call], Kernel]:
    return lambda _call: lambda values, _rows: function(values[0])


def _constants(values: list[Value]) -> bool:
    """The first is a column and the others are constants: the common case, with Arrow's kernels."""
    return isinstance(values[0], pa.Array) and all(isinstance(v, pa.Scalar) for v in values[1:])


def _length(call: Call) -> Kernel:
    if call.arguments[0].type.kind is Kind.BYTEA:
        return lambda values, _: pc.binary_length(values[0])
    return lambda values, _: pc.utf8_length(values[0])


def substring_of(text: Any, start: int, length: int | None = None) -> Any:
    """SQL's substring, of text or bytes: positions before 1 count, but hold nothing."""
    if length is not None and length < 0:
        raise InvalidSubstring("negative substring length not allowed")
    first = max(start - 1, 0)
    if length is None:
        return text[first:]
    return text[first : max(start - 1 + length, first)]


def _substring(call: Call) -> Kernel:
    slow = per_row(substring_of)(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        if not _constants(values) or call.type.kind is Kind.BYTEA:
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
    arrow = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[side]

    def trimmed(text: Any, characters: Any = " ") -> Any:
        if not characters:
            return text
        if side == "trim":
            return text.strip(characters)
        return text.lstrip(characters) if side == "ltrim" else text.rstrip(characters)

    def make(call: Call) -> Kernel:
        slow = per_row(trimmed)(call)

        def kernel(values: list[Value], rows: int) -> pa.Array:
            if not _constants(values) or call.type.kind is Kind.BYTEA:
                return slow(values, rows)
            characters = values[1].as_py() if len(values) > 1 else " "
            return arrow(values[0], characters=characters) if characters else values[0]

        return kernel

    return make


def _replace(call: Call) -> Kernel:
    slow = per_row(lambda text, old, new: text.replace(old, new) if old else text)(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        if not _constants(values) or not values[1].as_py():
            return slow(values, rows)
        old, new = values[1].as_py(), values[2].as_py()
        if len(new) > _REPLACEMENT_LONG:  # what comes of it is counted there
            return slow(values, rows)
        return pc.replace_substring(values[0], pattern=old, replacement=new)

    return kernel


def _starts_with(call: Call) -> Kernel:
    slow = per_row(str.startswith)(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        if not _constants(values):
            return slow(values, rows)
        return pc.starts_with(values[0], pattern=values[1].as_py())

    return kernel


def _concatenation(call: Call) -> Kernel:
    def kernel(values: list[Value], rows: int) -> pa.Array:
        check_joined(values, rows, call.function)
        nothing = "" if pa.types.is_string(values[0].type) else b""
        return pc.binary_join_element_wise(*values, pa.scalar(nothing, values[0].type))

    return kernel


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


def _upper(texts: pa.Array) -> pa.Array:
    """Letter by letter, as in PostgreSQL: one that has no capital of its own, as ß, stays."""
    if not pc.any(pc.match_substring(texts, "ß")).as_py():
        return pc.utf8_upper(texts)
    upper = [
        None
        if text is None
        else "".join(c if len(capital := c.upper()) > 1 else capital for c in text)
        for text in texts.to_pylist()
    ]
    return pa.array(upper, pa.string())


def _translate(text: str, source: str, target: str) -> str:
    """Characters of ``source`` with none at their place in ``target`` go; the first one counts."""
    table: dict[int, str | None] = {}
    for place, character in enumerate(source):
        table.setdefault(ord(character), target[place] if place < len(target) else None)
    return text.translate(table)


def _left(text: str, count: int) -> str:
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def _right(text: str, count: int) -> str:
    if count >= 0:
        return text[max(len(text) - count, 0) :]
    return text[-count:]


def _end(left: bool) -> Callable[[Call], Kernel]:
    """left, right; a negative count leaves so many characters out at the other end."""

    def make(call: Call) -> Kernel:
        slow = per_row(_left if left else _right)(call)

        def kernel(values: list[Value], rows: int) -> pa.Array:
            if not _constants(values):
                return slow(values, rows)
            count = values[1].as_py()
            if left:
                return pc.utf8_slice_codeunits(values[0], 0, count)
            if count == 0:
                return pc.utf8_slice_codeunits(values[0], 0, 0)
            return pc.utf8_slice_codeunits(values[0], -count, None)

        return kernel

    return make


def _position(call: Call) -> Kernel:
    slow = per_row(lambda part, text: text.find(part) + 1)(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        part, texts = values
        if not isinstance(part, pa.Scalar) or not isinstance(texts, pa.Array):
            return slow(values, rows)
        if not part.as_py():
            return slow(values, rows)
        if pa.types.is_string(texts.type) and pc.all(pc.string_is_ascii(texts)).as_py() is False:
            return slow(values, rows)  # Arrow counts bytes
        found = pc.find_substring(texts, part.as_py())
        return pc.add(found, pa.scalar(1, pa.int32()))

    return kernel


def _initcap(text: str) -> str:
    """Each run of letters and digits starts with a capital."""
    return re.sub(r"[^\W_]+", lambda word: word.group()[0].upper() + word.group()[1:].lower(), text)


def _split_part(text: str, delimiter: str, field: int) -> str:
    if field == 0:
        raise InputError("field position must not be zero")
    parts = text.split(delimiter) if delimiter else [text]
    index = field - 1 if field > 0 else len(parts) + field
    return parts[index] if 0 <= index < len(parts) else ""


def _check_length(call: Call) -> Kernel:
    """A text that is stored in VARCHAR(n) is no longer than that; blanks at its end may be cut
    off."""

    def kernel(values: list[Value], _: int) -> pa.Array:
        texts = values[0]
        if call.type.kind is Kind.CHAR:
            texts = pc.utf8_rtrim(texts, characters=" ")
        limit = values[1].as_py()
        if (pc.max(pc.utf8_length(texts)).as_py() or 0) <= limit:
            return texts
        rest = pc.utf8_slice_codeunits(texts, limit)
        if pc.max(pc.utf8_length(pc.utf8_rtrim(rest, characters=" "))).as_py():
            raise too_long(call.type)
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

    slow = per_row(matches)(call)

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
    "upper": _unary(_upper),
    "lower": _unary(pc.utf8_lower),
    "length": _length,
    "octet_length": _unary(pc.binary_length),
    "bit_length": _unary(
        lambda text: pc.multiply(pc.binary_length(text), pa.scalar(8, pa.int32()))
    ),
    "substring": _substring,
    "trim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "replace": _replace,
    "translate": per_row(_translate),
    "left": _end(left=True),
    "right": _end(left=False),
    "position": _position,
    "starts_with": _starts_with,
    "lpad": per_row(_pad(left=True)),
    "rpad": per_row(_pad(left=False)),
    "reverse": _unary(pc.utf8_reverse),
    "repeat": per_row(_repeat),
    "initcap": per_row(_initcap),
    "split_part": per_row(_split_part),
    "check_length": _check_length,
}
