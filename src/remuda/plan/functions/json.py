"""Operators and functions of JSON: types of arguments and results.

The names of PostgreSQL's ``json_...`` functions are aliases of the ``jsonb_...`` ones: there is one
type (``datatypes.jsons``).
"""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import BOOLEAN, INTEGER, JSON, VARCHAR, SqlType, array
from remuda.plan.functions.signatures import (
    NullRule,
    ScalarFunction,
    Signature,
    Types,
    fixed,
    overloads,
    unknown,
)

TEXTS: Final = array(VARCHAR)
_JSON_TEXT: Final = fixed(VARCHAR, JSON)


def member(result: SqlType, types: Types) -> Signature | None:
    """``->`` and ``->>``: a key, or the place of an element from 0."""
    return overloads(fixed(result, JSON, VARCHAR), fixed(result, JSON, INTEGER))(types)


def contains(types: Types) -> Signature | None:
    """``@>`` and ``<@`` of JSON."""
    return fixed(BOOLEAN, JSON, JSON)(types) if JSON in types else None


def joined(types: Types) -> Signature | None:
    """JSON || JSON"""
    return fixed(JSON, JSON, JSON)(types) if JSON in types else None


def without(types: Types) -> Signature | None:
    """``-``: without a key, without keys, or without the element of a place"""
    if len(types) != 2 or types[0] != JSON:
        return None
    return overloads(
        fixed(JSON, JSON, VARCHAR), fixed(JSON, JSON, INTEGER), fixed(JSON, JSON, TEXTS)
    )(types)


def _path(result: SqlType, types: Types) -> Signature | None:
    """(json, key, key, ...)"""
    if not types or not all(t.is_text or unknown(t) for t in types[1:]):
        return None
    if not (types[0] == JSON or unknown(types[0])):
        return None
    return Signature((JSON, *[VARCHAR] * (len(types) - 1)), result)


def _anything(types: Types) -> Signature | None:
    """Any arguments, as they are; untyped ones are text."""
    return Signature(tuple(VARCHAR if unknown(t) else t for t in types), JSON)


def _one_anything(types: Types) -> Signature | None:
    return _anything(types) if len(types) == 1 and not unknown(types[0]) else None


def _pairs(types: Types) -> Signature | None:
    """(key, value, key, value, ...)"""
    return _anything(types)


_NEVER: Final = NullRule.NEVER
_PATH: Final = (JSON, VARCHAR, JSON, BOOLEAN)

FUNCTIONS: Final = (
    ScalarFunction("->", lambda types: member(JSON, types), summary="JSON, key or place: a member"),
    ScalarFunction("->>", lambda types: member(VARCHAR, types),
                   summary="JSON, key or place: a member as text"),
    ScalarFunction("#>", fixed(JSON, JSON, TEXTS), summary="JSON, path: what is there"),
    ScalarFunction("#>>", fixed(VARCHAR, JSON, TEXTS), summary="JSON, path: as text"),
    ScalarFunction("#-", fixed(JSON, JSON, TEXTS), summary="JSON without what is at a path",
                   raises=True),
    ScalarFunction("?", fixed(BOOLEAN, JSON, VARCHAR), summary="JSON has a key (or string)"),
    ScalarFunction("?|", fixed(BOOLEAN, JSON, TEXTS), summary="JSON has one of the keys"),
    ScalarFunction("?&", fixed(BOOLEAN, JSON, TEXTS), summary="JSON has all of the keys"),
    ScalarFunction("jsonb_extract_path", lambda types: _path(JSON, types),
                   summary="json, key, ...: what is there"),
    ScalarFunction("jsonb_extract_path_text", lambda types: _path(VARCHAR, types),
                   summary="json, key, ...: as text"),
    ScalarFunction("jsonb_typeof", _JSON_TEXT,
                   summary="object, array, string, number, boolean or null"),
    ScalarFunction("jsonb_array_length", fixed(INTEGER, JSON), raises=True),
    ScalarFunction("jsonb_keys", fixed(TEXTS, JSON), summary="the keys of an object", raises=True),
    ScalarFunction("jsonb_pretty", _JSON_TEXT, summary="indented text"),
    ScalarFunction("jsonb_strip_nulls", fixed(JSON, JSON), summary="objects without null members"),
    ScalarFunction("jsonb_set", fixed(JSON, JSON, TEXTS, JSON, BOOLEAN, optional=1), raises=True,
                   summary="json, path, new value, create what is missing (true)"),
    ScalarFunction("jsonb_set_lax",
                   fixed(JSON, JSON, TEXTS, JSON, BOOLEAN, VARCHAR, optional=2), _NEVER,
                   raises=True, summary="as jsonb_set; for a NULL use_json_null, delete_key, "
                   "return_target or raise_exception"),
    ScalarFunction("json_assigned", fixed(JSON, JSON, TEXTS, JSON, BOOLEAN), _NEVER,
                   "json, subscripts, new value, an array where there was none", raises=True),
    ScalarFunction("jsonb_insert", fixed(JSON, JSON, TEXTS, JSON, BOOLEAN, optional=1), raises=True,
                   summary="json, path, new value, after the place (false)"),
    ScalarFunction("to_jsonb", _one_anything, summary="any value as JSON"),
    ScalarFunction("jsonb_build_array", _anything, _NEVER, "an array of the arguments"),
    ScalarFunction("jsonb_build_object", _pairs, _NEVER, "key, value, ...: an object", raises=True),
    ScalarFunction("jsonb_object", overloads(fixed(JSON, TEXTS), fixed(JSON, TEXTS, TEXTS)),
                   summary="keys and values in one array or in two", raises=True),
    ScalarFunction("@?", fixed(BOOLEAN, JSON, VARCHAR), summary="JSON, path: leads anywhere",
                   raises=True),
    ScalarFunction("@@", fixed(BOOLEAN, JSON, VARCHAR), summary="JSON, path: what it says",
                   raises=True),
    ScalarFunction("jsonb_path_exists", fixed(BOOLEAN, *_PATH, optional=2),
                   summary="json, path, variables, silent: whether it leads anywhere", raises=True),
    ScalarFunction("jsonb_path_match", fixed(BOOLEAN, *_PATH, optional=2),
                   summary="json, path, variables, silent: what it says", raises=True),
    ScalarFunction("jsonb_path_query_array", fixed(JSON, *_PATH, optional=2),
                   summary="json, path, variables, silent: all that it leads to", raises=True),
    ScalarFunction("jsonb_path_query_first", fixed(JSON, *_PATH, optional=2),
                   summary="json, path, variables, silent: the first that it leads to",
                   raises=True),
    ScalarFunction("jsonb_path_exists_tz", fixed(BOOLEAN, *_PATH, optional=2),
                   summary="the same, comparing times with and without a zone", raises=True),
    ScalarFunction("jsonb_path_match_tz", fixed(BOOLEAN, *_PATH, optional=2),
                   summary="the same, comparing times with and without a zone", raises=True),
    ScalarFunction("jsonb_path_query_array_tz", fixed(JSON, *_PATH, optional=2),
                   summary="the same, comparing times with and without a zone", raises=True),
    ScalarFunction("jsonb_path_query_first_tz", fixed(JSON, *_PATH, optional=2),
                   summary="the same, comparing times with and without a zone", raises=True),
    ScalarFunction("jsonpath", fixed(VARCHAR, VARCHAR),
                   summary="text::jsonpath: a checked path in its canonical form", raises=True),
)  # fmt: skip

ALIASES: Final[dict[str, str]] = {
    "json_extract_path": "jsonb_extract_path",
    "json_extract_path_text": "jsonb_extract_path_text",
    "json_typeof": "jsonb_typeof",
    "json_array_length": "jsonb_array_length",
    "json_keys": "jsonb_keys",
    "json_strip_nulls": "jsonb_strip_nulls",
    "to_json": "to_jsonb",
    "array_to_json": "to_jsonb",
    "row_to_json": "to_jsonb",
    "json_build_array": "jsonb_build_array",
    "json_build_object": "jsonb_build_object",
    "json_object": "jsonb_object",
    "jsonb_exists": "?",
    "jsonb_exists_any": "?|",
    "jsonb_exists_all": "?&",
    "jsonb_delete_path": "#-",
}

INTERNAL: Final = frozenset({"json_assigned"})
OPERATORS: Final = frozenset({"@?", "@@", "->", "->>", "#>", "#>>", "#-", "?", "?|", "?&"})
