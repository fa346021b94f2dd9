"""Times and intervals rounded to some digits of a second, half away from zero as PostgreSQL does
(of timestamps zero is the year 2000)."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.intervals import pack, unpack
from remuda.datatypes.sql import Kind
from remuda.errors import DatetimeOverflow
from remuda.execution.evaluate.datetimes import physical_rows
from remuda.execution.evaluate.kernel import Kernel
from remuda.plan.expression import Call

_DAY: Final = 86_400_000_000
_YEAR_2000: Final = 10_957 * _DAY
"""Microseconds since 1970."""


def round_fraction(call: Call) -> Kernel:
    """(time, digits)"""
    match call.type.kind:
        case Kind.INTERVAL:
            return physical_rows(_interval)(call)
        case Kind.TIME:
            return physical_rows(_time)(call)
        case _:
            return physical_rows(_timestamp)(call)


def _timestamp(micros: int, digits: int) -> int:
    return _rounded(micros - _YEAR_2000, digits) + _YEAR_2000


def _rounded(micros: int, digits: int) -> int:
    unit = int(10 ** (6 - digits))
    size = (abs(micros) + unit // 2) // unit * unit
    return size if micros >= 0 else -size


def _time(micros: int, digits: int) -> int:
    found = _rounded(micros, digits)
    if found >= _DAY:
        raise DatetimeOverflow("24:00:00 is not a time of a day", hint="Keep more digits.")
    return found


def _interval(value: bytes, digits: int) -> bytes:
    months, days, micros = unpack(value)
    return pack(months, days, _rounded(micros, digits))
