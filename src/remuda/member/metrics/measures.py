"""The figures that the parts of a member note while they work, to be shown later."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.member.metrics.families import Family, Histogram
from remuda.member.metrics.operations import Operations
from remuda.member.metrics.postgres_statements import PostgresStatements
from remuda.member.metrics.statement_table import StatementTable
from remuda.member.metrics.statements import StatementTimes
from remuda.world import Clock


class Measures:
    """One object per member, given to whoever has something to note; on the loop's thread."""

    def __init__(self, clock: Clock) -> None:
        self.operations = Operations(clock.monotonic)
        self.statements = StatementTimes()
        self.postgres = PostgresStatements(clock.monotonic)
        self.by_fingerprint = StatementTable(clock.wall_micros)
        self.log_writes = Histogram()
        """Seconds that a group of records took to be as safe as ``log_sync`` says."""

    def families(self) -> Iterator[Family]:
        yield from self.operations.families()
        yield from self.statements.families()
        yield from self.postgres.families()
        yield from self.by_fingerprint.families()
        if self.log_writes.count:
            yield Family(
                "remuda_log_write_duration_seconds",
                "histogram",
                "Time to write one group of records to the write-ahead log, and to sync it.",
                self.log_writes.samples({}),
            )
