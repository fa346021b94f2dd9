"""Writing a DataFrame into a map: every task stages its rows, one commit makes them visible.

The writer is made in one process, runs in the workers, and commits in yet another one: it travels
pickled and holds no connection. A task attempt is named ``partition:attempt``; the commit names the
attempts whose messages Spark hands over, and the members drop the rows of all others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from remuda.client.blocking.client import Client
from remuda.client.blocking.jobs import JobTarget, JobTask
from remuda.client.network.address import format_address, parse_addresses
from remuda.datatypes.gathering import Gathering
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View
from remuda.errors import InputError, RemudaError, UndefinedMap
from remuda.spark.transfer.change_sets import RowPlan, plan_rows, without_operation, write_rows
from remuda.spark.transfer.fit import SourceColumn, check_key, check_replicated, new_schema
from remuda.spark.transfer.grid import connect
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.reader import OTHERS_MAX, Connect
from remuda.spark.transfer.types import sql_type

GATHER_ROWS: Final = 128 * 1024
GATHER_SIZE: Final = 16 * 1024 * 1024


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """One finished attempt."""

    task: JobTask


class RemudaWriter(DataSourceArrowWriter):
    """One staged job. ``created`` is the map that this job made, removed again when it fails."""

    def __init__(
        self,
        *,
        address: str,
        job: str,
        target: JobTarget,
        schema: MapSchema,
        plan: RowPlan,
        created: bool,
        connect_: Connect = connect,
    ) -> None:
        self.address = address
        self.job = job
        self.target = target
        self.schema = schema
        self.plan = plan
        self.created = created
        self.connect = connect_

    @classmethod
    def begin(
        cls, options: Options, source: StructType, overwrite: bool, connect_: Connect = connect
    ) -> RemudaWriter:
        """Check the DataFrame against the map (made when unknown), and open the job."""
        with connect_(options.address) as client:
            found = find_target(client, options, source, overwrite)
            name = found.schema.name
            try:
                job = client.begin_job(
                    name,
                    overwrite,
                    label=f"Spark {options.write} into {name}",
                    insert_only=options.write == "insert",
                )
            except RemudaError:
                found.forget(client)
                raise
        return cls(
            address=reachable(options.address, job.target.view),
            job=job.id,
            target=job.target,
            schema=found.schema,
            plan=found.plan,
            created=found.created,
            connect_=connect_,
        )

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with self.target.writer(attempt_name()) as writer:
            for batch in gathered(iterator):
                write_rows(writer, self.schema, self.plan, batch)
            return Staged(writer.finish())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        tasks = [message.task for message in messages if isinstance(message, Staged)]
        with self.connect(self.address) as client:
            client.commit_job(self.job, tasks)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """``messages`` has None for attempts that failed: nothing in it is needed."""
        # What failed the job must not be hidden by a grid that is not there any more.
        with contextlib.suppress(RemudaError), self.connect(self.address) as client:
            undo(client, self.job, self.schema, self.created)


def reachable(given: str, view: View) -> str:
    """The addresses that the user gave, and those of members: the commit must reach the grid also
    if the members that the user knows have left since the job began."""
    known = parse_addresses(given)
    members = [(member.host, member.user_port) for member in view.members]
    others = [each for each in members if each not in known]
    return ",".join(format_address(*each) for each in (*known, *others[:OTHERS_MAX]))


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: Spark hands over 10,000 rows at a time, and converting and
    routing cost as much for those as for many more."""
    gathering = Gathering(GATHER_ROWS, GATHER_SIZE)
    for batch in batches:
        found = gathering.add(batch)
        if found is not None:
            yield found
    rest = gathering.rest()
    if rest is not None:
        yield rest


def attempt_name() -> str:
    context = TaskContext.get()
    if context is None:
        return "0:0"
    return f"{context.partitionId()}:{context.taskAttemptId()}"


def source_columns(source: StructType) -> list[SourceColumn]:
    return [
        SourceColumn(field.name, sql_type(field.dataType), field.dataType.simpleString())
        for field in source.fields
    ]


@dataclass(frozen=True, slots=True)
class Found:
    """Where rows go: the map (``created``: made for them), and its columns in the DataFrame."""

    schema: MapSchema
    plan: RowPlan
    created: bool

    def forget(self, client: Client) -> None:
        """Nothing comes of it: a map that was made goes again."""
        if self.created:
            client.drop_map(self.schema.name, if_exists=True)


def find_target(client: Client, options: Options, source: StructType, overwrite: bool) -> Found:
    """Check the DataFrame against the map, which is made when it is unknown. ``overwrite``: all
    that the map has is replaced. Raises InputError and its kinds: why they do not go together."""
    name = options.writes()
    if overwrite and options.write != "upsert":
        raise InputError(
            f'option "write" = {options.write} goes with mode append: the modes overwrite and '
            "complete replace the whole map"
        )
    columns = source_columns(source)
    if options.write == "delete":
        schema, created = client.describe(name), False
    else:
        of_map = without_operation(columns, options)
        schema, created = find_or_create(client, name, of_map, options)
    try:
        return Found(schema, plan_rows(schema, columns, options), created)
    except RemudaError:
        if created:
            client.drop_map(name, if_exists=True)
        raise


def find_or_create(
    client: Client, name: str, columns: Sequence[SourceColumn], wanted: Any
) -> tuple[MapSchema, bool]:
    """The schema of map ``name`` and whether it was made now. ``wanted`` has the fields ``key``,
    ``partition_by`` and ``replicated`` of ``Options``."""
    try:
        schema = client.describe(name)
    except UndefinedMap:
        made = new_schema(
            name,
            columns,
            wanted.key,
            replicated=bool(wanted.replicated),
            partition_by=wanted.partition_by,
        )
        return client.create_map(made), True
    check_key(schema, wanted.key)
    check_replicated(schema, wanted.replicated)
    return schema, False


def undo(client: Client, job: str, schema: MapSchema, created: bool) -> None:
    """Drop the rows of a failed job, and the map that was made for it unless others filled it.

    As far as the members can be reached: errors that follow from the failure of the job must not
    hide it, and members drop a job by themselves when it idles or its coordinator is lost.
    """
    with contextlib.suppress(RemudaError):
        client.abort_job(job)
        if created and client.map(schema.name).size() == 0:
            client.drop_map(schema.name, if_exists=True)
