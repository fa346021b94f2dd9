"""Single values in PostgreSQL's text form."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.texts.valuetext import text_of
from remuda.datatypes.times.zones import Zone
from remuda.postgres.binary_values import Encoder


@lru_cache(maxsize=1024)
def text_encoder(sql_type: SqlType, zone: Zone | None = None) -> Encoder:
    """As PostgreSQL's output functions write a value: like CAST to text, but for BOOLEAN. Moments
    are written by the clocks of ``zone``, values in the forms of its session; None: UTC, and the
    usual forms."""
    if zone is not None and zone.forms.writes(sql_type):
        own = text_of(sql_type, zone)
        return lambda value: own(value).encode()
    match sql_type.kind:
        case Kind.BOOLEAN:
            return lambda value: b"t" if value else b"f"
        case _ if sql_type.holds_text:
            return lambda value: value.encode("utf-8", "surrogatepass")
        case Kind.DOUBLE:
            return float_encoder(text_of(sql_type))
        case _ if sql_type.is_integer:
            return lambda value: b"%d" % value
        case Kind.BYTEA:
            return lambda value: b"\\x" + value.hex().encode()
        case Kind.NULL:
            return lambda _: b""
        case _:
            text = text_of(sql_type, zone)
            return lambda value: text(value).encode()


def float_encoder(general: Callable[[Any], str]) -> Encoder:
    """Python's shortest digits are PostgreSQL's; only the forms with an exponent differ."""

    def encode(value: float) -> bytes:
        text = repr(value)
        if not 1e-4 <= abs(value) < 1e15:  # also NaN
            return general(value).encode()
        return text.removesuffix(".0").encode()

    return encode
