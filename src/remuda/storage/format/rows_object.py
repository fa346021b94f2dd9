"""Rows of a snapshot as an Arrow IPC file.

The first three columns are each row's partition, begin and end timestamp; the map's own columns
follow, in the engine's types and in the order of the schema that the manifest names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.errors import DataCorrupted

OWN_COLUMNS: Final = (
    pa.field("__partition", pa.uint16(), nullable=False),
    pa.field("__begin", pa.int64(), nullable=False),
    pa.field("__end", pa.int64(), nullable=False),
)


def with_times(
    rows: pa.RecordBatch,
    partitions: npt.NDArray[np.uint16],
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
) -> pa.RecordBatch:
    """The rows of a map behind their partitions and timestamps."""
    columns = [pa.array(each) for each in (partitions, begins, ends)]
    schema = pa.schema([*OWN_COLUMNS, *rows.schema])
    return pa.RecordBatch.from_arrays([*columns, *rows.columns], schema=schema)


def encode_rows(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """``schema``: of the batches."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode_rows(data: bytes) -> pa.Table:
    """Raises ``DataCorrupted``."""
    try:
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise DataCorrupted(f"the rows cannot be read: {problem}") from problem
    own = [table.schema.field(i) for i in range(min(len(OWN_COLUMNS), len(table.schema)))]
    if tuple(own) != OWN_COLUMNS:
        raise DataCorrupted("the rows have no partition, begin and end")
    return table


def partitions_and_times(table: pa.Table) -> tuple[Any, Any, Any]:
    """The three own columns as NumPy arrays."""
    first, second, third = (table.column(i).to_numpy() for i in range(len(OWN_COLUMNS)))
    return first, second, third
