"""Functions that depend on the time zone of the session, their first argument: types of arguments
and results. ``session.in_zone`` writes these calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from remuda.datatypes.sql import (
    BIGINT,
    INTERVAL,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array,
)
from remuda.plan.functions.signatures import ScalarFunction, Signature, Types, fixed


def with_texts(sql_type: SqlType) -> SqlType:
    """The type with VARCHAR in place of each TIMESTAMP WITH TIME ZONE."""
    if sql_type.kind is Kind.TIMESTAMPTZ:
        return VARCHAR
    if sql_type.element is not None:
        return array(with_texts(sql_type.element))
    fields = tuple((name, with_texts(each)) for name, each in sql_type.fields)
    return replace(sql_type, fields=fields)


def _cast(types: Types) -> Signature | None:
    """(zone, x): the binder knows the type of the result."""
    return Signature(types, types[1]) if len(types) == 2 else None


def _as_json(types: Types) -> Signature | None:
    return Signature(types, with_texts(types[1])) if len(types) == 2 else None


FUNCTIONS: Final = (
    ScalarFunction("cast_in_zone", _cast, raises=True,
                   summary="zone, x: CAST from or to moments by the clocks of a zone"),
    ScalarFunction("iso_in_zone", _as_json,
                   summary="zone, x: moments in it become text, as JSON has them"),
    ScalarFunction("move_in_zone", fixed(TIMESTAMPTZ, VARCHAR, TIMESTAMPTZ, INTERVAL), raises=True,
                   summary="zone, moment, interval: days and months by the clocks of a zone"),
    ScalarFunction("trunc_in_zone", fixed(TIMESTAMPTZ, VARCHAR, TIMESTAMPTZ, VARCHAR),
                   summary="zone, moment, field: date_trunc by the clocks of a zone"),
    ScalarFunction("zone_offset", fixed(BIGINT, VARCHAR, TIMESTAMPTZ, VARCHAR),
                   summary="zone, moment, field: timezone, timezone_hour or timezone_minute"),
    ScalarFunction("to_char_in_zone", fixed(VARCHAR, VARCHAR, TIMESTAMPTZ, VARCHAR), raises=True,
                   summary="zone, moment, template"),
    ScalarFunction("to_timestamp_in_zone", fixed(TIMESTAMPTZ, VARCHAR, VARCHAR, VARCHAR),
                   raises=True, summary="zone, text, template"),
)  # fmt: skip

INTERNAL: Final = frozenset(function.name for function in FUNCTIONS)
ALIASES: Final[dict[str, str]] = {}
