"""Functions whose results grow beyond all bounds fail before they fill the member."""

from __future__ import annotations

import pyarrow as pa
import pytest

from remuda.datatypes.sql import BIGINT, INTEGER, VARCHAR, array
from remuda.errors import OutOfMemory
from remuda.execution.batch import Batch
from remuda.execution.evaluate import result_size
from remuda.execution.evaluate.compile import Compiler
from remuda.plan.expression import Call, ColumnRef, Literal

TEXT = ColumnRef(VARCHAR, 0, "s")
NUMBER = ColumnRef(BIGINT, 1, "n")
ROWS = Batch([pa.array(["ab", None, "cde"]), pa.array([300, 300, 300], pa.int64())], 3)

CALLS = {
    "repeat": Call(VARCHAR, "repeat", (TEXT, NUMBER)),
    "lpad": Call(VARCHAR, "lpad", (TEXT, NUMBER)),
    "||": Call(VARCHAR, "||", (TEXT, Literal(VARCHAR, "x" * 500))),
    "replace": Call(
        VARCHAR, "replace", (TEXT, Literal(VARCHAR, "b"), Literal(VARCHAR, "x" * 1100))
    ),
    "regexp_replace": Call(
        VARCHAR, "regexp_replace", (TEXT, Literal(VARCHAR, "b|c"), Literal(VARCHAR, "x" * 1100))
    ),
    "concat": Call(VARCHAR, "concat", (TEXT, Literal(VARCHAR, "x" * 350))),
    "concat_ws": Call(VARCHAR, "concat_ws", (Literal(VARCHAR, "x" * 1100), TEXT, TEXT)),
    "array_fill": Call(
        array(INTEGER),
        "array_fill",
        (ColumnRef(INTEGER, 1, "n"), Literal(array(INTEGER), (300,))),
    ),
}


@pytest.mark.parametrize("function", CALLS)
def test_a_batch_of_results_is_bounded(monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    rows = ROWS
    if function == "array_fill":
        rows = Batch([ROWS.column(0), ROWS.column(1).cast(pa.int32())], 3)
    compute = Compiler({0: 0, 1: 1}).column(CALLS[function])
    assert len(compute(rows)) == 3
    monkeypatch.setattr(result_size, "RESULT_SIZE_MAX", 1000)
    if function == "lpad":
        assert len(compute(rows)) == 3, "two times 300"
        monkeypatch.setattr(result_size, "RESULT_SIZE_MAX", 599)
    with pytest.raises(OutOfMemory, match="of one batch of rows"):
        compute(rows)
