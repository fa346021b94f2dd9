"""Pieces of work, each done by one Spark task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from remuda.spark.failures import explained

_ANSWERS: Final = "piece long, answer string"

Work = Callable[[int, int], str]
"""(number of the piece, attempt) -> a text, of the attempt that counts. Travels pickled."""


def run_pieces(spark: SparkSession, count: int, work: Work) -> list[str]:
    """The answers, by piece. A task that fails is tried again with another attempt, as often as
    Spark does that; then the error is raised, as itself if it is ours."""
    if not count:
        return []
    with explained():
        rows = spark.range(0, count, 1, count).mapInArrow(_Task(work), _ANSWERS).collect()
    return [row.answer for row in sorted(rows, key=lambda row: row.piece)]


def slots(spark: SparkSession) -> int:
    """How many tasks run at the same time, as far as this session can tell."""
    context = getattr(spark, "_sc", None)
    return max(1, int(context.defaultParallelism)) if context is not None else 8


@dataclass(frozen=True)
class _Task:
    work: Work

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context: Any = TaskContext.get()
        attempt = 0 if context is None else int(context.attemptNumber())
        for batch in batches:
            pieces = batch.column(0).to_pylist()
            answers = [self.work(piece, attempt) for piece in pieces]
            yield pa.RecordBatch.from_pydict(
                {"piece": pa.array(pieces, pa.int64()), "answer": pa.array(answers, pa.string())}
            )
