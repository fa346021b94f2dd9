"""The two forms of result pages: Arrow IPC for Remuda's clients, value vectors for Drill's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from remuda.datatypes.arrow import external_schema
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import BOOLEAN, VARCHAR
from remuda.errors import RemudaError
from remuda.rpc import codec
from remuda.rpc.drill_errors import encode_drill_error
from remuda.rpc.frame import Buffer
from remuda.rpc.messages import user_pb2
from remuda.rpc.transport import Channel
from remuda.rpc.value_vectors.batch import encode_batch
from remuda.session.shape import ResultShape

ARROW_PROPERTY: Final = "remuda.results"
SUMMARY: Final = (Column("ok", BOOLEAN), Column("summary", VARCHAR))
"""The answer of a statement without a result to Drill's clients, as Drill gives it."""
COUNTED: Final = ("INSERT", "UPDATE", "DELETE", "MERGE", "SELECT")
"""Tags that say how many rows were written; SELECT is CREATE TABLE AS."""


class PageForm(Protocol):
    def fill(self, message: user_pb2.QueryData, batch: pa.RecordBatch) -> Sequence[Buffer]:
        """Describe ``batch`` (external form) in ``message``; the pieces of the body."""

    def nothing(self, tag: str, affected_rows: int | None) -> pa.RecordBatch:
        """The only page of a success without pages."""

    def error(self, error: RemudaError, query: str) -> user_pb2.PBError: ...


class ArrowPages:
    """The first page brings the columns."""

    def __init__(self, shape: ResultShape) -> None:
        self._shape = shape
        self._first = True

    def fill(self, message: user_pb2.QueryData, batch: pa.RecordBatch) -> Sequence[Buffer]:
        if self._first:
            self._first = False
            message.columns.extend(self._shape.messages)
        return self._shape.stream(batch)

    def nothing(self, tag: str, affected_rows: int | None) -> pa.RecordBatch:  # noqa: ARG002
        return self._shape.rows([])

    def error(self, error: RemudaError, query: str) -> user_pb2.PBError:  # noqa: ARG002
        return codec.encode_error(error)


class VectorPages:
    """Every page brings its vectors' descriptions."""

    def __init__(self, shape: ResultShape, *, complex_types: bool) -> None:
        self._shape = shape
        self._columns = shape.columns
        self._complex_types = complex_types
        self._affected: int | None = None

    def fill(self, message: user_pb2.QueryData, batch: pa.RecordBatch) -> Sequence[Buffer]:
        definition: user_pb2.RecordBatchDef = getattr(message, "def")
        definition.carries_two_byte_selection_vector = False
        if self._affected is not None:
            message.affected_rows_count = definition.affected_rows_count = self._affected
        fields, buffers = encode_batch(self._columns, batch, complex_types=self._complex_types)
        definition.field.extend(fields)
        return buffers

    def nothing(self, tag: str, affected_rows: int | None) -> pa.RecordBatch:
        if self._columns:
            return self._shape.rows([])
        self._columns = SUMMARY
        self._affected = affected_rows
        counted = affected_rows is not None and tag in COUNTED
        summary = f"{tag} {affected_rows}" if counted else tag
        values: list[list[Any]] = [[True], [summary]]
        return pa.record_batch(values, schema=external_schema(SUMMARY))

    def error(self, error: RemudaError, query: str) -> user_pb2.PBError:
        return encode_drill_error(error, query)


def is_stock(channel: Channel) -> bool:
    """Whether Drill's own client is at the other end: it has not asked for Arrow."""
    hello = channel.handshake
    assert isinstance(hello, user_pb2.UserToBitHandshake)
    return not any(
        p.key == ARROW_PROPERTY and p.value == "arrow" for p in hello.properties.properties
    )


def page_form(channel: Channel, shape: ResultShape) -> PageForm:
    if not is_stock(channel):
        return ArrowPages(shape)
    hello = channel.handshake
    assert isinstance(hello, user_pb2.UserToBitHandshake)
    return VectorPages(shape, complex_types=hello.support_complex_types)
