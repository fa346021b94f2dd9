"""What a statement answers that reads the rows of its own change: ``WITH x AS (DELETE ... RETURNING
...) SELECT ... FROM x``. It is computed before the commit, at the timestamp of the change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from remuda.datatypes.values import PhysicalValue
from remuda.member.sessions.statement import Statement
from remuda.member.statements.changes import Answer, Changed
from remuda.member.statements.initiated_queries import INTERNAL_PAGE_ROWS, Runs
from remuda.query.ids import QueryId
from remuda.session.planning import PlannedChange


def answer_of(
    runs: Runs,
    new_id: Callable[[], QueryId],
    statement: Statement,
    found: PlannedChange,
    values: tuple[PhysicalValue, ...],
) -> Answer | None:
    """None: the statement answers with RETURNING."""
    query = found.answer
    if query is None:
        return None

    async def answered(at: int, changed: Changed) -> Changed:
        pages = [
            pa.record_batch(columns, names=[str(i) for i in range(len(columns))])
            for columns in changed.returned
        ]
        run = replace(statement, query=new_id(), read_timestamp=at)
        statement.attempt = run.query
        start = await runs.start(run, query, values, INTERNAL_PAGE_ROWS, {found.relation: pages})
        made, size = Changed(), 0
        async for page in runs.pages(run, start, []):
            made.rows += page.num_rows
            size = made.keep(list(page.columns), size)
        return made

    return answered
