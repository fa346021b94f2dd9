"""Functions that follow a jsonpath in a parsed JSON value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from remuda.datatypes.jsons import Json, json_text, parse_json
from remuda.datatypes.values import PhysicalValue
from remuda.errors import InvalidParameterValue, JsonSingletonRequired
from remuda.execution.evaluate.json_path_datetimes import JsonMoment
from remuda.execution.evaluate.json_path_evaluation import Evaluation
from remuda.execution.evaluate.json_path_syntax import parsed_path
from remuda.execution.evaluate.json_path_text import canonical_path


def _evaluation(value: Any, path: str, variables: str | None, zones: bool) -> Evaluation:
    parsed = parsed_path(path)
    known = {} if variables is None else parse_json(variables)
    if not isinstance(known, dict):
        raise InvalidParameterValue(
            '"vars" argument is not an object',
            detail='Jsonpath parameters should be encoded as key-value pairs of "vars" object.',
        )
    return Evaluation(parsed, value, known, zones)


def _values(evaluation: Evaluation, silent: bool) -> list[Json]:
    values: list[Json] = []
    evaluation.into(values, silent)
    return [each.text() if isinstance(each, JsonMoment) else each for each in values]


def found(
    value: Any,
    path: str,
    variables: str | None = None,
    silent: bool = False,
    *,
    zones: bool = False,
) -> list[Json]:
    """The values that the path leads to; with ``silent`` those before the first error."""
    return _values(_evaluation(value, path, variables, zones), silent)


def _exists(zones: bool) -> Callable[..., bool | None]:
    def exists(
        value: Any, path: str, variables: str | None = None, silent: bool = False
    ) -> bool | None:
        return _evaluation(value, path, variables, zones).leads_anywhere(silent)

    return exists


def _match(zones: bool) -> Callable[..., bool | None]:
    def match(
        value: Any, path: str, variables: str | None = None, silent: bool = False
    ) -> bool | None:
        return _single_boolean(found(value, path, variables, silent, zones=zones), silent)

    return match


def _single_boolean(values: list[Json], silent: bool) -> bool | None:
    if len(values) == 1 and isinstance(values[0], bool | None):
        return values[0]
    if silent:
        return None
    raise JsonSingletonRequired("single boolean result is expected")


def _exists_operator(value: Any, path: str) -> bool | None:
    return Evaluation(parsed_path(path), value, None, zones=False).leads_anywhere(silent=True)


def _match_operator(value: Any, path: str) -> bool | None:
    evaluation = Evaluation(parsed_path(path), value, None, zones=False)
    return _single_boolean(_values(evaluation, silent=True), silent=True)


def _all(zones: bool) -> Callable[..., str]:
    return lambda value, path, *more: json_text(found(value, path, *more, zones=zones))


def _first(zones: bool) -> Callable[..., str | None]:
    def first(value: Any, path: str, *more: Any) -> str | None:
        values = found(value, path, *more, zones=zones)
        return json_text(values[0]) if values else None

    return first


PATH_FUNCTIONS: Final[dict[str, Callable[..., PhysicalValue]]] = {
    "@?": _exists_operator,
    "@@": _match_operator,
    "jsonb_path_exists": _exists(zones=False),
    "jsonb_path_match": _match(zones=False),
    "jsonb_path_query_array": _all(zones=False),
    "jsonb_path_query_first": _first(zones=False),
    "jsonb_path_exists_tz": _exists(zones=True),
    "jsonb_path_match_tz": _match(zones=True),
    "jsonb_path_query_array_tz": _all(zones=True),
    "jsonb_path_query_first_tz": _first(zones=True),
}
PATH_TEXT: Final = canonical_path
