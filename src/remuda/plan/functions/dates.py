"""Functions of dates and times: types of arguments and results."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from remuda.datatypes.coercion import common_type
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    decimal,
)
from remuda.plan.functions.datetime_fields import EXTRACT_FIELDS, TIME_FIELDS, ZONE_FIELDS
from remuda.plan.functions.intervals import INTERVAL_FIELDS
from remuda.plan.functions.signatures import (
    NullRule,
    ScalarFunction,
    Signature,
    Types,
    fixed,
    overloads,
    unknown,
)


def _extract(types: Types) -> Signature | None:
    """The result type depends on the field: the binder asks ``extract_signature``."""
    return extract_signature("year", types[1]) if len(types) == 2 else None


def extract_signature(field: str, source: SqlType) -> Signature | None:
    """``extract(field from source)``, or None when the type has no such field."""
    if field in ZONE_FIELDS:
        return Signature((VARCHAR, source), BIGINT) if source == TIMESTAMPTZ else None
    result = EXTRACT_FIELDS.get(field)
    if unknown(source):
        source = TIMESTAMP
    if source == INTERVAL and result is not None and field in INTERVAL_FIELDS:
        return Signature((VARCHAR, source), result)
    if result is None or source not in (DATE, TIME, TIMESTAMP, TIMESTAMPTZ):
        return None
    if source == TIME and field not in (*TIME_FIELDS, "epoch"):
        return None
    if source == DATE and field in TIME_FIELDS:
        return None
    if source == DATE and field in ("julian", "epoch"):
        result = BIGINT
    return Signature((VARCHAR, source), result)


def _date_trunc(types: Types) -> Signature | None:
    """TIMESTAMP stays; DATE -> TIMESTAMPTZ, as in PostgreSQL."""
    if len(types) != 2 or not (types[0].is_text or unknown(types[0])):
        return None
    source = TIMESTAMP if unknown(types[1]) else types[1]
    if source == INTERVAL:
        return Signature((VARCHAR, source), INTERVAL)
    if source not in (DATE, TIMESTAMP, TIMESTAMPTZ):
        return None
    source = TIMESTAMPTZ if source == DATE else source
    return Signature((VARCHAR, source), source)


def _add_interval(types: Types) -> Signature | None:
    """(x, months, days, microseconds): DATE and TIMESTAMP -> TIMESTAMP, TIMESTAMPTZ and TIME stay.
    Months first (day clipped to the month's last), then days, then µs; TIME wraps at 24 h."""
    if len(types) != 4 or types[0] not in (DATE, TIME, TIMESTAMP, TIMESTAMPTZ):
        return None
    result = TIMESTAMP if types[0] == DATE else types[0]
    return Signature((types[0], BIGINT, BIGINT, BIGINT), result)


def _to_char(types: Types) -> Signature | None:
    """A timestamp, date, interval or number, and a template."""
    if len(types) != 2 or not (types[1].is_text or unknown(types[1])):
        return None
    t = types[0]
    if t == DATE:
        t = TIMESTAMPTZ
    if t in (TIMESTAMP, TIMESTAMPTZ, INTERVAL) or t.is_numeric:
        return Signature((DOUBLE if t.is_float else t, VARCHAR), VARCHAR)
    return None


def _to_number(types: Types) -> Signature | None:
    """``number_signature`` sharpens the result for a literal template."""
    return fixed(decimal(DECIMAL_PRECISION_MAX, 10), VARCHAR, VARCHAR)(types)


def number_signature(signature: Signature, template: str) -> Signature:
    """``to_number`` with as many digits after the point as the template has."""
    after = re.split(r"[.Dd]", template, maxsplit=1)[1:]
    scale = sum(character in "09" for character in after[0]) if after else 0
    scale += (
        sum(c == "9" for c in re.split("[Vv]", template, maxsplit=1)[1])
        if ("v" in template.lower())
        else 0
    )
    return replace(signature, result=decimal(DECIMAL_PRECISION_MAX, min(scale, 30)))


def _point(types: Types) -> Signature | None:
    if len(types) != 1 or types[0] not in (DATE, TIMESTAMP, TIMESTAMPTZ, INTERVAL):
        return None
    return Signature(types, BOOLEAN)


def _bin(types: Types) -> Signature | None:
    """(stride, source, origin)"""
    if len(types) != 3 or not (types[0] == INTERVAL or unknown(types[0])):
        return None
    common = common_type((*types[1:], TIMESTAMP))
    return None if common is None else Signature((INTERVAL, common, common), common)


def _fraction(types: Types) -> Signature | None:
    if len(types) != 2 or types[0] not in (TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL):
        return None
    return Signature((types[0], INTEGER), types[0])


def _overlaps(types: Types) -> Signature | None:
    """Four points of one type."""
    common = common_type(types) if len(types) == 4 else None
    if common not in (DATE, TIME, TIMESTAMP, TIMESTAMPTZ):
        return None
    return Signature((common,) * 4, BOOLEAN)


_PARTS: Final = (INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE)

FUNCTIONS: Final = (
    ScalarFunction("extract", _extract, summary="(field literal, date or time)"),
    ScalarFunction("date_trunc", _date_trunc, summary="(field literal, date or timestamp)"),
    ScalarFunction("date_bin", _bin, summary="stride, time, origin: where its stride begins",
                   raises=True),
    ScalarFunction("make_date", fixed(DATE, INTEGER, INTEGER, INTEGER),
                   summary="year, month, day", raises=True),
    ScalarFunction("make_time", fixed(TIME, INTEGER, INTEGER, DOUBLE),
                   summary="hour, minute, second", raises=True),
    ScalarFunction("make_timestamp", fixed(TIMESTAMP, *_PARTS), summary="year to second",
                   raises=True),
    ScalarFunction("make_timestamptz", fixed(TIMESTAMPTZ, *_PARTS),
                   summary="year to second, by the session's clocks",
                   raises=True),
    ScalarFunction("to_char", _to_char, summary="(time or number, template)", raises=True),
    ScalarFunction("to_number", _to_number, summary="(text, template)", raises=True),
    ScalarFunction("to_date", fixed(DATE, VARCHAR, VARCHAR), summary="(text, template)",
                   raises=True),
    ScalarFunction("to_timestamp", overloads(fixed(TIMESTAMPTZ, DOUBLE),
                                             fixed(TIMESTAMPTZ, VARCHAR, VARCHAR)),
                   summary="(text, template), or seconds since 1970", raises=True),
    ScalarFunction("isfinite", _point, summary="always: there are no infinite dates"),
    ScalarFunction("overlaps", _overlaps, NullRule.OWN, "two periods have a moment in common"),
    ScalarFunction("add_interval", _add_interval, summary="x, months, days, µs", raises=True),
    ScalarFunction("round_fraction", _fraction, summary="time, digits of its seconds",
                   raises=True),
    ScalarFunction("clock_timestamp", fixed(TIMESTAMPTZ), NullRule.NEVER, "this very moment",
                   folds=False),
    ScalarFunction("current_date", fixed(DATE), NullRule.NEVER, folds=False),
    ScalarFunction("current_user", fixed(VARCHAR), NullRule.NEVER, folds=False),
    ScalarFunction("backend_pid", fixed(INTEGER), NullRule.NEVER, folds=False),
    ScalarFunction("current_database", fixed(VARCHAR), NullRule.NEVER, folds=False),
    ScalarFunction("current_timestamp", fixed(TIMESTAMPTZ), NullRule.NEVER, folds=False),
    ScalarFunction("statement_timestamp", fixed(TIMESTAMPTZ), NullRule.NEVER,
                   "when the statement began", folds=False),
    ScalarFunction("transaction_number", fixed(BIGINT), NullRule.NEVER, folds=False),
    ScalarFunction(
        "session_setting", fixed(VARCHAR, VARCHAR, BOOLEAN), NullRule.OWN, folds=False
    ),
)  # fmt: skip

ALIASES: Final[dict[str, str]] = {
    "now": "current_timestamp",
    "transaction_timestamp": "current_timestamp",
    "date_part": "extract",
}
