"""Statements that have ended, counted by outcome and timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from remuda.errors import RemudaError
from remuda.member.metrics.families import Family, Histogram, Sample, by_label, counter
from remuda.member.metrics.operations import OK
from remuda.session.query_profiles import QueryFacts


class StatementTimes:
    """Those that this member has initiated. Reads by key that are answered at once are no
    statements here, but operations of kind ``run_query``."""

    def __init__(self) -> None:
        self._outcomes: Counter[str] = Counter()
        self._whole = Histogram()
        self._queued = Histogram()
        self._waited = 0.0
        self._rows = 0

    def ended(self, seconds: float, facts: QueryFacts, error: RemudaError | None) -> None:
        """``seconds`` from start to end."""
        self._outcomes[OK if error is None else error.sqlstate] += 1
        self._whole.observe(seconds)
        self._queued.observe(facts.queued)
        self._waited += facts.waited
        self._rows += facts.rows

    def families(self) -> Iterator[Family]:
        yield by_label(
            "remuda_statements_total",
            "counter",
            "Statements that have ended, by outcome: ok, or the SQLSTATE of the error.",
            "outcome",
            sorted(self._outcomes.items()),
        )
        for name, help_text, histogram in (
            (
                "remuda_statement_duration_seconds",
                "Time from the start of a statement to its end.",
                self._whole,
            ),
            (
                "remuda_statement_queue_duration_seconds",
                "Time that a statement has waited for memory.",
                self._queued,
            ),
        ):
            samples: list[Sample] = histogram.samples({})
            yield Family(name, "histogram", help_text, samples)
        yield counter(
            "remuda_statement_wait_seconds_total",
            "Time that statements have waited for locks and for turns of maps.",
            self._waited,
        )
        yield counter(
            "remuda_statement_rows_total", "Rows that statements have returned.", self._rows
        )
