"""The fields of dates and times that ``extract`` and ``date_trunc`` take."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import BIGINT, SqlType, decimal

EXTRACT_FIELDS: Final[dict[str, SqlType]] = {
    "millennium": BIGINT,
    "century": BIGINT,
    "decade": BIGINT,
    "year": BIGINT,
    "isoyear": BIGINT,
    "quarter": BIGINT,
    "month": BIGINT,
    "week": BIGINT,
    "day": BIGINT,
    "dow": BIGINT,
    "isodow": BIGINT,
    "doy": BIGINT,
    "hour": BIGINT,
    "minute": BIGINT,
    "second": decimal(8, 6),
    "milliseconds": decimal(8, 3),
    "microseconds": BIGINT,
    "epoch": decimal(18, 6),
    "julian": decimal(18, 10),
}
"""Field -> result type. PostgreSQL returns numeric for all; whole fields are BIGINT here, as in
DuckDB, so that they make cheap keys. ``epoch`` unscaled is just the count of microseconds."""

ZONE_FIELDS: Final = ("timezone", "timezone_hour", "timezone_minute")
"""Of TIMESTAMP WITH TIME ZONE only: the offset of the session's zone."""
TIME_FIELDS: Final = ("hour", "minute", "second", "milliseconds", "microseconds")
TRUNC_FIELDS: Final = (
    "millennium", "century", "decade", "year", "quarter", "month", "week", "day",
    "hour", "minute", "second", "milliseconds", "microseconds",
)  # fmt: skip
