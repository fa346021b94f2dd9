"""Functions that give rows: their catalog, and a call of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from remuda.datatypes.coercion import common_type, is_implicit
from remuda.datatypes.sql import (
    BOOLEAN,
    INTEGER,
    INTERVAL,
    JSON,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array,
)
from remuda.plan.expression import Expression, Literal

Types: TypeAlias = tuple[SqlType, ...]

GIVEN_ROWS: Final = "given_rows"
"""No statement can call it: its arguments are the cells of a long VALUES, row by row, each a
literal or a parameter."""


@dataclass(frozen=True, slots=True)
class SetCall:
    """A call of a set function; ``types`` are those of its columns."""

    function: str
    arguments: tuple[Expression, ...]
    types: Types

    @property
    def shown_arguments(self) -> tuple[Expression, ...]:
        """Those that plans show: the rows of a long VALUES are counted instead."""
        if self.function != GIVEN_ROWS:
            return self.arguments
        return (Literal(INTEGER, len(self.arguments) // len(self.types)),)

    def rewritten(self, rewrite: Callable[[Expression], Expression]) -> SetCall:
        return replace(self, arguments=tuple(rewrite(part) for part in self.arguments))


@dataclass(frozen=True, slots=True)
class SetSignature:
    """The types that the arguments are to be cast to, and names and types of the columns. A single
    column without a name takes the function's, or the alias of its relation."""

    arguments: Types
    columns: tuple[tuple[str, SqlType], ...]


@dataclass(frozen=True, slots=True)
class SetFunction:
    """``resolve``: None when the function does not take arguments of these types (untyped ones are
    Kind.NULL). NULL in an argument gives no rows, unless the function says otherwise."""

    name: str
    resolve: Callable[[Types], SetSignature | None]
    summary: str
    rows: float
    """How many rows the planner expects of a call."""


def _fits(given: Types, wanted: Types) -> bool:
    return len(given) <= len(wanted) and all(
        have.kind is Kind.NULL or is_implicit(have, want)
        for have, want in zip(given, wanted, strict=False)
    )


def _series(given: Types) -> SetSignature | None:
    if len(given) == 3 and given[2].kind in (Kind.INTERVAL, Kind.NULL):
        moments = [t for t in given[:2] if t.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)]
        if moments and all(t in moments or t.kind is Kind.NULL for t in given[:2]):
            plain = all(t.kind is Kind.TIMESTAMP for t in moments)
            found = TIMESTAMP if plain else TIMESTAMPTZ
            return SetSignature((found, found, INTERVAL), (("", found),))
    if not 2 <= len(given) <= 3:
        return None
    known = [t for t in given if t.kind is not Kind.NULL]
    if not all(t.is_integer or t.kind is Kind.DECIMAL for t in known):
        return None
    common = common_type(known) if known else INTEGER
    if common is None:
        return None
    if common.is_integer and common.kind is not Kind.BIGINT:
        common = INTEGER
    return SetSignature((common,) * len(given), (("", common),))


def _unnest(given: Types) -> SetSignature | None:
    if len(given) != 1 or given[0].element is None:
        return None
    return SetSignature(given, (("", given[0].element),))


def _numbered(given: Types) -> SetSignature | None:
    if len(given) != 1 or given[0].element is None:
        return None
    return SetSignature(given, (("x", given[0].element), ("n", INTEGER)))


def _options(given: Types) -> SetSignature | None:
    if len(given) != 1 or not _fits(given, (array(VARCHAR),)):
        return None
    return SetSignature((array(VARCHAR),), (("option_name", VARCHAR), ("option_value", VARCHAR)))


def _subscripts(given: Types) -> SetSignature | None:
    wanted: Types = (given[0], INTEGER, BOOLEAN) if given and given[0].element is not None else ()
    if not 2 <= len(given) <= len(wanted) or not _fits(given[1:], wanted[1:]):
        return None
    return SetSignature(wanted[: len(given)], (("", INTEGER),))


def _texts(
    least: int, most: int, result: SqlType = VARCHAR
) -> Callable[[Types], SetSignature | None]:
    wanted = (VARCHAR,) * most

    def resolve(given: Types) -> SetSignature | None:
        if not least <= len(given) <= most or not _fits(given, wanted):
            return None
        return SetSignature(wanted[: len(given)], (("", result),))

    return resolve


def _json(*columns: tuple[str, SqlType]) -> Callable[[Types], SetSignature | None]:
    def resolve(given: Types) -> SetSignature | None:
        if len(given) != 1 or given[0].kind not in (Kind.JSON, Kind.NULL):
            return None
        return SetSignature((JSON,), columns)

    return resolve


def _path_query(given: Types) -> SetSignature | None:
    wanted: Types = (JSON, VARCHAR, JSON, BOOLEAN)
    if not 2 <= len(given) <= len(wanted) or not _fits(given, wanted):
        return None
    return SetSignature(wanted[: len(given)], (("", JSON),))


def _record(given: Types) -> SetSignature | None:
    """The columns come from a column definition list."""
    if len(given) != 1 or not _fits(given, (JSON,)):
        return None
    return SetSignature((JSON,), ())


VECTOR_SUBSCRIPTS: Final = "_pg_vector_subscripts"
"""``generate_subscripts`` of an array that is counted from 0."""
_ELEMENTS = "the elements of an array"
_EACH = "the members of an object"
_DEFINED = (
    SetFunction("generate_series", _series, "start, stop, step (1; an INTERVAL for dates)", 1000.0),
    SetFunction("generate_subscripts", _subscripts, "1 to the length of an array", 10.0),
    SetFunction(VECTOR_SUBSCRIPTS, _subscripts, "the same from 0, for an int2vector", 10.0),
    SetFunction("unnest", _unnest, "the elements of an array, or of several side by side", 10.0),
    SetFunction("_pg_expandarray", _numbered, "the elements of an array with their places", 10.0),
    SetFunction("pg_options_to_table", _options, "options as name=value, side by side", 3.0),
    SetFunction("string_to_table", _texts(2, 3), "text, separator, what stands for NULL", 10.0),
    SetFunction("regexp_split_to_table", _texts(2, 3), "text, pattern, flags", 10.0),
    SetFunction(
        "regexp_matches", _texts(2, 3, array(VARCHAR)), "text, pattern, flags (g: all)", 1.0
    ),
    SetFunction("json_array_elements", _json(("value", JSON)), _ELEMENTS, 10.0),
    SetFunction("json_array_elements_text", _json(("value", VARCHAR)), _ELEMENTS, 10.0),
    SetFunction("json_each", _json(("key", VARCHAR), ("value", JSON)), _EACH, 10.0),
    SetFunction("json_each_text", _json(("key", VARCHAR), ("value", VARCHAR)), _EACH, 10.0),
    SetFunction("json_object_keys", _json(("", VARCHAR)), "the names in an object", 10.0),
    SetFunction(
        "json_path_query",
        _path_query,
        "json, path, variables, silent: the items that it finds",
        10.0,
    ),
    SetFunction(
        "json_path_query_tz",
        _path_query,
        "the same, comparing times with and without a zone",
        10.0,
    ),
    SetFunction("json_to_record", _record, "an object, as AS x (column type, ...) says", 1.0),
    SetFunction(
        "json_to_recordset", _record, "objects of an array, as AS x (column type, ...)", 10.0
    ),
)
SET_FUNCTIONS: Final[dict[str, SetFunction]] = {f.name: f for f in _DEFINED}
SET_FUNCTIONS.update(
    (f"jsonb_{f.name.removeprefix('json_')}", f) for f in _DEFINED if f.name.startswith("json_")
)
"""Set functions by every name that they go by."""
RECORD_FUNCTIONS: Final = frozenset({"json_to_record", "json_to_recordset"})
"""Their columns are defined where they are called; their last argument has the names."""
