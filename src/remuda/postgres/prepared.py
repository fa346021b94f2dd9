"""Prepared statements, and those that are bound and executed in one turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from remuda.errors import InvalidByteSequence, ProtocolError
from remuda.postgres import messages as m

_READY: Final = m.ready_for_query(m.IDLE)


class Manner(Enum):
    """How a statement goes with transactions."""

    ROWS = "reads or writes rows"
    BEGIN = "begins a transaction"
    CONTROL = "ends a transaction"
    BLOCK = "needs a transaction that BEGIN has begun"
    SESSION = "concerns the session alone"
    OUTSIDE = "cannot run in a transaction"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared statement. ``types`` are the oids of its parameters, ``fields`` the columns of its
    result (None: it gives no rows), ``token`` whatever the shell needs to run it; its ``text`` is
    empty for an empty statement."""

    text: str
    manner: Manner
    types: tuple[int, ...]
    fields: tuple[m.Field, ...] | None
    token: Any
    by_key: bool = False
    """The shell may be able to answer it at once, as a ``Turn``."""
    created: int = 0
    """Microseconds since 1970."""

    def described(self, formats: Sequence[int]) -> bytes:
        """The message that tells a client of the columns in these formats."""
        return m.NO_DATA if self.fields is None else m.row_description(self.fields, formats)


class Turn(NamedTuple):
    """A prepared statement that is bound, executed and synchronized by messages that came together,
    with nothing before or behind them. ``formats`` are those of its columns, ``described``: its
    columns are asked for, ``limit``: rows after which it stops (0: none)."""

    prepared: Prepared
    message: m.Bind
    formats: tuple[int, ...]
    described: bool
    limit: int

    def answered(self, description: bytes, rows: Sequence[bytes]) -> bytes:
        """Its whole answer. ``description`` is the RowDescription of its columns."""
        count = len(rows)
        if self.limit and count == self.limit:
            end = m.PORTAL_SUSPENDED
        else:
            end = m.command_complete(f"SELECT {count}")
        head = m.BIND_COMPLETE + description if self.described else m.BIND_COMPLETE
        return b"".join((head, *rows, end, _READY))

    def failed(self, description: bytes, told: bytes) -> bytes:
        """Its whole answer when its execution has failed. ``told`` is the ErrorResponse."""
        head = m.BIND_COMPLETE + description if self.described else m.BIND_COMPLETE
        return b"".join((head, told, _READY))


def whole_turn(
    statements: Mapping[str, Prepared], body: bytes, described: bool, limit: int
) -> Turn | None:
    """The turn of a Bind with this body; None: it is not in order, or is not a read by key."""
    try:
        message = m.read_bind(body)
        prepared = statements.get(message.statement)
        if message.portal or prepared is None or not prepared.by_key:
            return None
        given = len(message.values)
        if given != len(prepared.types) or len(message.formats) not in (0, 1, given):
            return None
        formats = result_formats(message.result_formats, prepared.fields)
    except (ProtocolError, InvalidByteSequence):
        return None
    return Turn(prepared, message, formats, described, limit)


def result_formats(given: tuple[int, ...], fields: Sequence[m.Field] | None) -> tuple[int, ...]:
    """One format per column. Raises ProtocolError for another number of them."""
    count = len(fields or ())
    if len(given) == count:
        return given
    if not given:
        return (0,) * count
    if len(given) == 1:
        return given * count
    raise ProtocolError(
        f"bind message has {len(given)} result formats but query has {count} columns"
    )
