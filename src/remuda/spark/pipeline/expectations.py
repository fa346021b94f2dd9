"""Sort out rows that are not as expected: all reasons of a row stand beside it, then rows with
reasons go where their expectations say."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from remuda.spark.pipeline.context import Context
from remuda.spark.pipeline.errors import ExpectationFailed
from remuda.spark.pipeline.model import Expectation
from remuda.spark.pipeline.report import ViewReport, rows_text

REASONS: Final = "_reasons"
_MARKED: Final = "_remuda_reasons"
RAISED: Final = "remuda: expectation "
"""How the error begins that a stream ends with; the rest is JSON."""
_USER_RAISED: Final = re.compile(rf"\[USER_RAISED_EXCEPTION\] {RAISED}")
_EXAMPLE_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Sorted:
    """``kept``: rows as expected. ``aside``: those put aside, with ``_reasons``; None when no
    expectation does that."""

    kept: DataFrame
    aside: DataFrame | None
    report: ViewReport | None = None


def sort_batch(
    context: Context, view: str, frame: DataFrame, expectations: tuple[Expectation, ...]
) -> Sorted:
    """Compute ``frame``, once: the checked rows are the written ones. Raises
    ``ExpectationFailed``."""
    # Not persist(): plans over persisted rows have been seen to wait for ever (Spark 4.3, adaptive
    # execution). What was checked would be computed anew if it were lost; now the run fails.
    marked = _mark(frame, expectations).localCheckpoint(eager=True)
    counts = marked.agg(*_counts(expectations)).first()
    assert counts is not None
    broken = {e.name: int(counts[f"broken_{i}"]) for i, e in enumerate(expectations)}
    for expectation in expectations:
        if expectation.action == "fail" and broken[expectation.name]:
            example = marked.where(_breaks(expectation.name)).drop(_MARKED).limit(1).collect()
            shown = json.dumps(example[0].asDict(), default=str, ensure_ascii=False)
            failure = _failure(
                expectation, broken[expectation.name], int(counts["rows"]), shown[:_EXAMPLE_MAX]
            )
            raise context.explained(failure, expectation.line, f"view {view}")
    kept, aside = _split(marked, expectations)
    rows, quarantined = int(counts["rows"]), int(counts["aside"])
    dropped = rows - int(counts["kept"]) - quarantined
    return Sorted(kept, aside, ViewReport(view, rows, dropped, quarantined, broken))


def sort_stream(
    view: str, frame: DataFrame, expectations: tuple[Expectation, ...], *, counted: bool = True
) -> Sorted:
    """The same for rows that come: they are counted by Spark on the way (``view`` names the
    counts), and one that breaks an expectation with ``fail`` ends the stream."""
    marked = _mark(frame, expectations)
    for expectation in expectations:
        if expectation.action == "fail":
            text = RAISED + json.dumps({"view": view, "name": expectation.name})
            refuse = F.when(_breaks(expectation.name), F.raise_error(F.lit(text)))
            marked = marked.where(F.coalesce(refuse.cast("boolean"), F.lit(True)))
    if counted:
        marked = marked.observe(view, *_counts(expectations))
    kept, aside = _split(marked, expectations)
    return Sorted(kept, aside)


def view_report(
    view: str, counts: dict[str, int], expectations: tuple[Expectation, ...]
) -> ViewReport:
    """The counts of a stream, as ``sort_batch`` reports them."""
    broken = {e.name: counts.get(f"broken_{i}", 0) for i, e in enumerate(expectations)}
    rows, aside = counts.get("rows", 0), counts.get("aside", 0)
    return ViewReport(view, rows, rows - counts.get("kept", 0) - aside, aside, broken)


def failure_of(text: str) -> tuple[str, str] | None:
    """(view, expectation) when a stream ended because of one."""
    raised = _USER_RAISED.search(text)  # the plan, which stands below, holds the text as well
    if raised is None:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(text[raised.end() :])
    except ValueError:
        return None
    return found["view"], found["name"]


def _mark(frame: DataFrame, expectations: tuple[Expectation, ...]) -> DataFrame:
    """With the names of the broken expectations; NULL is not true, so it breaks them."""
    names = [
        F.when(~F.coalesce(F.expr(f"({e.condition}\n)"), F.lit(False)), F.lit(e.name))
        for e in expectations
    ]
    return frame.withColumn(_MARKED, F.array_compact(F.array(*names)))


def _split(
    marked: DataFrame, expectations: tuple[Expectation, ...]
) -> tuple[DataFrame, DataFrame | None]:
    kept = marked.where(F.size(_MARKED) == 0).drop(_MARKED)
    if not any(e.action == "quarantine" for e in expectations):
        return kept, None
    aside = marked.where(_aside(expectations)).withColumnRenamed(_MARKED, REASONS)
    return kept, aside


def _counts(expectations: tuple[Expectation, ...]) -> list[Column]:
    broken = [F.count_if(_breaks(e.name)).alias(f"broken_{i}") for i, e in enumerate(expectations)]
    return [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(F.size(_MARKED) == 0).alias("kept"),
        F.count_if(_aside(expectations)).alias("aside"),
        *broken,
    ]


def _breaks(name: str) -> Column:
    return F.array_contains(F.col(_MARKED), name)


def _aside(expectations: tuple[Expectation, ...]) -> Column:
    """Whether one of the broken expectations puts the row aside."""
    found = F.lit(False)
    for expectation in expectations:
        if expectation.action == "quarantine":
            found = found | _breaks(expectation.name)
    return found


def _failure(e: Expectation, broken: int, rows: int, example: str) -> ExpectationFailed:
    return ExpectationFailed(
        f"expectation {e.name} is broken by {broken:,} of {rows_text(rows)}: "
        f"{' '.join(e.condition.split())}",
        detail=f"one of them: {example}",
        hint="Nothing was written by this run. Actions drop and quarantine let a run go on.",
    )
