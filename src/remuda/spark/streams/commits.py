"""Commits by which a stream's batches count exactly once, although tasks fail and are repeated.

The rows of a batch are a staged job, which commits as a whole. A map, ``remuda_streams``, has a row
for each query and target: its last batch, the job of that batch, and whether the job is known to be
committed. The row is written before the commit, and says so after it. A run that finds a batch in
between asks the members how its job ended; before that, it sees to it that the job does not commit
any more if it has not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from remuda.client.blocking.client import Client
from remuda.client.blocking.jobs import JobTask
from remuda.client.blocking.tool_access import job_committed
from remuda.errors import (
    InputError,
    RemudaError,
    SerializationFailure,
    UndefinedMap,
    UniqueViolation,
)

PROGRESS: Final = "remuda_streams"
_CREATE: Final = f"""
    CREATE TABLE IF NOT EXISTS {PROGRESS} (
        query VARCHAR, map VARCHAR, map_id BIGINT, batch BIGINT NOT NULL, job VARCHAR NOT NULL,
        done BOOLEAN NOT NULL, changed TIMESTAMP WITH TIME ZONE, PRIMARY KEY (query, map, map_id)
    )
"""
_WHERE: Final = "WHERE query = ? AND map = ? AND map_id = ?"


@dataclass(frozen=True, slots=True)
class Target:
    """What a query writes to."""

    query: str
    map: str
    map_id: int

    @property
    def key(self) -> tuple[str, str, int]:
        return self.query, self.map, self.map_id


@dataclass(frozen=True, slots=True)
class Progress:
    """The last batch of a query, and whether its job is known to be committed."""

    batch: int
    job: str
    done: bool


def commit_batch(
    client: Client, target: Target, batch: int, job: str, tasks: Sequence[JobTask]
) -> bool:
    """Commit the job of a batch, unless the batch has been committed; whether it was this job.

    Raises InputError for a batch that does not follow the last one, SerializationFailure when
    another run of the query is at work, and the errors of the commit of a job.
    """
    last = read_progress(client, target)
    if last is not None and not last.done:
        last = settled(client, target, last)
    if last is not None and last.done and batch <= last.batch:
        client.abort_job(job)
        return False
    _require_next(target, batch, last)
    _intend(client, target, last, Progress(batch, job, done=False))
    client.commit_job(job, tasks)
    _finish(client, target, job)
    return True


def abort_batch(client: Client, jobs: Sequence[str]) -> None:
    """Drop what is staged. Of a committed batch nothing is staged: nothing happens."""
    for job in jobs:
        client.abort_job(job)


def read_progress(client: Client, target: Target) -> Progress | None:
    text = f"SELECT batch, job, done FROM {PROGRESS} {_WHERE}"  # noqa: S608 (constants)
    try:
        rows = client.sql(text, *target.key).fetchall()
    except UndefinedMap:
        client.sql(_CREATE)
        return None
    return Progress(*rows[0]) if rows else None


def settled(client: Client, target: Target, last: Progress) -> Progress:
    """How the last batch ended, whose commit was begun: done now, or as if it had not begun."""
    if job_committed(client, last.job):
        _finish(client, target, last.job)
        return Progress(last.batch, last.job, done=True)
    return last


def _require_next(target: Target, batch: int, last: Progress | None) -> None:
    # What is not done is to be repeated: the batch before it was.
    expected = 0 if last is None else last.batch + (1 if last.done else 0)
    if batch == expected:
        return
    known = "no batch" if last is None else f"batches up to {expected - 1}"
    raise InputError(
        f'batch {batch} of the query does not follow what map "{target.map}" has of it',
        detail=f"The map has {known} of query {target.query}, as {PROGRESS} tells; the next one is "
        f"batch {expected}.",
        hint="The map was made anew, or is another one than the checkpoint is of: begin with a new "
        "checkpointLocation.",
    )


def _intend(client: Client, target: Target, last: Progress | None, now: Progress) -> None:
    """Note that the commit begins. Raises SerializationFailure."""
    try:
        if last is None:
            written = client.sql(
                f"INSERT INTO {PROGRESS} VALUES (?, ?, ?, ?, ?, FALSE, now())",  # noqa: S608
                *target.key,
                now.batch,
                now.job,
            ).rowcount
        else:
            written = client.sql(
                f"UPDATE {PROGRESS} SET batch = ?, job = ?, done = FALSE, changed = now() "  # noqa: S608
                f"{_WHERE} AND batch = ? AND job = ?",
                now.batch,
                now.job,
                *target.key,
                last.batch,
                last.job,
            ).rowcount
    except UniqueViolation:
        written = 0
    if written != 1:
        raise SerializationFailure(
            f'another run of query {target.query} writes to map "{target.map}"',
            hint="Stop it, and start the query once.",
        )


def _finish(client: Client, target: Target, job: str) -> None:
    """The batch is committed: noted for those who come later; if that fails, they find it out."""
    try:
        client.sql(
            f"UPDATE {PROGRESS} SET done = TRUE, changed = now() {_WHERE} AND job = ?",  # noqa: S608
            *target.key,
            job,
        )
    except RemudaError as error:
        error.add_note(f"Job {job} is committed all the same.")
        raise
