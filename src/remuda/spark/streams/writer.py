"""``df.writeStream.format("remuda")``: micro-batches into a map, each exactly once.

The writer is made anew for each batch, and once more in the process that commits it; the messages
of the tasks tell which rows belong together. The first task of a batch begins its job, under an id
that the writer has made up. A batch is known by the query and its number, which Spark tells the
tasks.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from remuda.client.blocking.jobs import JobTask
from remuda.datatypes.schema import MapSchema
from remuda.errors import InputError, InternalError, RemudaError
from remuda.spark.streams.commits import Target, abort_batch, commit_batch
from remuda.spark.transfer.change_sets import RowPlan, write_rows
from remuda.spark.transfer.grid import connect
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.reader import Connect
from remuda.spark.transfer.writer import attempt_name, find_target, gathered

QUERY: Final = "sql.streaming.queryId"
BATCH: Final = "streaming.sql.batchId"


@dataclass(frozen=True)
class StagedBatch(WriterCommitMessage):
    """One finished attempt of a task."""

    task: JobTask
    job: str
    target: Target
    batch: int


class RemudaStreamWriter(DataSourceStreamArrowWriter):
    def __init__(
        self,
        options: Options,
        schema: MapSchema,
        plan: RowPlan,
        job: str,
        *,
        overwrite: bool,
        connect_: Connect = connect,
    ) -> None:
        self.options = options
        self.schema = schema
        self.plan = plan
        self.job = job
        self.overwrite = overwrite
        self.connect = connect_

    @classmethod
    def begin(
        cls, options: Options, source: StructType, overwrite: bool, connect_: Connect = connect
    ) -> RemudaStreamWriter:
        """Check the DataFrame against the map, which is made when it is unknown."""
        with connect_(options.address) as client:
            found = find_target(client, options, source, overwrite)
            coordinator = secrets.choice(client.cluster_info().view.members).number
        job = f"{coordinator}-{secrets.token_hex(12)}"
        return cls(options, found.schema, found.plan, job, overwrite=overwrite, connect_=connect_)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        options, schema = self.options, self.schema
        query, batch = query_and_batch()
        if options.of_stream is not None:
            query = f"{query}/{options.of_stream}"
        with self.connect(options.address) as client:
            job = client.begin_job(
                schema.name,
                self.overwrite,
                label=f"batch {batch} of Spark query {query} into {schema.name}",
                insert_only=options.write == "insert",
                job_id=self.job,
            )
        with job.target.writer(attempt_name()) as writer:
            for rows in gathered(iterator):
                write_rows(writer, schema, self.plan, rows)
            target = Target(query, schema.name, schema.map_id)
            return StagedBatch(writer.finish(), self.job, target, batch)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        staged = _staged(messages)
        if not staged:
            return
        target, job = staged[0].target, staged[0].job
        if any((each.target, each.job) != (target, job) for each in staged):
            raise InternalError(f"the tasks of batch {batchId} of a stream wrote to several jobs")
        with self.connect(self.options.address) as client:
            commit_batch(client, target, batchId, job, [each.task for each in staged])

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Spark calls it also when the commit has succeeded and its answer was lost. Rows of tasks
        that told nothing go when their job has been idle for a while."""
        jobs = sorted({each.job for each in _staged(messages)})
        # What failed the batch must not be hidden by a grid that is not there any more.
        with contextlib.suppress(RemudaError), self.connect(self.options.address) as client:
            abort_batch(client, jobs)


class ForeachBatchWriter(DataSourceArrowWriter):
    """The same for a batch write inside ``foreachBatch``, which knows the query and the batch of
    its tasks, too."""

    def __init__(self, writer: RemudaStreamWriter) -> None:
        self.writer = writer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.writer.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        for batch in {each.batch for each in _staged(messages)}:
            self.writer.commit(messages, batch)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.writer.abort(messages, 0)


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[StagedBatch]:
    return [message for message in messages if isinstance(message, StagedBatch)]


def query_and_batch() -> tuple[str, int]:
    """Of the micro-batch that this task is of."""
    context = TaskContext.get()
    query = context.getLocalProperty(QUERY) if context is not None else None
    batch = context.getLocalProperty(BATCH) if context is not None else None
    if query is None or batch is None:
        raise InputError(
            "this is not a batch of a stream: Spark told the task of no query",
            hint='Option "of_stream" is for writes inside foreachBatch.',
        )
    return query, int(batch)
