"""Load files into a map: a Spark job whose tasks read pieces of the files with Arrow.

The rows never pass through Spark's own format: a task reads its split, sorts out what does not fit,
and sends the rest to the members as one attempt of a staged job. Only a small row about each task
comes back. When all are done, one commit makes the rows visible together.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
from pyspark import AccumulatorParam
from pyspark.sql import Row, SparkSession

from remuda.client.blocking.jobs import Job, JobTarget, JobTask
from remuda.client.network.login import NO_SECURITY, Security
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import SqlType
from remuda.errors import DiskFull, InputError, RemudaError, UniqueViolation
from remuda.spark.failures import explain, written
from remuda.spark.loading.read_files import Piece, TextFormat, read_split
from remuda.spark.loading.source import inspect
from remuda.spark.loading.splits import Format, Split, find_files, plan_splits
from remuda.spark.transfer.fit import fit
from remuda.spark.transfer.grid import connect
from remuda.spark.transfer.rows import of_files, with_row_ids
from remuda.spark.transfer.writer import attempt_name, find_or_create, undo

REASONS_KEPT: Final = 20
"""Different reasons counted per task; further ones are only in the files."""
PROGRESS_INTERVAL: Final = 0.2

_REPORT_SCHEMA: Final = (
    "split int, task string, members array<int>, rows long, rejected long, file string, "
    "reasons string"
)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is; counts come in when tasks end. ``size`` is bytes of the source."""

    splits: int
    splits_done: int
    size: int
    size_done: int
    rows: int
    rejected: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The result of a load: ``rows`` are in the map now, ``rejected`` ones were left out.

    ``reasons`` counts the rejected rows by reason, ``rejects`` are the files that hold them,
    ``size`` is bytes of the source, ``created`` whether the load made the map.
    """

    map: str
    rows: int
    rejected: int
    reasons: Mapping[str, int]
    rejects: tuple[str, ...]
    files: int
    splits: int
    size: int
    seconds: float
    created: bool

    @property
    def rows_per_second(self) -> float:
        """Loaded rows per second of the whole load, the start of Spark left out."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The properties of a map that ``find_or_create`` has to make."""

    key: tuple[str, ...]
    partition_by: tuple[str, ...]
    replicated: bool | None


@dataclass(slots=True)
class TaskWork:
    """All that a task needs; pickled once per job."""

    splits: Sequence[Split]
    schema: MapSchema
    text: TextFormat
    target: JobTarget
    rejects: str | None
    counts: Any = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function of the Spark task: numbers of splits in, one report per split out."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield self.load(number)

    def load(self, number: int) -> pa.RecordBatch:
        split = self.splits[number]
        attempt = attempt_name()
        aside = RejectFile(self.rejects, number, attempt, split)
        with self.target.writer(attempt) as writer, aside:
            for piece in read_split(split, of_files(self.schema), self.text):
                if piece.batch.num_rows:
                    writer.write(with_row_ids(self.schema, piece.batch))
                aside.add(piece)
            task = writer.finish()
        if self.counts is not None:
            self.counts.add((1, split.size, task.rows, aside.rejected))
        return pa.RecordBatch.from_pylist(
            [
                {
                    "split": number,
                    "task": task.task,
                    "members": list(task.members),
                    "rows": task.rows,
                    "rejected": aside.rejected,
                    "file": aside.path,
                    "reasons": json.dumps(dict(aside.reasons)),
                }
            ],
            schema=pa.schema(
                [
                    ("split", pa.int32()),
                    ("task", pa.string()),
                    ("members", pa.list_(pa.int32())),
                    ("rows", pa.int64()),
                    ("rejected", pa.int64()),
                    ("file", pa.string()),
                    ("reasons", pa.string()),
                ]
            ),
        )


@dataclass(slots=True)
class RejectFile:
    """The rejected rows of one attempt as JSON lines; no file without such a row."""

    directory: str | None
    split: int
    attempt: str
    source: Split
    rejected: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    path: str | None = None
    _file: Any = None

    def add(self, piece: Piece) -> None:
        for row in piece.rejected:
            self.rejected += 1
            if row.reason in self.reasons or len(self.reasons) < REASONS_KEPT:
                self.reasons[row.reason] += 1
            if self.directory is not None:
                line = {"file": self.source.path, **self._place(), **asdict(row)}
                with writing_rejects(Path(self.directory).parent):
                    self._open(self.directory).write(json.dumps(line, ensure_ascii=False) + "\n")

    def _place(self) -> dict[str, int]:
        """Where the rows of a text split are counted from: its first byte in the file."""
        return {} if self.source.first_row is not None else {"offset": self.source.start}

    def _open(self, directory: str) -> Any:
        if self._file is None:
            name = f"{self.split:05d}-{self.attempt.replace(':', '-')}.jsonl"
            Path(directory).mkdir(parents=True, exist_ok=True)
            self.path = str(Path(directory) / name)
            self._file = open(self.path, "w", encoding="utf-8")  # noqa: SIM115 (closed on exit)
        return self._file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None and self.directory is not None:
            with writing_rejects(Path(self.directory).parent):
                self._file.close()


@contextmanager
def writing_rejects(directory: Path) -> Iterator[None]:
    """Raises DiskFull or InputError for what the operating system says about the files inside."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise (DiskFull if full else InputError)(
            f"rejected rows cannot be written to {directory}: {error.strerror}",
            hint="Nothing was loaded. Name another directory, or correct the rows.",
        ) from error


class _Sums(AccumulatorParam[tuple[int, ...]]):
    """Adds tuples of numbers, member by member."""

    def zero(self, value: tuple[int, ...]) -> tuple[int, ...]:
        return (0,) * len(value)

    def addInPlace(  # noqa: N802 (Spark's name)
        self, value1: tuple[int, ...], value2: tuple[int, ...]
    ) -> tuple[int, ...]:
        return tuple(a + b for a, b in zip(value1, value2, strict=True))


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def load(
    spark: SparkSession,
    source: str | os.PathLike[str] | Sequence[str],
    *,
    address: str,
    map: str,  # noqa: A002 (a map is what it is)
    key: str | Sequence[str] = (),
    partition_by: str | Sequence[str] = (),
    replicated: bool | None = None,
    overwrite: bool = False,
    format: Format | None = None,  # noqa: A002 (the word of Spark's own API)
    columns: Sequence[str] = (),
    types: Mapping[str, SqlType] | None = None,
    rejects: str | os.PathLike[str] | None = None,
    nulls: Sequence[str] = ("",),
    header: bool = True,
    delimiter: str | None = None,
    parallelism: int | None = None,
    split_size: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    security: Security = NO_SECURITY,
) -> LoadReport:
    """Load a file, a directory or a glob of Parquet, CSV, JSON or Arrow files into ``map``.

    An unknown map is made with ``key`` and the columns of the files. Rows that do not fit are left
    out, counted, and written below ``rejects`` when it is given; all others appear at once, when
    the whole load is done. A key that exists is overwritten; one that occurs twice in the source
    fails the load. ``progress`` is called from another thread, a few times per second. ``security``
    is how to connect.

    Raises ``InputError`` and its kin for wrong options or files that do not fit the map,
    ``UniqueViolation`` for duplicate keys, and when not a single row could be loaded; nothing is
    stored then.
    """
    started = time.perf_counter()
    files = [f for s in ([source] if isinstance(source, str | os.PathLike) else source)
             for f in find_files(s)]  # fmt: skip
    separator = delimiter or ("\t" if files[0].lower().endswith((".tsv", ".tsv.gz")) else ",")
    text = TextFormat((), header, separator, tuple(nulls))
    found = inspect(files, format, text, wanted=columns, types=types)
    slots = parallelism or _slots(spark)
    splits = plan_splits(files, format, slots, split_size=split_size)
    size = sum(split.size for split in splits)
    with connect(address, security) as client:
        wanted = Wanted(_names(key), _names(partition_by), replicated)
        schema, created = find_or_create(client, map, found.columns, wanted)
        job: Job | None = None
        aside = None if rejects is None else str(Path(rejects) / f".{uuid.uuid4().hex}")
        try:
            fit(schema, found.columns, found.accepts)

            def staged() -> tuple[list[Row], tuple[str, ...]]:
                nonlocal job
                job = client.begin_job(map, overwrite, label=f"load {os.fspath(files[0])}")
                work = TaskWork(splits, schema, found.text, job.target, aside)
                rows = _run(spark, work, started, progress)
                kept: tuple[str, ...] = ()
                if rejects is not None:
                    with writing_rejects(Path(rejects)):
                        kept = _keep_rejects(rows, rejects, map)
                if not any(row["rows"] for row in rows):
                    raise _nothing(files, sum(row["rejected"] for row in rows), _reasons(rows))
                tasks = [JobTask(row["task"], tuple(row["members"]), row["rows"]) for row in rows]
                client.commit_job(job.id, tasks)
                return rows, kept

            rows, kept = written(staged)
        except BaseException as error:
            if job is not None:
                undo(client, job.id, schema, created)
            elif created:
                client.drop_map(map, if_exists=True)
            if isinstance(error, Exception):
                raise _explained(error) from error
            raise
        finally:
            if aside is not None:
                shutil.rmtree(aside, ignore_errors=True)
    return LoadReport(
        map=map,
        rows=sum(row["rows"] for row in rows),
        rejected=sum(row["rejected"] for row in rows),
        reasons=_reasons(rows),
        rejects=kept,
        files=len(files),
        splits=len(splits),
        size=size,
        seconds=time.perf_counter() - started,
        created=created,
    )


def _explained(error: Exception) -> RemudaError:
    found = explain(error)
    if isinstance(found, UniqueViolation):
        return UniqueViolation(
            found.message,
            detail=found.detail,
            hint="A key occurs more than once in the source: nothing was loaded. "
            "Remove the duplicates, or choose key columns that tell the rows apart.",
        )
    return found


def _nothing(files: Sequence[str], rejected: int, reasons: Mapping[str, int]) -> InputError:
    if not rejected:
        return InputError(f"nothing was loaded: {files[0]} holds no rows")
    first = next(iter(reasons), "")
    return InputError(f"nothing was loaded: all {rejected} rows were rejected", detail=first)


def _slots(spark: SparkSession) -> int:
    """How many tasks run at the same time, as far as this session can tell."""
    context = getattr(spark, "_sc", None)
    return max(1, int(context.defaultParallelism)) if context is not None else 4


def _run(
    spark: SparkSession,
    work: TaskWork,
    started: float,
    progress: Callable[[Progress], None] | None,
) -> list[Row]:
    """Run one task per split; the reports of the attempts that count."""
    count = len(work.splits)
    size = sum(split.size for split in work.splits)
    if count == 0:
        return []
    context = getattr(spark, "_sc", None)
    if context is not None:
        # Spark Connect has no accumulators: no progress there until the end.
        work.counts = context.accumulator((0, 0, 0, 0), _Sums())

    def state() -> Progress:
        done = (0, 0, 0, 0) if work.counts is None else work.counts.value
        return Progress(
            count, done[0], size, done[1], done[2], done[3], time.perf_counter() - started
        )

    frame = spark.range(0, count, 1, count).mapInArrow(work.run, _REPORT_SCHEMA)
    with _reporting(progress, state):
        return frame.collect()


@contextmanager
def _reporting(
    progress: Callable[[Progress], None] | None, state: Callable[[], Progress]
) -> Iterator[None]:
    """Call ``progress`` now and then while the body runs, and once more at its end."""
    if progress is None:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(PROGRESS_INTERVAL):
            progress(state())

    thread = threading.Thread(target=watch, name="load progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    progress(state())


def _reasons(rows: Sequence[Row]) -> dict[str, int]:
    """All reasons with their counts, most frequent first."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update(json.loads(row["reasons"]))
    return dict(total.most_common())


def _keep_rejects(
    rows: Sequence[Row], rejects: str | os.PathLike[str], name: str
) -> tuple[str, ...]:
    """Move the files of the attempts that count to their place; those of other attempts go."""
    kept = []
    for row in sorted(rows, key=lambda row: int(row["split"])):
        if row["file"] is not None:
            target = Path(rejects) / f"{name}-{row['split']:05d}.jsonl"
            Path(row["file"]).replace(target)
            kept.append(str(target))
    return tuple(kept)
