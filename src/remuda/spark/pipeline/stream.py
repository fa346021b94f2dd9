"""A pipeline that goes on: one streaming query per target, each with its own checkpoint.

A query writes its batches exactly once, whatever is stopped or killed in between: Spark repeats a
batch under its number, and the sink of Remuda knows which ones it has.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from remuda.spark.failures import explain, slow_worker
from remuda.spark.pipeline import quarantine
from remuda.spark.pipeline.batch import make_views
from remuda.spark.pipeline.context import Context
from remuda.spark.pipeline.errors import ExpectationFailed
from remuda.spark.pipeline.expectations import Sorted, failure_of, view_report
from remuda.spark.pipeline.model import MapTarget, Stream
from remuda.spark.pipeline.report import RunReport, TargetReport, ViewReport, rows_text
from remuda.spark.pipeline.target_files import write_files
from remuda.spark.pipeline.target_maps import (
    Prepared,
    drop_quietly,
    latest_rows,
    prepare_maps,
    write_map,
    write_options,
)

_ROWS: Final = "remuda_rows"
_WAIT: Final = 1
"""Seconds between two looks at the queries, at most."""
SLOW_STARTS: Final = 5
"""So often a query is begun again because Python did not start in Spark's 10 s."""


@dataclass(slots=True)
class Running:
    """A query and what it has done since it started."""

    label: str
    line: int
    query: StreamingQuery
    started: float
    writer: DataStreamWriter
    is_target: bool = True
    rows: int = 0
    batches: int = 0
    ended: float | None = None
    slow_starts: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    _last_batch: int = -1

    def take_progress(self) -> list[str]:
        """Add what is new; a line per batch with rows."""
        told = []
        for progress in self.query.recentProgress:
            number = int(progress["batchId"])
            if number <= self._last_batch:
                continue
            self._last_batch = number
            metrics = dict(progress["observedMetrics"] or {})
            rows = int(_numbers(metrics.pop(_ROWS, {})).get("rows", 0))
            for view, found in metrics.items():
                sums = self.counts.setdefault(view, {})
                for name, value in _numbers(found).items():
                    sums[name] = sums.get(name, 0) + value
            if not progress["numInputRows"]:
                continue
            self.rows += rows
            self.batches += 1
            seconds = max(int(progress["batchDuration"]), 1) / 1000
            told.append(
                f"{self.label}: batch {number}, {rows_text(rows)} in {seconds:.1f} s, "
                f"{int(rows / seconds):,} rows/s"
            )
        return told


def run_stream(context: Context, stream: Stream, stopped: Callable[[], bool]) -> RunReport:
    """Until all queries have ended (``available_now``), one fails, or ``stopped()``."""
    started = time.perf_counter()
    prepared: list[Prepared] = []
    running: list[Running] = []
    batch_reports: list[TargetReport] = []
    try:
        found = make_views(context)
        prepare_maps(context, prepared)
        batch_reports = _write_what_is_no_stream(context, prepared)
        with _stopping(context, running):
            _start(context, stream, prepared, found, running)
            _watch(context, running, stopped)
    except BaseException:
        drop_quietly(context, prepared)
        raise
    finally:
        context.close()
    views = _view_reports(context, found, running)
    now = time.perf_counter()
    targets = [
        TargetReport(one.label, one.rows, (one.ended or now) - one.started)
        for one in running
        if one.is_target
    ]
    aside = sum(view.quarantined for view in views)
    kept = context.pipeline.quarantine
    return RunReport(
        pipeline=context.pipeline.name,
        run=context.run,
        views=tuple(views),
        targets=(*batch_reports, *targets),
        quarantined=aside,
        quarantine=kept.label if kept is not None and aside else "",
        seconds=now - started,
        batches=sum(one.batches for one in running if one.is_target),
        created=tuple(one.target.map for one in prepared if one.created),
    )


def _write_what_is_no_stream(context: Context, prepared: list[Prepared]) -> list[TargetReport]:
    """Targets whose view has no stream below it, once."""
    reports = [write_map(context, one) for one in prepared if not one.frame.isStreaming]
    still = [t for t in context.pipeline.files if not context.views[t.source].isStreaming]
    reports += [write_files(context, target) for target in still]
    for report in reports:
        context.tell(str(report))
    return reports


def _start(
    context: Context,
    stream: Stream,
    prepared: list[Prepared],
    found: dict[str, Sorted],
    running: list[Running],
) -> None:
    for one in prepared:
        if one.frame.isStreaming:
            target = one.target
            with context.at(target.line, target.label):
                writer = _map_writer(context, target, _counted(one.frame).writeStream)
                running.append(_started(context, stream, writer, target.label, target.line))
    for files in context.pipeline.files:
        if context.views[files.source].isStreaming:
            with context.at(files.line, files.label):
                writer = _counted(context.views[files.source]).writeStream.format("parquet")
                writer = writer.option("path", context.path(files.path))
                writer = writer.options(**context.values.fill_all(files.options))
                if files.partition_by:
                    writer = writer.partitionBy(*files.partition_by)
                running.append(_started(context, stream, writer, files.label, files.line))
    for view, made in found.items():
        if made.aside is not None and made.aside.isStreaming:
            label = f"rows put aside from {view}"
            with context.at(1, label):
                writer = _aside_writer(context, view, made.aside)
                running.append(_started(context, stream, writer, label, 1, is_target=False))
        elif made.aside is not None and made.report is not None:
            quarantine.keep(context, {view: made.aside}, made.report.quarantined, again=False)


def _map_writer(context: Context, target: MapTarget, writer: DataStreamWriter) -> DataStreamWriter:
    """The sink of Remuda; a batch write of each batch for mode ``update``, which Spark has for no
    sink in Python, and where rows are to be chosen within a batch. That puts and deletes entries by
    their keys, so a batch that is repeated changes nothing."""
    options = write_options(context, target)
    if target.output != "update" and target.latest is None:
        return writer.format("remuda").options(**options).outputMode(target.output)

    def put(batch: DataFrame, _number: int) -> None:
        rows = latest_rows(batch, target)
        rows.write.format("remuda").options(**options).mode("append").save()

    return writer.foreachBatch(put).outputMode(target.output)


def _aside_writer(context: Context, view: str, frame: DataFrame) -> DataStreamWriter:
    kept = context.pipeline.quarantine
    assert kept is not None
    if kept.map is None:
        return frame.writeStream.format("parquet").option("path", quarantine.folder(context, view))
    quarantine.make_map(context, kept.map)
    options = {**context.spark_options(), "map": kept.map}
    records = quarantine.record_frame(context, view, frame)
    return records.writeStream.format("remuda").options(**options)


def _started(
    context: Context,
    stream: Stream,
    writer: DataStreamWriter,
    label: str,
    line: int,
    *,
    is_target: bool = True,
) -> Running:
    name = _slug(label)
    base = context.path(stream.checkpoint).rstrip("/")
    writer = writer.queryName(f"{context.pipeline.name} {name}")
    writer = writer.option("checkpointLocation", f"{base}/{name}")
    if stream.available_now:
        writer = writer.trigger(availableNow=True)
    elif stream.every:
        writer = writer.trigger(processingTime=f"{max(1, round(stream.every * 1000))} milliseconds")
    return Running(label, line, writer.start(), time.perf_counter(), writer, is_target)


def _watch(context: Context, running: list[Running], stopped: Callable[[], bool]) -> None:
    """Return when all queries have ended or ``stopped()``; raise what one of them ended with."""
    while not stopped():
        for one in running:
            _look(context, one)
        left = [one for one in running if one.ended is None]
        if not left:
            return
        with suppress(PySparkException):  # what a query ended with is seen in the next round
            left[0].query.awaitTermination(_WAIT)


def _look(context: Context, one: Running) -> None:
    if one.ended is not None:
        return
    ended = not one.query.isActive  # before the progress: nothing comes after the last one
    for told in one.take_progress():
        context.tell(told)
    if not ended:
        return
    error = one.query.exception()
    if error is not None and slow_worker(error) and one.slow_starts < SLOW_STARTS:
        one.slow_starts += 1
        context.tell(f"{one.label}: begun again: {explain(error).message}")
        with suppress(PySparkException):  # told above; its name is free a moment after its end
            one.query.awaitTermination()
        with context.at(one.line, one.label):
            one.query = one.writer.start()  # it goes on from its checkpoint
        return
    one.ended = time.perf_counter()
    if error is None:
        return
    broken = failure_of(str(error))
    if broken is not None:
        view, name = broken
        line = next(e.line for v, e in context.pipeline.expectations if (v, e.name) == broken)
        raise context.explained(
            ExpectationFailed(
                f"expectation {name} is broken by a row of {view}: "
                "the stream ends before its batch",
                hint="It goes on from there when it is started again: change the row or the "
                "expectation.",
            ),
            line,
            one.label,
        )
    raise context.explained(explain(error), one.line, one.label)


@contextmanager
def _stopping(context: Context, running: list[Running]) -> Iterator[None]:
    """Queries end when the body does, however it ends."""
    try:
        yield
    finally:
        for one in running:
            if one.query.isActive:
                one.query.stop()
            for line in one.take_progress():
                context.tell(line)


def _view_reports(
    context: Context, found: dict[str, Sorted], running: list[Running]
) -> list[ViewReport]:
    """A view below several targets is computed for each of them: it is counted once."""
    reports = []
    for view in context.pipeline.views:
        made = found.get(view.name)
        if made is None:
            continue
        if made.report is not None:
            reports.append(made.report)
            continue
        counts = [one.counts[view.name] for one in running if view.name in one.counts]
        most = max(counts, key=lambda count: count.get("rows", 0), default={})
        reports.append(view_report(view.name, most, view.expectations))
    return reports


def _counted(frame: DataFrame) -> DataFrame:
    return frame.observe(_ROWS, F.count(F.lit(1)).alias("rows"))


def _numbers(found: Any) -> dict[str, int]:
    values = found.asDict() if hasattr(found, "asDict") else dict(found)
    return {name: int(value or 0) for name, value in values.items()}


def _slug(label: str) -> str:
    """A folder's name that stays the same and that no other label has."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-").lower()
    return (
        plain if plain == label.replace(" ", "-") else f"{plain}-{zlib.crc32(label.encode()):08x}"
    )
