"""Functions that follow a jsonpath in a parsed JSON value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from remuda.datatypes.jsonpath import compiled
from remuda.datatypes.jsons import Json, json_text, parse_json
from remuda.datatypes.values import PhysicalValue
from remuda.errors import DivisionByZero, InvalidParameterValue, SqlJsonItemError


def found(
    value: Any, path: str, variables: str | None = None, silent: bool = False
) -> list[Json] | None:
    """What the path leads to; None where an error is to be ignored."""
    known = {} if variables is None else parse_json(variables)
    if not isinstance(known, dict):
        raise InvalidParameterValue(
            '"vars" argument is not an object',
            detail='Jsonpath parameters should be encoded as key-value pairs of "vars" object.',
        )
    try:
        return compiled(path)(value, known)
    except (SqlJsonItemError, DivisionByZero):
        if silent:
            return None
        raise


def _exists(value: Any, path: str, *more: Any) -> bool | None:
    values = found(value, path, *more)
    return None if values is None else bool(values)


def _match(
    value: Any, path: str, variables: str | None = None, silent: bool = False
) -> bool | None:
    values = found(value, path, variables, silent)
    if values is not None and len(values) == 1:
        told = values[0]
        if told is None or isinstance(told, bool):
            return told
    if silent:
        return None
    raise SqlJsonItemError("single boolean result is expected")


def _all(value: Any, path: str, *more: Any) -> str:
    return json_text(found(value, path, *more) or [])


def _first(value: Any, path: str, *more: Any) -> str | None:
    values = found(value, path, *more)
    return json_text(values[0]) if values else None


PATH_FUNCTIONS: Final[dict[str, Callable[..., PhysicalValue]]] = {
    "@?": lambda value, path: _exists(value, path, None, True),
    "@@": lambda value, path: _match(value, path, None, True),
    "jsonb_path_exists": _exists,
    "jsonb_path_match": _match,
    "jsonb_path_query_array": _all,
    "jsonb_path_query_first": _first,
}
