"""PEP 249's type objects and constructors."""

from __future__ import annotations

import datetime
import time

from remuda.datatypes.sql import FLOAT_KINDS, INTEGER_KINDS, Kind, SqlType

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


class TypeObject:
    """Equals the type code (the SqlType) of the columns that it stands for."""

    def __init__(self, name: str, *kinds: Kind) -> None:
        self._name = name
        self._kinds = frozenset(kinds)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SqlType):
            return other.kind in self._kinds
        if isinstance(other, TypeObject):
            return other._kinds == self._kinds and other._name == self._name
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"remuda.dbapi.{self._name}"


STRING = TypeObject("STRING", Kind.VARCHAR, Kind.CHAR, Kind.ENUM, Kind.JSON, Kind.UUID)
BINARY = TypeObject("BINARY", Kind.BYTEA)
NUMBER = TypeObject("NUMBER", *INTEGER_KINDS, *FLOAT_KINDS, Kind.DECIMAL, Kind.BOOLEAN)
DATETIME = TypeObject(
    "DATETIME", Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL
)
ROWID = TypeObject("ROWID")
"""Equals no column: rows are found by their keys, which have types of their own."""


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802  (PEP 249's name)
    """The local date of a time in seconds since 1970."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802
    """The local time of day of a time in seconds since 1970."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802
    """The local date and time, without a zone, of a time in seconds since 1970."""
    return Timestamp(*time.localtime(ticks)[:6])
