"""Messages of the protocol: those of clients are read, those of servers are written."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from remuda.errors import ProtocolError
from remuda.postgres.unicode import invalid_bytes

_INT16: Final = struct.Struct("!h")
_INT32: Final = struct.Struct("!i")
_UINT32: Final = struct.Struct("!I")
_TEXT, _BINARY = 0, 1

# --- from clients ------------------------------------------------------------------------------


class Query(NamedTuple):
    """One or several statements, answered at once."""

    text: str


class Parse(NamedTuple):
    """Prepare a statement; ``types`` are oids, 0 for a parameter whose type the server finds."""

    name: str
    text: str
    types: tuple[int, ...]


class Bind(NamedTuple):
    """Give a prepared statement its parameters. ``formats`` are 0 (text) or 1 (binary): none stand
    for text, one for all. A value of None is NULL."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Describe(NamedTuple):
    """``portal``: whether the name is that of a portal, not of a statement."""

    portal: bool
    name: str


class Execute(NamedTuple):
    """``limit``: rows after which the portal is suspended; 0 for all."""

    portal: str
    limit: int


class Close(NamedTuple):
    portal: bool
    name: str


class Flush(NamedTuple):
    pass


class Sync(NamedTuple):
    pass


class Terminate(NamedTuple):
    pass


class FunctionCall(NamedTuple):
    pass


class CopyMessage(NamedTuple):
    """CopyData, CopyDone or CopyFail. Clients may send them after a COPY has failed."""


Message: TypeAlias = (
    Query
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Flush
    | Sync
    | Terminate
    | FunctionCall
    | CopyMessage
)

SYNC_TYPE: Final = ord("S")
FLUSH_TYPE: Final = ord("H")
TERMINATE_TYPE: Final = ord("X")
COPY_DATA, COPY_DONE, COPY_FAIL = ord("d"), ord("c"), ord("f")
_BIND: Final = ord("B")


def read_message(kind: int, body: bytes) -> Message:
    """Raises ProtocolError (08P01), and InvalidByteSequence for a text that is no UTF-8."""
    read = _READERS.get(kind)
    if read is None:
        raise ProtocolError(f"invalid frontend message type {kind}")
    try:
        return read(body)
    except (struct.error, IndexError) as problem:
        raise ProtocolError(f"message of type {chr(kind)!r} is cut short") from problem
    except UnicodeDecodeError as problem:
        raise invalid_bytes(problem.object, problem.start) from None


def _string(body: bytes, at: int) -> tuple[str, int]:
    end = body.find(b"\0", at)
    if end < 0:
        raise IndexError("a text without its end")
    return body[at:end].decode(), end + 1


def _query(body: bytes) -> Query:
    text, end = _string(body, 0)
    _require_end(body, end)
    return Query(text)


def _parse(body: bytes) -> Parse:
    name, at = _string(body, 0)
    text, at = _string(body, at)
    count = _count(body, at)
    types = struct.unpack_from(f"!{count}I", body, at + 2)
    _require_end(body, at + 2 + 4 * count)
    return Parse(name, text, types)


def read_bind(body: bytes) -> Bind:
    """Raises ProtocolError (08P01). The usual form of drivers that prepare statements (the unnamed
    portal, one format for all parameters and one for all columns) is read without further calls."""
    end = body.find(b"\0", 1)
    formats = _FEW_FORMATS.get(body[end + 1 : end + 5])
    results = _FEW_FORMATS.get(body[-4:])
    last = len(body) - 4
    if not body or body[0] or end < 0 or formats is None or results is None or end + 7 > last:
        return _general_bind(body)
    count = body[end + 5] << 8 | body[end + 6]
    at = end + 7
    values: list[bytes | None] = []
    while at + 4 <= last and len(values) < count:
        (size,) = _INT32.unpack_from(body, at)
        at += 4
        if size < 0:
            values.append(None)
            continue
        values.append(body[at : at + size])
        at += size
    if at != last or len(values) != count:
        return _general_bind(body)
    try:
        name = body[1:end].decode()
    except UnicodeDecodeError:
        return _general_bind(body)
    return Bind("", name, formats, tuple(values), results)


def _general_bind(body: bytes) -> Bind:
    message = read_message(_BIND, body)
    assert isinstance(message, Bind)
    return message


def _bind(body: bytes) -> Bind:
    portal, at = _string(body, 0)
    statement, at = _string(body, at)
    formats, at = _formats(body, at)
    count = _count(body, at)
    at += 2
    values: list[bytes | None] = []
    for _ in range(count):
        (size,) = _INT32.unpack_from(body, at)
        at += 4
        if size < 0:
            values.append(None)
            continue
        if at + size > len(body):
            raise IndexError("a value that is longer than its message")
        values.append(body[at : at + size])
        at += size
    result_formats, at = _formats(body, at)
    _require_end(body, at)
    return Bind(portal, statement, formats, tuple(values), result_formats)


def _formats(body: bytes, at: int) -> tuple[tuple[int, ...], int]:
    known = _FEW_FORMATS.get(body[at : at + 4])
    if known is not None:
        return known, at + 4
    count = _count(body, at)
    formats = struct.unpack_from(f"!{count}h", body, at + 2)
    for each in formats:
        if each not in (_TEXT, _BINARY):
            raise ProtocolError(f"unsupported format code: {each}")
    return formats, at + 2 + 2 * count


_FEW_FORMATS: Final = {b"\0\1\0\0": (_TEXT,), b"\0\1\0\1": (_BINARY,)}
"""One format for all, as most clients send it."""


def _count(body: bytes, at: int) -> int:
    """Counts are unsigned: a statement has up to 65,535 parameters."""
    return int(_INT16.unpack_from(body, at)[0]) & 0xFFFF


def _target(body: bytes) -> tuple[bool, str]:
    kind = body[0:1]
    if kind not in (b"S", b"P"):
        raise ProtocolError(f"neither a statement nor a portal: {kind!r}")
    name, end = _string(body, 1)
    _require_end(body, end)
    return kind == b"P", name


def _execute(body: bytes) -> Execute:
    portal, at = _string(body, 0)
    (limit,) = _INT32.unpack_from(body, at)
    _require_end(body, at + 4)
    return Execute(portal, max(limit, 0))


def _require_end(body: bytes, at: int) -> None:
    if at != len(body):
        raise ProtocolError(f"a message has {len(body) - at} bytes too many")


def _without_body(body: bytes, message: Message) -> Message:
    _require_end(body, 0)
    return message


_READERS: Final[dict[int, Callable[[bytes], Message]]] = {
    ord("Q"): _query,
    ord("P"): _parse,
    ord("B"): _bind,
    ord("D"): lambda body: Describe(*_target(body)),
    ord("E"): _execute,
    ord("C"): lambda body: Close(*_target(body)),
    ord("H"): lambda body: _without_body(body, Flush()),
    SYNC_TYPE: lambda body: _without_body(body, Sync()),
    ord("X"): lambda body: _without_body(body, Terminate()),
    ord("F"): lambda _: FunctionCall(),
    ord("d"): lambda _: CopyMessage(),
    ord("c"): lambda _: CopyMessage(),
    ord("f"): lambda _: CopyMessage(),
}

# --- to clients --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a result, as RowDescription tells it. ``length`` is -1 for a variable one.
    ``relation`` and ``column``: the OID of the table or view whose column it is, and the place of
    that column; 0: it is an expression."""

    name: str
    type: int
    length: int
    modifier: int
    relation: int = 0
    column: int = 0


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + _INT32.pack(len(body) + 4) + body


def _zero_ended(text: str) -> bytes:
    """PostgreSQL's texts end with a zero, and hold none."""
    return text.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"


PARSE_COMPLETE: Final = message(b"1")
BIND_COMPLETE: Final = message(b"2")
CLOSE_COMPLETE: Final = message(b"3")
NO_DATA: Final = message(b"n")
EMPTY_QUERY: Final = message(b"I")
PORTAL_SUSPENDED: Final = message(b"s")
AUTHENTICATION_OK: Final = message(b"R", _INT32.pack(0))
AUTHENTICATION_CLEARTEXT: Final = message(b"R", _INT32.pack(3))
NO_ENCRYPTION: Final = b"N"
ENCRYPTION: Final = b"S"


def authentication_sasl(mechanisms: Iterable[str]) -> bytes:
    names = b"".join(_zero_ended(name) for name in mechanisms)
    return message(b"R", _INT32.pack(10) + names + b"\0")


def authentication_continue(data: bytes) -> bytes:
    return message(b"R", _INT32.pack(11) + data)


def authentication_final(data: bytes) -> bytes:
    return message(b"R", _INT32.pack(12) + data)


def negotiate_version(minor: int, unknown: Sequence[str]) -> bytes:
    """The newest minor version of this server, and the protocol options that it does not know."""
    names = b"".join(_zero_ended(name) for name in unknown)
    return message(b"v", _INT32.pack(3 << 16 | minor) + _INT32.pack(len(unknown)) + names)


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", _zero_ended(name) + _zero_ended(value))


def notification_response(pid: int, channel: str, payload: str) -> bytes:
    return message(b"A", _UINT32.pack(pid) + _zero_ended(channel) + _zero_ended(payload))


def backend_key(pid: int, secret: int) -> bytes:
    return message(b"K", _UINT32.pack(pid) + _UINT32.pack(secret))


COPY_DONE_MESSAGE: Final = message(b"c")


def copy_in_response(columns: int, *, binary: bool) -> bytes:
    """Asks the client for the rows of a COPY FROM."""
    return message(b"G", _copy_formats(columns, binary=binary))


def copy_out_response(columns: int, *, binary: bool) -> bytes:
    """The rows of a COPY TO follow."""
    return message(b"H", _copy_formats(columns, binary=binary))


def _copy_formats(columns: int, *, binary: bool) -> bytes:
    form = _BINARY if binary else _TEXT
    return struct.pack(f"!bH{columns}h", form, columns, *[form] * columns)


IDLE: Final = b"I"
"""The status of a session without a transaction."""


@lru_cache(maxsize=8)
def ready_for_query(status: bytes) -> bytes:
    """``status``: I (idle), T (in a transaction), E (in one that has failed)."""
    return message(b"Z", status)


@lru_cache(maxsize=1024)
def command_complete(tag: str) -> bytes:
    return message(b"C", _zero_ended(tag))


def parameter_description(types: Sequence[int]) -> bytes:
    return message(b"t", struct.pack(f"!H{len(types)}I", len(types), *types))


_FIELD: Final = struct.Struct("!IhIhih")


def row_description(fields: Sequence[Field], formats: Sequence[int]) -> bytes:
    parts = [struct.pack("!H", len(fields))]
    for field, form in zip(fields, formats, strict=True):
        parts.append(_zero_ended(field.name))
        origin = (field.relation, field.column)
        parts.append(_FIELD.pack(*origin, field.type, field.length, field.modifier, form))
    return message(b"T", b"".join(parts))


def error_response(fields: Mapping[str, str]) -> bytes:
    """``fields`` by PostgreSQL's letters; empty ones are left out."""
    return message(b"E", _report(fields))


def notice_response(fields: Mapping[str, str]) -> bytes:
    """As an error, of a statement that succeeds."""
    return message(b"N", _report(fields))


def _report(fields: Mapping[str, str]) -> bytes:
    shown = [letter.encode() + _zero_ended(text) for letter, text in fields.items() if text]
    return b"".join(shown) + b"\0"
