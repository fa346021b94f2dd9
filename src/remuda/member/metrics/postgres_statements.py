"""Statements of PostgreSQL's clients by kind and outcome, timed, and their sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Final

from remuda.errors import RemudaError
from remuda.member.metrics.families import Family, Histogram, Sample, counter, gauge
from remuda.member.metrics.operations import OK

KINDS: Final = frozenset(
    {
        "select", "insert", "update", "delete", "merge", "with", "values", "begin", "start",
        "commit", "end", "rollback", "savepoint", "release", "set", "show", "create", "alter",
        "drop", "truncate", "explain", "prepare", "execute", "deallocate", "declare", "fetch",
        "close", "copy", "analyze", "discard", "reset",
    }
)  # fmt: skip
"""First words of statements; all others are one kind, however many there are."""
OTHER: Final = "other"
_WORD_MAX: Final = 40


def kind_of(text: str) -> str:
    """The kind of a statement, by its first word."""
    return _kind_of(text[:_WORD_MAX])


@lru_cache(maxsize=4096)
def _kind_of(beginning: str) -> str:
    words = beginning.lower().split(None, 1)
    word = words[0].rstrip(";") if words else ""
    return word if word in KINDS else OTHER


class PostgresStatements:
    """The time of a statement begins when it is executed, not when it is prepared. The door's
    statements are counted among all statements as well."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: dict[str, Histogram] = {}
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._opened = self._closed = 0

    def begin(self, text: str) -> Callable[[RemudaError | None], None]:
        """To be called once, with the error or None."""
        return partial(self.ended, kind_of(text), self._clock())

    def ended(self, kind: str, began: float, error: RemudaError | None) -> None:
        """A statement of this kind that began at ``began``, by the clock of this table."""
        times = self._times.get(kind)
        if times is None:
            times = self._times[kind] = Histogram()
        times.observe(self._clock() - began)
        self._outcomes[kind, OK if error is None else error.sqlstate] += 1

    def opened(self) -> None:
        """A client has logged in."""
        self._opened += 1

    def closed(self) -> None:
        """Its session has ended."""
        self._closed += 1

    def families(self) -> Iterator[Family]:
        yield gauge(
            "remuda_postgres_sessions",
            "Open sessions of PostgreSQL's clients.",
            self._opened - self._closed,
        )
        yield counter(
            "remuda_postgres_sessions_total",
            "Sessions of PostgreSQL's clients since the member began.",
            self._opened,
        )
        yield Family(
            "remuda_postgres_statements_total",
            "counter",
            "Statements of PostgreSQL's clients by first word and outcome: ok, or the SQLSTATE.",
            [
                Sample({"kind": kind, "outcome": outcome}, count)
                for (kind, outcome), count in sorted(self._outcomes.items())
            ],
        )
        yield Family(
            "remuda_postgres_statement_duration_seconds",
            "histogram",
            "Time from the execution of a statement of a PostgreSQL client to its end.",
            [
                sample
                for kind, times in sorted(self._times.items())
                for sample in times.samples({"kind": kind})
            ],
        )
