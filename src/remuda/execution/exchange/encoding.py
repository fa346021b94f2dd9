"""Batches as Arrow IPC messages and back.

The stream's schema message precedes its first batch. Arrow's writer sends only the rows that a
sliced array refers to, so slices need no compaction of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.errors import ProtocolError
from remuda.execution.batch import Batch
from remuda.execution.evaluate.decimals import canonical
from remuda.plan.logical import OutputColumn


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
