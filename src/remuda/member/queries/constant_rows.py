"""The rows of a query that reads no map, without operators, fragments and a cursor."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from remuda.datatypes.values import PhysicalValue, arrays_to_rows, values_to_array
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.given import given, is_given
from remuda.planner.constant_read import ConstantRead


def constant_rows(
    read: ConstantRead, values: tuple[PhysicalValue, ...]
) -> Sequence[Sequence[PhysicalValue]]:
    """``values`` are those of all parameters. Raises the DataErrors of the expressions."""
    if len(read.rows) == 1 and read.filter is None:
        row: list[PhysicalValue] = []
        for each in read.expressions:
            if not is_given(each):
                break
            row.append(given(each, values))
        else:
            return [row]
    arrays = [
        values_to_array([row[place] for row in read.rows], kind)
        for place, kind in enumerate(read.types)
    ]
    batch = Batch(arrays, len(read.rows))
    compiler = Compiler(dict(read.columns), values)
    if read.filter is not None:
        passed = compiler.column(read.filter)(batch).to_pylist()
        keep = [place for place, passes in enumerate(passed) if passes]
        taken = pa.array(keep, pa.int64())
        batch = Batch([array.take(taken) for array in arrays], len(keep))
    columns = [canonical(compiler.column(each)(batch), each.type) for each in read.expressions]
    return list(arrays_to_rows(columns, [each.type for each in read.expressions]))
