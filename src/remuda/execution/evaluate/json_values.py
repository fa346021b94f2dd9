"""Operators and functions of JSON, value by value.

A batch parses each distinct text once; results that JSON functions build are normalized by writing
them (``datatypes.jsons``).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from remuda.datatypes.jsons import json_text, json_type, ordered_keys, parse_json, quoted
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.valuetext import text_of
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    ArraySubscript,
    InvalidParameterValue,
    InvalidText,
    NullNotAllowed,
)
from remuda.execution.evaluate.json_assignment import json_assignment
from remuda.execution.evaluate.json_paths import PATH_FUNCTIONS, PATH_TEXT
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.lists import OwnNulls, by_row, strict_by_row
from remuda.execution.evaluate.numbers import Value
from remuda.plan.expression import Call

_MISSING: Any = object()


class _Parsed:
    """Values of texts, each parsed once."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def __call__(self, text: str) -> Any:
        value = self._known.get(text, _MISSING)
        if value is _MISSING:
            value = self._known[text] = parse_json(text)
        return value


def _with_parser(
    make: Callable[[_Parsed], Callable[..., PhysicalValue]],
) -> Callable[[Call], Kernel]:
    """A strict function of physical values; its parser lives for one batch."""

    def maker(call: Call) -> Kernel:
        def kernel(values: list[Value], rows: int) -> pa.Array:
            return strict_by_row(make(_Parsed()), call)(values, rows)

        return kernel

    return maker


def _text(value: Any) -> str | None:
    """A value as text: strings without quotes, null as NULL."""
    if value is None:
        return None
    return value if isinstance(value, str) else json_text(value)


# --- access ------------------------------------------------------------------------------------


def member_of(value: Any, key: str | int) -> Any:
    """``value -> key``; _MISSING when there is none."""
    if isinstance(key, str):
        return value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
    if isinstance(value, list) and -len(value) <= key < len(value):
        return value[key]
    return _MISSING


def _at_path(value: Any, path: tuple[str | None, ...]) -> Any:
    for step in path:
        if step is None:
            return _MISSING
        if isinstance(value, list):
            place = _place(step)
            value = _MISSING if place is None else member_of(value, place)
        else:
            value = member_of(value, step)
        if value is _MISSING:
            return _MISSING
    return value


def _place(step: str) -> int | None:
    try:
        return int(step)
    except ValueError:
        return None


def _shown(as_text: bool) -> Callable[[Any], PhysicalValue]:
    def show(value: Any) -> PhysicalValue:
        if value is _MISSING:
            return None
        return _text(value) if as_text else json_text(value)

    return show


def _member(as_text: bool) -> Callable[[Call], Kernel]:
    show = _shown(as_text)

    def found(value: Any, key: str | int) -> Any:
        if isinstance(key, int) and not isinstance(value, dict):
            value = _as_list(value)  # PostgreSQL: a bare scalar is the array of itself
        return member_of(value, key)

    return _with_parser(lambda parse: lambda text, key: show(found(parse(text), key)))


def _path(as_text: bool) -> Callable[[Call], Kernel]:
    show = _shown(as_text)
    return _with_parser(lambda parse: lambda text, path: show(_at_path(parse(text), path)))


def _extract_path(as_text: bool) -> Callable[[Call], Kernel]:
    show = _shown(as_text)
    return _with_parser(lambda parse: lambda text, *path: show(_at_path(parse(text), path)))


# --- containment -------------------------------------------------------------------------------


def contains(whole: Any, part: Any, top: bool = True) -> bool:
    """PostgreSQL's ``@>``: objects by key, arrays as sets; at the top an array contains a bare
    scalar as well."""
    if isinstance(whole, dict):
        return isinstance(part, dict) and all(
            key in whole and contains(whole[key], item, top=False) for key, item in part.items()
        )
    if isinstance(whole, list):
        if not isinstance(part, list):
            return top and not isinstance(part, dict) and any(same(i, part) for i in whole)
        return all(
            any(
                contains(candidate, item, top=False)
                if isinstance(item, list | dict)
                else same(candidate, item)
                for candidate in whole
            )
            for item in part
        )
    return same(whole, part)


def same(left: Any, right: Any) -> bool:
    """Equal values of JSON: True is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _has(value: Any, key: str) -> bool:
    """A key of an object, a string of an array, or the string itself."""
    if isinstance(value, dict | list):
        return key in value
    return bool(isinstance(value, str) and value == key)


JSON_CONTAINS = _with_parser(lambda parse: lambda a, b: contains(parse(a), parse(b)))
JSON_CONTAINED = _with_parser(lambda parse: lambda a, b: contains(parse(b), parse(a)))


# --- changes -----------------------------------------------------------------------------------


def _joined(left: Any, right: Any) -> Any:
    if isinstance(left, dict) and isinstance(right, dict):
        return {**left, **right}
    return _as_list(left) + _as_list(right)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _without(value: Any, key: str | int | tuple[str | None, ...]) -> Any:
    if not isinstance(value, dict | list):
        raise InvalidParameterValue("cannot delete from scalar")
    if isinstance(key, int):
        if isinstance(value, dict):
            raise InvalidParameterValue("cannot delete from object using integer index")
        place = key + len(value) if key < 0 else key
        return [item for number, item in enumerate(value) if number != place]
    gone = {key} if isinstance(key, str) else set(key)
    if isinstance(value, dict):
        return {name: item for name, item in value.items() if name not in gone}
    return [item for item in value if not (isinstance(item, str) and item in gone)]


def _without_path(value: Any, path: tuple[str | None, ...]) -> Any:
    if not isinstance(value, dict | list):
        raise InvalidParameterValue("cannot delete path in scalar")
    if not value:
        return value
    return _changed(value, path, 0, lambda _: _MISSING, create=False)


def _changed(
    value: Any, path: tuple[str | None, ...], depth: int, change: Callable[[Any], Any], create: bool
) -> Any:
    """``value`` with what is at ``path[depth:]`` replaced by ``change`` of it; _MISSING removes."""
    if depth == len(path) or not isinstance(value, dict | list):
        return value
    step = path[depth]
    if step is None:
        raise NullNotAllowed(f"path element at position {depth + 1} is null")
    last = depth == len(path) - 1
    if isinstance(value, dict):
        old = value.get(step, _MISSING)
        if old is _MISSING and not (last and create):
            return value
        new = change(old) if last else _changed(old, path, depth + 1, change, create)
        rest = {name: item for name, item in value.items() if name != step or new is not _MISSING}
        return rest if new is _MISSING else {**rest, step: new}
    place = _place(step)
    if place is None:
        raise InvalidText(f'path element at position {depth + 1} is not an integer: "{step}"')
    index = place + len(value) if place < 0 else place
    if not 0 <= index < len(value):
        if not (last and create):
            return value
        added = change(_MISSING)
        return value if added is _MISSING else ([added, *value] if index < 0 else [*value, added])
    new = change(value[index]) if last else _changed(value[index], path, depth + 1, change, create)
    return value[:index] + ([] if new is _MISSING else [new]) + value[index + 1 :]


def _set(value: Any, path: tuple[str | None, ...], new: Any, create: bool = True) -> Any:
    if not isinstance(value, dict | list):
        raise InvalidParameterValue("cannot set path in scalar")
    if not value and not create:
        return value
    return _changed(value, path, 0, lambda _: new, create)


def _insert(value: Any, path: tuple[str | None, ...], new: Any, after: bool = False) -> Any:
    if not isinstance(value, dict | list):
        raise InvalidParameterValue("cannot set path in scalar")
    if not path:
        return value
    parent = _at_path(value, path[:-1])
    step = path[-1]
    if isinstance(parent, list):
        place = None if step is None else _place(step)
        if place is None:
            return _changed(value, path, 0, lambda _: new, create=True)  # raises what is wrong
        index = place + len(parent) if place < 0 else place
        index = min(max(index + (1 if after and 0 <= index < len(parent) else 0), 0), len(parent))
        whole = [*parent[:index], new, *parent[index:]]
        return whole if len(path) == 1 else _changed(value, path[:-1], 0, lambda _: whole, False)
    if isinstance(parent, dict) and step in parent:
        raise InvalidParameterValue(
            "cannot replace existing key", hint="Try using the function jsonb_set to replace it."
        )
    return _changed(value, path, 0, lambda _: new, create=True)


_NULL_TREATMENTS: Final = ("raise_exception", "use_json_null", "delete_key", "return_target")


def _set_lax(call: Call) -> OwnNulls:
    """jsonb_set where the new value may be NULL."""

    def change(
        text: str | None,
        path: tuple[str | None, ...] | None,
        new: str | None,
        *more: Any,
    ) -> str | None:
        create = more[0] if more else True
        treatment = more[1] if len(more) > 1 else "use_json_null"
        if text is None or path is None or create is None:
            return None
        if treatment not in _NULL_TREATMENTS:
            raise InvalidParameterValue(
                'null_value_treatment must be "delete_key", "return_target", "use_json_null", or '
                '"raise_exception"'
            )
        value = parse_json(text)
        if new is not None:
            return json_text(_set(value, path, parse_json(new), create))
        if treatment == "raise_exception":
            raise NullNotAllowed(
                "JSON value must not be null",
                detail='Exception was raised because null_value_treatment is "raise_exception".',
                hint="To avoid, either change the null_value_treatment argument or ensure that an "
                "SQL NULL is not passed.",
            )
        if treatment == "use_json_null":
            return json_text(_set(value, path, None, create))
        return json_text(_without_path(value, path) if treatment == "delete_key" else value)

    return by_row(change, call)


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _stripped(item) for name, item in value.items() if item is not None}
    return [_stripped(item) for item in value] if isinstance(value, list) else value


def _pretty(value: Any, indent: str = "") -> str:
    inner = indent + "    "
    if isinstance(value, dict) and value:
        parts = [f"{inner}{quoted(k)}: {_pretty(value[k], inner)}" for k in ordered_keys(value)]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(inner + _pretty(item, inner) for item in value) + f"\n{indent}]"
    if isinstance(value, dict | list):
        return ("{\n" + indent + "}") if isinstance(value, dict) else ("[\n" + indent + "]")
    return json_text(value)


def _array_length(value: Any) -> int:
    if not isinstance(value, list):
        what = "an object" if isinstance(value, dict) else "a scalar"
        raise InvalidParameterValue(
            "cannot get array length of " + ("a non-array" if what == "an object" else what)
        )
    return len(value)


def _keys(value: Any) -> tuple[str, ...]:
    if not isinstance(value, dict):
        what = "an array" if isinstance(value, list) else "a scalar"
        raise InvalidParameterValue(f"cannot call jsonb_keys on {what}")
    return tuple(ordered_keys(value))


def _change(
    function: Callable[..., Any], parsed: tuple[int, ...] = (0,)
) -> Callable[[Call], Kernel]:
    """A function of parsed values (at the places ``parsed``) that gives one."""

    def make(parse: _Parsed) -> Callable[..., PhysicalValue]:
        def apply(*arguments: Any) -> str:
            return json_text(
                function(*(parse(a) if i in parsed else a for i, a in enumerate(arguments)))
            )

        return apply

    return _with_parser(make)


def _plain(function: Callable[..., PhysicalValue]) -> Callable[[Call], Kernel]:
    """A function of one parsed value and others that gives a plain value."""
    return _with_parser(lambda parse: lambda text, *rest: function(parse(text), *rest))


# --- making ------------------------------------------------------------------------------------


def json_form(type_: SqlType) -> Callable[[Any], Any]:
    """The function from a physical value (not NULL) to its JSON value (``to_jsonb``)."""
    kind = type_.kind
    if kind is Kind.JSON:
        return parse_json
    if kind is Kind.BOOLEAN or type_.is_integer or type_.is_text:
        return lambda value: value
    if type_.element is not None:
        element = json_form(type_.element)
        return lambda value: [None if item is None else element(item) for item in value]
    if kind is Kind.ROW:
        fields = [(name, json_form(t)) for name, t in type_.fields]
        return lambda value: {
            name: None if item is None else form(item)
            for (name, form), item in zip(fields, value, strict=True)
        }
    text = text_of(type_)
    if kind is Kind.DECIMAL:
        return lambda value: Decimal(text(value))
    if type_.is_float:
        return lambda value: Decimal(text(value)) if np.isfinite(value) else text(value)
    if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return lambda value: iso_text(text(value))
    return text


def iso_text(text: str) -> str:
    """``2020-01-01T10:00:00+00:00``"""
    whole = text.removesuffix(" BC").replace(" ", "T", 1)
    era = " BC" if text.endswith(" BC") else ""
    return whole + (":00" if whole[-3:-2] in "+-" and len(whole) > 10 else "") + era


def _to_json(call: Call) -> Kernel:
    form = json_form(call.arguments[0].type)
    return strict_by_row(lambda value: json_text(form(value)), call)


def _build_array(call: Call) -> OwnNulls:
    forms = [json_form(argument.type) for argument in call.arguments]

    def build(*values: Any) -> str:
        pairs = zip(values, forms, strict=True)
        return json_text([None if value is None else form(value) for value, form in pairs])

    return _even_of_nothing(build, call)


def _even_of_nothing(function: Callable[..., PhysicalValue], call: Call) -> OwnNulls:
    if call.arguments:
        return by_row(function, call)
    return lambda _, rows: pa.repeat(pa.scalar(function(), pa.string()), rows)


def _build_object(call: Call) -> OwnNulls:
    types = [argument.type for argument in call.arguments]
    if len(types) % 2:
        raise InvalidParameterValue(
            "argument list must have even number of elements",
            hint="The arguments must consist of alternating keys and values.",
        )
    names = [key_text(t) for t in types[::2]]
    forms = [json_form(t) for t in types[1::2]]

    def build(*values: Any) -> str:
        found: dict[str, Any] = {}
        for place, (name, form) in enumerate(zip(names, forms, strict=True)):
            key, value = values[2 * place], values[2 * place + 1]
            if key is None:
                raise InvalidParameterValue(f"argument {2 * place + 1}: key must not be null")
            found[name(key)] = None if value is None else form(value)
        return json_text(found)

    return _even_of_nothing(build, call)


def key_text(type_: SqlType) -> Callable[[Any], str]:
    """How a value is written as the key of an object."""
    if type_.is_nested or type_.kind is Kind.JSON:
        raise InvalidParameterValue("key value must be scalar, not array, composite, or json")
    text = text_of(type_)
    if type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return lambda value: iso_text(text(value))
    return text


def _object(keys: tuple[str | None, ...], values: tuple[str | None, ...] | None = None) -> str:
    if values is None:
        if len(keys) % 2:
            raise ArraySubscript("array must have even number of elements")
        keys, values = keys[::2], keys[1::2]
    if len(keys) != len(values):
        raise ArraySubscript("mismatched array dimensions")
    if None in keys:
        raise NullNotAllowed("null value not allowed for object key")
    return json_text(dict(zip(keys, values, strict=True)))


STRICT_JSON: dict[str, Callable[[Call], Kernel]] = {
    "->": _member(as_text=False),
    "->>": _member(as_text=True),
    "#>": _path(as_text=False),
    "#>>": _path(as_text=True),
    "jsonb_extract_path": _extract_path(as_text=False),
    "jsonb_extract_path_text": _extract_path(as_text=True),
    "#-": _change(_without_path),
    "?": _plain(_has),
    "?|": _plain(lambda value, keys: any(k is not None and _has(value, k) for k in keys)),
    "?&": _plain(lambda value, keys: all(k is None or _has(value, k) for k in keys)),
    "jsonb_typeof": _plain(json_type),
    "jsonb_array_length": _plain(_array_length),
    "jsonb_keys": _plain(_keys),
    "jsonb_pretty": _plain(_pretty),
    "jsonb_strip_nulls": _change(_stripped),
    "jsonb_set": _change(_set, (0, 2)),
    "jsonb_insert": _change(_insert, (0, 2)),
    "to_jsonb": _to_json,
    "jsonb_object": lambda call: strict_by_row(_object, call),
}


STRICT_JSON["jsonpath"] = lambda call: strict_by_row(PATH_TEXT, call)
STRICT_JSON |= {name: _plain(function) for name, function in PATH_FUNCTIONS.items()}
OWN_JSON: dict[str, Callable[[Call], OwnNulls]] = {
    "jsonb_build_array": _build_array,
    "jsonb_build_object": _build_object,
    "jsonb_set_lax": _set_lax,
    "json_assigned": json_assignment,
}
JSON_JOIN = _change(_joined, (0, 1))
JSON_MINUS = _change(_without)
