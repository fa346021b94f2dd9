"""One run over what is there: check everything, then write; each target at once."""

from __future__ import annotations

import time

from pyspark.sql import DataFrame

from remuda.spark.pipeline import quarantine
from remuda.spark.pipeline.context import Context
from remuda.spark.pipeline.expectations import Sorted, sort_batch, sort_stream
from remuda.spark.pipeline.model import MapTarget, Source, Step
from remuda.spark.pipeline.report import RunReport, TargetReport, ViewReport
from remuda.spark.pipeline.sources import open_source
from remuda.spark.pipeline.steps import make_view
from remuda.spark.pipeline.target_files import write_files
from remuda.spark.pipeline.target_maps import (
    Prepared,
    drop_quietly,
    prepare_maps,
    write_map,
)


def make_views(context: Context, *, check_only: bool = False) -> dict[str, Sorted]:
    """Make all views, in order; those with expectations, by name. ``check_only``: no row is read.

    Raises ``ExpectationFailed`` before anything is written.
    """
    found: dict[str, Sorted] = {}
    for view in context.pipeline.views:
        frame = open_source(context, view) if isinstance(view, Source) else make_view(context, view)
        if view.expectations:
            made = _sorted(context, view, frame, check_only)
            found[view.name] = made
            frame = made.kept
            if made.report is not None:
                context.tell(str(made.report))
        context.show(view.name, frame)
    return found


def _sorted(context: Context, view: Source | Step, frame: DataFrame, check_only: bool) -> Sorted:
    for expectation in view.expectations:
        with context.at(expectation.line, f"expectation {expectation.name}"):
            frame.where(f"({expectation.condition}\n)")
    with context.at(view.line, f"view {view.name}"):
        if check_only or frame.isStreaming:
            return sort_stream(view.name, frame, view.expectations, counted=not check_only)
        return sort_batch(context, view.name, frame, view.expectations)


def run_batch(context: Context, *, again: bool) -> RunReport:
    """``again``: the id of the run was given, so it may have been tried before."""
    started = time.perf_counter()
    prepared: list[Prepared] = []
    try:
        found = make_views(context)
        reports = tuple(made.report for made in found.values() if made.report is not None)
        prepare_maps(context, prepared)
        aside = {name: made.aside for name, made in found.items() if made.aside is not None}
        quarantined = sum(report.quarantined for report in reports)
        quarantine.keep(context, aside, quarantined, again=again)
        targets = _write(context, prepared)
    except BaseException:
        drop_quietly(context, prepared)
        raise
    finally:
        context.close()
    return RunReport(
        pipeline=context.pipeline.name,
        run=context.run,
        views=reports,
        targets=tuple(targets),
        quarantined=quarantined,
        quarantine=_where(context, reports),
        seconds=time.perf_counter() - started,
        created=tuple(one.target.map for one in prepared if one.created),
    )


def _write(context: Context, prepared: list[Prepared]) -> list[TargetReport]:
    by_label = {one.target.label: one for one in prepared}
    reports = []
    for target in context.pipeline.targets:
        if isinstance(target, MapTarget):
            report = write_map(context, by_label[target.label])
        else:
            report = write_files(context, target)
        context.tell(str(report))
        reports.append(report)
    return reports


def _where(context: Context, reports: tuple[ViewReport, ...]) -> str:
    kept = context.pipeline.quarantine
    return kept.label if kept is not None and any(r.quarantined for r in reports) else ""
