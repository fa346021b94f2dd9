"""JSON values: one normalized text per value, as PostgreSQL's JSONB has it.

Inside the engine a value of type JSON is its text, written in one way only: keys of objects in
order (shorter ones first, then by their bytes), of repeated keys the last, one blank after ``:``
and ``,``, numbers as exact decimals. The types ``json`` and ``jsonb`` are the same here.

As Python objects, numbers are ``int`` and ``Decimal``, so that nothing is lost on the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from remuda.errors import DataError, InvalidText, NumericOverflow, UntranslatableCharacter

Json: TypeAlias = Any
"""None, bool, int, Decimal, str, list or dict of them."""

DEPTH_MAX: Final = 500
"""Arrays and objects inside each other; far below where Python's recursion ends."""
_EXPONENT_MAX: Final = 1000
_ESCAPES: Final = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f]')
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def _number(text: str) -> Decimal:
    value = Decimal(text)
    if value and abs(value.adjusted()) > _EXPONENT_MAX:
        raise NumericOverflow("value overflows numeric format")
    return value or abs(value)


def _no_constant(name: str) -> Json:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(parse_float=_number, parse_constant=_no_constant)
_BLANKS: Final = " \t\n\r"


def parse_json(text: str) -> Json:
    """The value of a JSON text. Raises InvalidText that says what is wrong and where."""
    _check_depth(text)
    start = len(text) - len(text.lstrip(_BLANKS))
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as problem:
        raise _invalid(text, problem) from None
    rest = len(text) - len(text[end:].lstrip(_BLANKS))
    if rest != len(text):
        raise _invalid_at(text, rest, "the text goes on after the end of the value")
    if "\\u" in text or not text.isascii():
        _check_characters(value)
    return value


def normalized(text: str) -> str:
    """The text that stands for the value of ``text`` inside the engine; raises InvalidText."""
    return json_text(parse_json(text))


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return
    depth = 0
    for match in _NESTING.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            if depth > DEPTH_MAX:
                raise _invalid_at(text, match.start(), f"more than {DEPTH_MAX} levels of nesting")
        elif mark in "]}":
            depth -= 1


def _check_characters(value: Json) -> None:
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, str):
            if "\x00" in current:
                raise UntranslatableCharacter(
                    "unsupported Unicode escape sequence", detail="\\u0000 is not text."
                )
            if _LONE_SURROGATE.search(current):
                raise InvalidText(
                    "invalid input syntax for type json",
                    detail="Unicode high and low surrogates must come in pairs.",
                )
        elif isinstance(current, list):
            pending += current
        elif isinstance(current, dict):
            pending += current.keys()
            pending += current.values()


def _invalid(text: str, problem: Exception) -> DataError:
    if isinstance(problem, json.JSONDecodeError):
        return _invalid_at(text, problem.pos, _reason(problem.msg))
    if isinstance(problem, ValueError) and str(problem) in ("NaN", "Infinity", "-Infinity"):
        return _invalid_at(text, text.find(str(problem)), f'token "{problem}" is invalid')
    return _invalid_at(text, 0, str(problem))


def _reason(message: str) -> str:
    """The words of Python's parser without their place (which is added in our own form)."""
    return message[0].lower() + message[1:]


def _invalid_at(text: str, at: int, reason: str) -> InvalidText:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    shown = text[max(0, at - 20) : at + 20].replace("\n", " ")
    where = "at the end" if at >= len(text) else f'at or near "{shown}"'
    return InvalidText(
        "invalid input syntax for type json",
        detail=f"JSON data, line {line}, column {column}: {reason} ({where}).",
    )


def json_type(value: Json) -> str:
    """``object``, ``array``, ``string``, ``number``, ``boolean`` or ``null``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


# --- writing ---------------------------------------------------------------------------------


def json_text(value: Json) -> str:
    """The normalized text of a value. Raises DataError for numbers that JSON has not."""
    parts: list[str] = []
    _write(value, parts.append)
    return "".join(parts)


def _write(value: Json, emit: Callable[[str], object]) -> None:
    if isinstance(value, str):
        emit(quoted(value))
    elif value is None:
        emit("null")
    elif isinstance(value, bool):
        emit("true" if value else "false")
    elif isinstance(value, dict):
        _write_object(value, emit)
    elif isinstance(value, list | tuple):
        separator = "["
        for item in value:
            emit(separator)
            _write(item, emit)
            separator = ", "
        emit("]" if separator == ", " else "[]")
    else:
        emit(number_text(value))


def _write_object(value: Mapping[str, Json], emit: Callable[[str], object]) -> None:
    separator = "{"
    for key in ordered_keys(value):
        emit(separator)
        emit(quoted(key))
        emit(": ")
        _write(value[key], emit)
        separator = ", "
    emit("}" if separator == ", " else "{}")


def ordered_keys(value: Mapping[str, Json]) -> list[str]:
    """The keys of an object in JSONB's order: shorter first, then by their bytes."""
    if len(value) < 2:
        return list(value)
    return sorted(value, key=_key_order)


def _key_order(key: str) -> tuple[int, bytes]:
    raw = key.encode()
    return len(raw), raw


def quoted(text: str) -> str:
    """``text`` as a JSON string; only what must be escaped is."""
    if _TO_ESCAPE.search(text) is None:
        return f'"{text}"'
    return '"' + _TO_ESCAPE.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"


def number_text(value: float | Decimal) -> str:
    """All digits of a number, without an exponent. Raises DataError for NaN and infinity."""
    if isinstance(value, int):
        return str(value)
    number = Decimal(repr(value)) if isinstance(value, float) else value
    if not number.is_finite():
        raise DataError(f"{value} is not a number of JSON")
    if isinstance(value, float) and number == number.to_integral_value() and abs(value) < 1e16:
        return str(int(number))
    return f"{number:f}"


def from_python(value: object) -> Json:
    """A Python object as a JSON value: mappings, sequences, text, numbers, None, and values with
    a text form of their own (dates, UUIDs). Raises DataError for anything else.
    """
    if value is None or isinstance(value, str | bool | int | Decimal):
        return value
    if isinstance(value, float):
        number_text(value)
        return Decimal(repr(value))
    if isinstance(value, Mapping):
        return {_key(key): from_python(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [from_python(item) for item in value]
    raise DataError(f"{type(value).__name__} has no JSON form")


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    raise DataError(f"keys of JSON objects are text, found {type(key).__name__}")


def to_python(text: str) -> Any:
    """The value that a user sees: ``dict``, ``list``, ``str``, ``int``, ``float``, ``bool``,
    ``None``."""
    return json.loads(text)
