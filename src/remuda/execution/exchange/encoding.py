"""Batches as Arrow IPC messages and back.

A batch of long columns is not copied into its message: the message is a list of buffers, those of
the columns among them. The stream's schema message precedes its first batch. Arrow's writer sends
only the rows that a sliced array refers to, so slices need no compaction of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.errors import ProtocolError
from remuda.execution.batch import Batch
from remuda.execution.evaluate.decimals import canonical
from remuda.limits import KIB
from remuda.plan.logical import OutputColumn

COLUMN_SIZE_MIN = 64 * KIB
"""Bytes of a column on average from which on handing its buffers over is worth more than the copy.
Shorter ones would be copied together before they are written."""


class _Written:
    """A file as Arrow wants one, which keeps what is written: lengths and metadata as bytes, and
    columns as the buffers that they are."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes | pa.Buffer] = []

    def write(self, part: bytes | pa.Buffer) -> None:
        self.parts.append(part)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True


class BatchEncoder:
    """Batches of one form as record batch messages. For one thread."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._file = _Written()
        self._writer: pa.RecordBatchStreamWriter | None = None

    def encode(self, batch: pa.RecordBatch, size: int) -> tuple[pa.Buffer, ...]:
        """The message in pieces, ``size`` bytes in all (``encoded_size``). They may be the buffers
        of ``batch``, which stay alive with them."""
        if size < COLUMN_SIZE_MIN * max(batch.num_columns, 1):
            return (batch.serialize(),)
        if self._writer is None:
            self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), self._schema)
            # The schema message comes with the first batch, and is sent apart.
            self._writer.write_batch(batch.slice(0, 0))
            self._file.parts.clear()
        self._writer.write_batch(batch)
        parts, self._file.parts = self._file.parts, []
        return tuple(_joined(parts))


def _joined(parts: Sequence[bytes | pa.Buffer]) -> list[pa.Buffer]:
    """With neighbouring bytes put together."""
    result: list[pa.Buffer] = []
    short: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            short.append(part)
            continue
        if short:
            result.append(pa.py_buffer(b"".join(short)))
            short = []
        result.append(part)
    if short:
        result.append(pa.py_buffer(b"".join(short)))
    return result


class BatchForm:
    """The canonical form of the batches on one edge."""

    def __init__(self, output: Sequence[OutputColumn]) -> None:
        self.types = [column.type for column in output]
        self.schema = pa.schema(
            [pa.field(f"c{column.id}", engine_type(column.type)) for column in output]
        )
        self._schema_message: pa.Buffer | None = None

    def record_batch(self, batch: Batch) -> pa.RecordBatch:
        """Materialized, in canonical types. Without columns a batch keeps its row count."""
        if not self.types:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.rows, pa.struct([])))
        columns = [
            canonical(column, type_)
            for column, type_ in zip(batch.columns(), self.types, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @property
    def schema_message(self) -> pa.Buffer:
        if self._schema_message is None:
            self._schema_message = self.schema.serialize()
        return self._schema_message

    def decode(self, body: pa.Buffer | bytes | memoryview, first: bool) -> pa.RecordBatch:
        """One dbody; ``first``: with the schema message before it. Arrays refer into ``body``.

        Raises ProtocolError when the body is not what the edge carries."""
        try:
            reader = pa.BufferReader(body)
            if first:
                schema = pa.ipc.read_schema(pa.ipc.read_message(reader))
                if not schema.equals(self.schema):
                    raise ProtocolError(
                        "a batch has other columns than its edge",
                        detail=f"expected {self.schema}, found {schema}",
                    )
            return pa.ipc.read_record_batch(pa.ipc.read_message(reader), self.schema)
        except (pa.ArrowInvalid, EOFError, OSError) as error:
            raise ProtocolError(f"a batch cannot be read: {error}") from error


_FORMS: Final[dict[int, tuple[Sequence[OutputColumn], BatchForm]]] = {}
_FORMS_KEPT: Final = 1_000


def form_of(output: Sequence[OutputColumn]) -> BatchForm:
    """The form of the batches of an edge: the same for each run of a cached plan, which is told by
    the identity of ``output``, as hashing it takes longer than making the form. Any thread."""
    known = _FORMS.get(id(output))
    if known is None:
        if len(_FORMS) >= _FORMS_KEPT:
            _FORMS.clear()
        known = _FORMS[id(output)] = output, BatchForm(output)
    return known[1]


def encoded_size(batch: pa.RecordBatch) -> int:
    """Bytes of the batch message, without encoding it."""
    return int(pa.ipc.get_record_batch_size(batch))


def pieces(batch: pa.RecordBatch, size_max: int) -> list[tuple[pa.RecordBatch, int]]:
    """``batch`` cut so that each piece encodes to at most ``size_max`` bytes, with the sizes; a
    single row may be larger."""
    size = encoded_size(batch)
    if size <= size_max or batch.num_rows <= 1:
        return [(batch, size)]
    parts = min(batch.num_rows, -(-size // size_max))
    rows = -(-batch.num_rows // parts)
    result: list[tuple[pa.RecordBatch, int]] = []
    for start in range(0, batch.num_rows, rows):
        piece = batch.slice(start, rows)
        if piece.num_rows == batch.num_rows:  # cannot happen with two parts or more
            return [(batch, size)]
        result += pieces(piece, size_max)
    return result
