"""Run a pipeline: once, or only look at what it would do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import SparkSession

from remuda.errors import InputError
from remuda.spark.datasource import prepare
from remuda.spark.pipeline.batch import make_views, run_batch
from remuda.spark.pipeline.context import Context
from remuda.spark.pipeline.model import Pipeline
from remuda.spark.pipeline.picture import picture
from remuda.spark.pipeline.report import RunReport, Tell
from remuda.spark.pipeline.stream import run_stream
from remuda.spark.pipeline.target_maps import check_map
from remuda.spark.pipeline.variables import Values

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}\Z")


def run(
    spark: SparkSession,
    pipeline: Pipeline,
    *,
    address: str | None = None,
    security: Mapping[str, str] | None = None,
    run_id: str | None = None,
    environment: Mapping[str, str] | None = None,
    tell: Tell = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> RunReport:
    """Run ``pipeline`` once; a stream until it ends, fails, or ``stopped`` says so.

    ``address`` (HOST:PORT) and ``security`` (options of the client) win over the file's.
    ``run_id`` names a run that was interrupted, to do the same again; by default it is the time.
    ``environment`` is where ``${NAME}`` is looked up. ``tell`` gets a line now and then.

    Raises ``PipelineInvalid`` for defects of the file, ``ExpectationFailed``, and the errors of
    reading and writing: nothing is written then, or all of some targets and nothing of the others,
    in the order of the file.
    """
    context = _context(spark, pipeline, address, security, run_id, environment, tell)
    if pipeline.stream is not None:
        return run_stream(context, pipeline.stream, stopped)
    return run_batch(context, again=run_id is not None)


def dry_run(
    spark: SparkSession,
    pipeline: Pipeline,
    *,
    address: str | None = None,
    security: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """The plan with the columns that Spark finds, and the targets as they would become.

    Sources are opened, but no row is computed, and nothing is written. Raises what ``run`` would
    raise.
    """
    context = _context(spark, pipeline, address, security, None, environment, lambda _: None)
    try:
        make_views(context, check_only=True)
        columns = {
            name: [f"{f.name} {f.dataType.simpleString()}" for f in frame.schema.fields]
            for name, frame in context.views.items()
        }
        notes = [check_map(context, t) for t in pipeline.maps]
    finally:
        context.close()
    return "\n".join([picture(pipeline, columns), *notes])


def new_run_id(moment: datetime | None = None) -> str:
    """The time, as ``20260131T101500.123Z``."""
    now = moment or datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03d}Z"


def _context(  # noqa: PLR0917 (the arguments of run)
    spark: SparkSession,
    pipeline: Pipeline,
    address: str | None,
    security: Mapping[str, str] | None,
    run_id: str | None,
    environment: Mapping[str, str] | None,
    tell: Tell,
) -> Context:
    if run_id is not None and not _ID.match(run_id):
        raise InputError(f"{run_id!r} is no id of a run: up to 100 letters, digits and . _ : -")
    values = Values(os.environ if environment is None else environment)
    for name in pipeline.variables:
        # All of them are asked for now, not when half of the work is done.
        values.fill(f"${{{name}}}")
    prepare(spark)
    return Context(
        spark=spark,
        pipeline=pipeline,
        run=run_id or new_run_id(),
        tell=lambda line: tell(values.hide(line)),
        address=address,
        security=security or {},
        values=values,
    )
