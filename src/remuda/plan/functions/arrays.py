"""Operators and functions of ARRAY and ROW, and UUIDs: types of arguments and results."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.coercion import common_type, is_comparable, is_implicit
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    UUID,
    VARCHAR,
    Kind,
    SqlType,
    array,
    row,
)
from remuda.plan.functions import json as function_json
from remuda.plan.functions.signatures import (
    NullRule,
    Resolver,
    ScalarFunction,
    Signature,
    Types,
    fixed,
    overloads,
    unknown,
)

_INTEGERS: Final = array(INTEGER)


def _element(types: Types, arrays: tuple[int, ...], values: tuple[int, ...]) -> SqlType | None:
    """The common type of the elements of some arguments and of the values among others; None when
    there is none or no argument is an array."""
    found: list[SqlType] = []
    for place in arrays:
        if place < len(types) and not unknown(types[place]):
            element = types[place].element
            if element is None:
                return None
            found.append(element)
    if not found:
        return None
    found += [types[place] for place in values if place < len(types)]
    common = common_type(found)
    return None if common is None or common.element is not None else common


def both_arrays(result: SqlType | None) -> Resolver:
    """Two arrays of one type; ``result`` None: an array of that type."""

    def resolve(types: Types) -> Signature | None:
        if len(types) != 2:
            return None
        element = _element(types, (0, 1), ())
        if element is None:
            return None
        both = array(element)
        return Signature((both, both), result or both)

    return resolve


def joined(types: Types) -> Signature | None:
    """array || array, array || element, element || array"""
    if len(types) != 2 or all(t.element is None for t in types):
        return None
    left, right = types
    element = _element(
        types,
        tuple(place for place in (0, 1) if types[place].element is not None),
        tuple(place for place in (0, 1) if types[place].element is None),
    )
    if element is None:
        return None
    both = array(element)
    sides = (
        element if left.element is None and not unknown(left) else both,
        element if right.element is None and not unknown(right) else both,
    )
    return Signature(sides, both)


def _with_value(result: SqlType | None, value_first: bool = False, more: int = 0) -> Resolver:
    """(array, element), or the other way round; ``more`` further INTEGERs may follow."""
    array_place, value_place = (1, 0) if value_first else (0, 1)

    def resolve(types: Types) -> Signature | None:
        if not 2 <= len(types) <= 2 + more:
            return None
        element = _element(types, (array_place,), (value_place,))
        if element is None or not all(unknown(t) or is_implicit(t, INTEGER) for t in types[2:]):
            return None
        whole = array(element)
        pair = (element, whole) if value_first else (whole, element)
        return Signature((*pair, *[INTEGER] * (len(types) - 2)), result or whole)

    return resolve


def _replaced(types: Types) -> Signature | None:
    """(array, element, element)"""
    if len(types) != 3:
        return None
    element = _element(types, (0,), (1, 2))
    if element is None:
        return None
    return Signature((array(element), element, element), array(element))


def _any_array(result: SqlType, *more: SqlType, optional: int = 0) -> Resolver:
    """(array, ...): the array as it is."""

    def resolve(types: Types) -> Signature | None:
        if not types or types[0].element is None:
            return None
        rest = fixed(result, *more, optional=optional)(types[1:])
        return None if rest is None else Signature((types[0], *rest.arguments), result)

    return resolve


def _same_array(*more: SqlType) -> Resolver:
    """(array, ...) -> an array of the same type."""

    def resolve(types: Types) -> Signature | None:
        return _any_array(types[0], *more)(types) if types else None

    return resolve


def _constructor(types: Types) -> Signature | None:
    """``ARRAY[...]``"""
    common = common_type(types) if types else None
    if common is None or common.element is not None:
        return None
    return Signature((common,) * len(types), array(common))


def _subscript(types: Types) -> Signature | None:
    if len(types) != 2 or types[0].element is None:
        return None
    fits = unknown(types[1]) or is_implicit(types[1], INTEGER)
    return Signature((types[0], INTEGER), types[0].element) if fits else None


def _set_element(types: Types) -> Signature | None:
    """The binder makes the conversions."""
    return Signature(types, types[0]) if len(types) == 3 else None


def _filled(types: Types) -> Signature | None:
    """(value, array of one length)"""
    if len(types) != 2:
        return None
    value = VARCHAR if unknown(types[0]) else types[0]
    if value.element is not None or not (unknown(types[1]) or is_implicit(types[1], _INTEGERS)):
        return None
    return Signature((value, _INTEGERS), array(value))


def _row(types: Types) -> Signature | None:
    """``ROW(...)``: fields f1, f2, ..."""
    if not types:
        return None
    kept = tuple(VARCHAR if unknown(t) else t for t in types)
    return Signature(kept, row((f"f{place}", t) for place, t in enumerate(kept, start=1)))


def _field(types: Types) -> Signature | None:
    """(row, place of the field): the binder asks ``field_signature``."""
    return (
        None if len(types) != 2 or types[0].kind is not Kind.ROW else field_signature(types[0], 0)
    )


def field_signature(row_type: SqlType, place: int) -> Signature:
    return Signature((row_type, INTEGER), row_type.fields[place][1])


def _searched(types: Types) -> Signature | None:
    """(operator, value, array): ``value operator ANY (array)``"""
    if len(types) != 3:
        return None
    element = _element(types, (2,), (1,))
    if element is None or not is_comparable(element):
        return None
    return Signature((VARCHAR, element, array(element)), BOOLEAN)


def _looked_up(types: Types) -> Signature | None:
    """(key, keys, values)"""
    if len(types) != 3 or types[1].element != types[0] or types[2].element is None:
        return None
    return Signature(types, types[2].element)


def _each_looked_up(types: Types) -> Signature | None:
    """(array of keys, keys, values)"""
    if len(types) != 3 or types[1] != types[0] or types[2].element is None:
        return None
    return Signature(types, types[2])


_OWN, _NEVER = NullRule.OWN, NullRule.NEVER

FUNCTIONS: Final = (
    ScalarFunction("array", _constructor, _NEVER, "the elements as an array"),
    ScalarFunction("subscript", _subscript, summary="array, place from 1: NULL outside"),
    ScalarFunction("array_slice", _same_array(INTEGER, INTEGER), summary="array, from, to"),
    ScalarFunction("any_of", _searched, _OWN, summary="operator literal, value, array"),
    ScalarFunction("all_of", _searched, _OWN, summary="operator literal, value, array"),
    ScalarFunction("row", _row, _NEVER, "the fields as a row"),
    ScalarFunction("field", _field, summary="row, place of the field"),
    ScalarFunction("@>", overloads(both_arrays(BOOLEAN), function_json.contains),
                   summary="contains: an array, a JSON value"),
    ScalarFunction("<@", overloads(both_arrays(BOOLEAN), function_json.contains),
                   summary="is contained in"),
    ScalarFunction("&&", both_arrays(BOOLEAN), summary="arrays have an element in common"),
    ScalarFunction("array_length", _any_array(INTEGER, INTEGER),
                   summary="array, dimension (1); NULL of an empty array"),
    ScalarFunction("array_upper", _any_array(INTEGER, INTEGER), summary="array, dimension (1)"),
    ScalarFunction("array_lower", _any_array(INTEGER, INTEGER), summary="array, dimension (1)"),
    ScalarFunction("array_ndims", _any_array(INTEGER), summary="1; NULL of an empty array"),
    ScalarFunction("array_dims", _any_array(VARCHAR), summary="[1:n]; NULL of an empty array"),
    ScalarFunction("cardinality", _any_array(INTEGER), summary="the number of elements"),
    ScalarFunction("array_position", _with_value(INTEGER, more=1), _OWN,
                   "array, element, from: the first place of it"),
    ScalarFunction("array_positions", _with_value(_INTEGERS), _OWN, "array, element: its places"),
    ScalarFunction("array_append", _with_value(None), _OWN, "array, element"),
    ScalarFunction("array_prepend", _with_value(None, value_first=True), _OWN, "element, array"),
    ScalarFunction("array_cat", both_arrays(None), _OWN, "both arrays, one after the other"),
    ScalarFunction("array_remove", _with_value(None), _OWN, "array, element: without it"),
    ScalarFunction("array_replace", _replaced, _OWN, "array, old element, new element"),
    ScalarFunction("array_fill", _filled, _OWN, "value, ARRAY[length]", raises=True),
    ScalarFunction("trim_array", _same_array(INTEGER), summary="array, without so many at the end",
                   raises=True),
    ScalarFunction("array_to_string", _any_array(VARCHAR, VARCHAR, VARCHAR, optional=1), _OWN,
                   "array, separator, text for NULL (skipped)"),
    ScalarFunction("string_to_array", fixed(array(VARCHAR), VARCHAR, VARCHAR, VARCHAR, optional=1),
                   _OWN, "text, separator, text that means NULL"),
    ScalarFunction("set_element", _set_element, _OWN, "array, place, element", raises=True),
    ScalarFunction("lookup", _looked_up, summary="key, constant keys, constant values"),
    ScalarFunction("lookup_each", _each_looked_up, summary="keys, constant keys, constant values"),
    ScalarFunction(
        "named_object", fixed(BIGINT, VARCHAR, array(VARCHAR), array(BIGINT), array(VARCHAR)),
        summary="name, constant names, constant OIDs, error and kind of a missing one or ''",
        raises=True,
    ),
    ScalarFunction("gen_random_uuid", fixed(UUID), _NEVER, "a random UUID", folds=False),
)  # fmt: skip

ALIASES: Final[dict[str, str]] = {"uuid_generate_v4": "gen_random_uuid"}

OPERATORS: Final = frozenset({"@>", "<@", "&&"})
INTERNAL: Final = frozenset(
    {"array", "subscript", "array_slice", "set_element", "any_of", "all_of", "row", "field"}
    | {"lookup", "lookup_each", "named_object"}
)
