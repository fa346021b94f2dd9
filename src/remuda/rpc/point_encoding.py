"""The messages on the path of every point operation, written by hand: exactly what protobuf reads.

Building a message field by field and serializing it costs several times more than joining a few
bytes, and these are small, of one form, and on the path of every get, put and read by key. A
message may be put together from parts, because protobuf reads concatenated messages as one: the
part that does not change from request to request is serialized once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Final

from remuda.rpc.frame import varint
from remuda.rpc.messages import common_pb2, control_pb2, user_pb2

encode_clock: Final[Callable[[int], bytes]] = partial(struct.Struct("<cq").pack, b"\x09")
"""The clock of a ``Context``, which comes before its rest."""
_query_id: Final = struct.Struct("<3sqcq").pack
_form: Final = struct.Struct("<cQ").pack
_SHORT: Final = 128
"""Lengths below take one byte."""

KEYS_ITEM: Final = b"\x22"  # KeysRequest.keys, PutRequest.rows
KEYS_CONTEXT: Final = b"\x3a"  # KeysRequest.context, PutRequest.context
RUN_PARAMETERS: Final = b"\xaa\x06"  # RunQuery.parameters
RUN_CONTEXT: Final = b"\xb2\x06"  # RunQuery.context
KEYS_BEGIN: Final = b"\xd2\x07"  # KeysRequest.begin
KEYS_AT: Final = b"\xc9\x07"  # KeysRequest.read_timestamp
KEYS_NEWEST: Final = b"\xd8\x07\x01"  # KeysRequest.newest
ROWS_CONTEXT: Final = b"\x12"  # RowsResponse.context
ROWS_BEGUN: Final = b"\xa2\x06"  # RowsResponse.begun
ROWS_OUTDATED: Final = b"\xa8\x06\x01"  # RowsResponse.outdated
TRANSACTION: Final = b"\xc2\x07"  # RunQuery.transaction; KeysRequest, PutRequest, PutBatchRequest


def field(tag: bytes, data: bytes) -> bytes:
    """A field with a length: bytes, text, or a message."""
    size = len(data)
    if size < _SHORT:
        return b"%b%c%b" % (tag, size, data)
    return b"%b%b%b" % (tag, varint(size), data)


def encode_context(clock: int, view: int, sender: int = 0) -> bytes:
    """A ``Context``."""
    return encode_clock(clock) + context_rest(view, sender)


@lru_cache(maxsize=64)
def context_rest(view: int, sender: int = 0) -> bytes:
    """A ``Context`` but for its clock."""
    return common_pb2.Context(view=view, sender=sender).SerializeToString()


def encode_forward(context: bytes, rpc_type: int, body: bytes) -> bytes:
    """A ``Forward`` of a member's own request, or the answer to one."""
    kind = _forward_type(rpc_type)
    if len(body) < _SHORT:
        return b"\x0a%c%b%b\x1a%c%b" % (len(context), context, kind, len(body), body)
    return b"".join((field(b"\x0a", context), kind, field(b"\x1a", body)))


def encode_entry_read(context: bytes, map_id: int, version: int, key: bytes, form: bytes) -> bytes:
    """An ``EntryRead``. A context has some 20 bytes."""
    rest = _entry_asked(map_id, version, form)
    return b"\x0a%c%b%b%b" % (len(context), context, field(b"\x22", key), rest)


@lru_cache(maxsize=1024)
def _entry_asked(map_id: int, version: int, form: bytes) -> bytes:
    """An ``EntryRead`` but for the context and the key."""
    asked = control_pb2.EntryRead(map_id=map_id, schema_version=version, form=form)
    return asked.SerializeToString()


def encode_entry_row(clock: int, row: bytes | None) -> bytes:
    """An ``EntryRow``."""
    if row is None:
        return encode_clock(clock)
    return encode_clock(clock) + field(b"\x12", row)


@lru_cache(maxsize=256)
def _forward_type(rpc_type: int) -> bytes:
    return control_pb2.Forward(rpc_type=rpc_type).SerializeToString()


def encode_rows(rows: Iterable[bytes | None], context: bytes) -> bytes:
    """A ``RowsResponse`` of packed rows, None = no such entry."""
    parts: list[bytes] = []
    for row in rows:
        if row is None:
            parts.append(b"\x0a\x00")
        elif (size := len(row)) < _SHORT - 2:
            parts.append(b"\x0a%c\x0a%c%b" % (size + 2, size, row))
        else:
            parts.append(field(b"\x0a", field(b"\x0a", row)))
    parts.append(b"\x12%c%b" % (len(context), context))  # a context has some 20 bytes
    return b"".join(parts)


def encode_answer(  # noqa: PLR0917 (the fields of one message)
    query: tuple[int, int],
    context: bytes,
    form: int,
    about: bytes | None,
    rows: Iterable[bytes],
    end: bytes = b"",
) -> bytes:
    """A ``QueryAnswer``; ``query`` holds both parts of the query's id, ``about`` is serialized,
    and so is ``end`` (``encode_end``)."""
    parts = [
        _query_id(b"\x0a\x12\x09", query[0], b"\x11", query[1]),
        b"\x12%c%b" % (len(context), context),  # some 20 bytes
        _form(b"\x19", form),
    ]
    if about is not None:
        parts.append(field(b"\x22", about))
    for row in rows:
        size = len(row)
        parts.append(b"\x2a%c%b" % (size, row) if size < _SHORT else field(b"\x2a", row))
    parts.append(end)
    return b"".join(parts)


@lru_cache(maxsize=64)
def encode_end(tag: str, affected_rows: int) -> bytes:
    """The part of a ``QueryAnswer`` about a statement that has changed rows."""
    return user_pb2.QueryAnswer(tag=tag, affected_rows=affected_rows).SerializeToString()
