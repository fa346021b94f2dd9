"""``remuda pipeline``: check a pipeline file, show what it would do, run it."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from remuda.cli.connecting import add_connect, connection_options
from remuda.cli.results.table import counted, harmless
from remuda.spark import pipeline as pipelines
from remuda.spark.pipeline import Pipeline, RunReport, parse
from remuda.spark.pipeline.picture import picture
from remuda.spark.pipeline.running import dry_run
from remuda.spark.pipeline.scheduled import repeat
from remuda.spark.pipeline.variables import Values
from remuda.spark.session import SparkSession, session

HEARTBEAT: Final = 5.0
"""Seconds between lines about the tasks of a long write."""
_OWN_SECURITY: Final = ("user", "password_file", "tls", "tls_ca", "tls_certificate", "tls_key")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, dest="action")
    about = "check a file, without a Spark session or a cluster, and show its plan"
    check = actions.add_parser("validate", help=about, description=f"{about.capitalize()}.")
    check.add_argument("file", help="the pipeline, in YAML")
    about = "run a pipeline: once, as long as rows come, or as its schedule says"
    runs = actions.add_parser("run", help=about, description=f"{about.capitalize()}.")
    runs.add_argument("file", help="the pipeline, in YAML")
    runs.add_argument(
        "--dry-run", action="store_true", help="show the plan with all columns; write nothing"
    )
    runs.add_argument("--once", action="store_true", help="one run, whatever the schedule says")
    runs.add_argument(
        "--run-id", metavar="ID", help="of a run that was interrupted, to do the same again"
    )
    runs.add_argument("--master", help="the Spark master (local, all cores)")
    add_connect(runs)
    runs.set_defaults(connect=None)


def run(options: argparse.Namespace) -> int:
    """0 when all went well. Raises ``RemudaError`` for the caller to print."""
    pipeline = parse(options.file)
    if options.action == "validate":
        print(picture(pipeline))
        _tell_variables(pipeline)
        return 0
    values = Values(os.environ)
    for name in pipeline.variables:
        # Missing ones are told before Java takes its seconds to start.
        values.fill(f"${{{name}}}")
    security: dict[str, str] = {}
    if any(getattr(options, name) for name in _OWN_SECURITY):
        security = connection_options(options)
    with _spark(pipeline, options.master, values) as spark:
        if options.dry_run:
            print(dry_run(spark, pipeline, address=options.connect, security=security))
            return 0
        return _run(spark, pipeline, options, security)


def _run(
    spark: Any, pipeline: Pipeline, options: argparse.Namespace, security: dict[str, str]
) -> int:
    stop = threading.Event()

    def once() -> None:
        with _heartbeat(spark, pipeline):
            report = pipelines.run(
                spark,
                pipeline,
                address=options.connect,
                security=security,
                run_id=options.run_id,
                tell=_tell,
                stopped=stop.is_set,
            )
        _tell_report(report)

    goes_on = pipeline.stream is not None and not pipeline.stream.available_now
    scheduled = pipeline.schedule is not None and not options.once
    with _signals(stop, gently=goes_on):
        if not scheduled or pipeline.schedule is None:
            once()
            return 0
        repeat(
            pipeline.schedule,
            once,
            now=lambda: datetime.now(UTC),
            wait=stop.wait,
            tell=_tell,
        )
    return 0


@contextmanager
def _spark(pipeline: Pipeline, master: str | None, values: Values) -> Iterator[Any]:
    wanted = pipeline.spark
    settings = values.fill_all(wanted.settings)
    if wanted.packages:
        settings["spark.jars.packages"] = ",".join(map(values.fill, wanted.packages))
    if wanted.jars:
        jars = [str(pipeline.folder / values.fill(jar)) for jar in wanted.jars]
        settings["spark.jars"] = ",".join(jars)
    chosen = master or (None if wanted.master is None else values.fill(wanted.master))
    made_here = SparkSession.getActiveSession() is None
    short = pipeline.stream is None and pipeline.schedule is None
    with tempfile.TemporaryDirectory(prefix="remuda-pipeline-") as scratch:
        print("Starting Spark ...", file=sys.stderr, flush=True)
        spark = session(
            f"remuda pipeline {pipeline.name}",
            chosen,
            quick=short and "spark.driver.extraJavaOptions" not in settings,
            settings=settings,
            log=Path(scratch) / "spark.log",
        )
        overlooked: tuple[type[Exception], ...] = ()
        try:
            yield spark
        except KeyboardInterrupt:
            overlooked = (Exception,)  # the same signal may have ended Java
            raise
        finally:
            if made_here:
                with suppress(*overlooked):
                    spark.stop()


@contextmanager
def _signals(stop: threading.Event, *, gently: bool) -> Iterator[None]:
    """SIGTERM ends the run as Ctrl-C does, and gives unfinished writes up. ``gently``: both only
    set ``stop``, and a stream ends after the batch that it has begun."""

    def end(_number: int, _frame: object) -> None:
        stop.set()
        if not gently:
            logging.disable()  # Py4J would log the interrupt, with its traceback
            raise KeyboardInterrupt

    kept = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except Exception:
        if stop.is_set() and not gently:  # a signal to the whole group has ended Java, too
            raise KeyboardInterrupt from None
        raise
    finally:
        logging.disable(logging.NOTSET)
        for number, handler in kept.items():
            signal.signal(number, handler)


@contextmanager
def _heartbeat(spark: Any, pipeline: Pipeline) -> Iterator[None]:
    """Tells how many tasks are done while a batch computes; a stream tells of its batches."""
    if pipeline.stream is not None:
        yield
        return
    ended = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        while not ended.wait(HEARTBEAT):
            found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [stage for stage in found if stage is not None]
            if known:
                done = sum(stage.numCompletedTasks for stage in known)
                _tell(f"... {done} of {sum(stage.numTasks for stage in known)} tasks")

    thread = threading.Thread(target=watch, name="pipeline progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _tell(line: str) -> None:
    print(harmless(line), file=sys.stderr, flush=True)


def _tell_report(report: RunReport) -> None:
    rows = sum(target.rows for target in report.targets)
    text = f"{report.pipeline}: run {report.run} wrote {counted(rows, 'row')}"
    text += f" to {counted(len(report.targets), 'target')} in {report.seconds:.1f} s"
    if report.quarantined:
        text += f"; {counted(report.quarantined, 'row')} put aside in {report.quarantine}"
    print(harmless(text), flush=True)


def _tell_variables(pipeline: Pipeline) -> None:
    missing = [name for name in pipeline.variables if name not in os.environ]
    if missing:
        print(f"not set in this environment: {', '.join(missing)}")
