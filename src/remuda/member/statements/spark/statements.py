"""The statements that run on Spark, and their form there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

from remuda.datatypes.values import PhysicalValue
from remuda.errors import ConnectionBroken, NotOnSpark, QueryTimeout, RemudaError
from remuda.execution.root_sink import RootSink
from remuda.member.base.core import Core
from remuda.member.base.loop_handoff import Hop
from remuda.member.queries.cursors import Cursor, Results
from remuda.member.sessions.statement import Client, Statement
from remuda.member.statements.admission import demand
from remuda.member.statements.initiated_queries import Runs
from remuda.member.statements.plans import Plans
from remuda.member.statements.spark.services import SparkRun, SparkServices
from remuda.session.answers import Answer, answer_rows
from remuda.session.parameters import clock_values
from remuda.session.planning import PlannedExplain, PlannedQuery
from remuda.session.spark_engine import (
    AUTO,
    GRID,
    SPARK,
    START,
    choose,
    cost_on_grid,
    cost_on_spark,
    engine_of,
    explained_choice,
    on_spark,
)
from remuda.sql.scope.statements import BoundQuery
from remuda.sql.spark_sql.relations import SparkQuery


@dataclass(frozen=True, slots=True)
class Chosen:
    """``asked`` is None when the grid runs the statement; ``spark`` is None when it must."""

    engine: str
    why: str
    grid: float
    spark: float | None
    asked: SparkQuery | None


class SparkStatements:
    def __init__(self, core: Core, hop: Hop, plans: Plans, runs: Runs) -> None:
        self._core = core
        self._hop = hop
        self._plans = plans
        self._runs = runs
        self.services = SparkServices(core)

    async def chosen(
        self, statement: Statement, query: PlannedQuery, values: tuple[PhysicalValue, ...]
    ) -> Chosen | None:
        """None: the grid runs it, without a question. Raises what is wrong with the hint, and
        NotOnSpark for a statement that must run there."""
        engine = engine_of(statement.text, statement.session)
        if engine == GRID or statement.local or statement.partitions is not None:
            return None
        grid = cost_on_grid(query.plan)
        large = demand(query.plan) > self._memory
        if engine == AUTO and grid < START and not large:
            return Chosen(GRID, "it is short", grid, None, None)
        try:
            bound = await self._bound(statement, query)
            asked = self._on_spark(bound, statement, query, values)
        except NotOnSpark as error:
            if engine == SPARK:
                raise
            return Chosen(GRID, error.message, grid, None, None)
        environment = self._plans.environment()
        spark = cost_on_spark(bound, grid, environment, self.services.cores)
        if engine == SPARK:
            return Chosen(SPARK, "asked for", grid, spark, asked)
        engine, why = choose(grid, spark, demand(query.plan), self._memory)
        if engine == SPARK and not self.services.available:
            return Chosen(GRID, f"no Spark service; else Spark: {why}", grid, spark, None)
        return Chosen(engine, why, grid, spark, asked if engine == SPARK else None)

    @property
    def _memory(self) -> int:
        """Bytes that one statement may hold on a member, spilled ones included."""
        config = self._core.config
        return max(config.statement_memory or 0, 1) + max(config.spill_limit or 0, 0)

    async def _bound(self, statement: Statement, query: PlannedQuery) -> BoundQuery:
        meaning, user = statement.session.meaning, statement.user
        bound = await self._plans.bound(statement.text, query.parameter_types, user, meaning)
        if not isinstance(bound, BoundQuery):
            raise NotOnSpark("only queries run on Spark")
        return bound

    def _on_spark(
        self,
        bound: BoundQuery,
        statement: Statement,
        query: PlannedQuery,
        values: tuple[PhysicalValue, ...],
    ) -> SparkQuery:
        if statement.transaction is not None:
            raise NotOnSpark(
                "a statement in a transaction does not run on Spark, which sees nothing of what "
                "the transaction has written",
                hint="COMMIT first, or SET engine = grid.",
            )
        if statement.read_timestamp is not None:
            raise NotOnSpark("a statement with a read timestamp of its own does not run on Spark")
        if len(values) != len(query.parameter_types):
            raise NotOnSpark("a statement without values of its parameters does not run on Spark")
        clock = clock_values(query.clock_parameters, statement.moment, statement.session)
        return on_spark(
            bound,
            (*values, *clock),
            environment=self._plans.environment(),
            prefix=f"remuda_{statement.query}".replace("-", "_"),
        )

    # --- running ------------------------------------------------------------------------------

    async def start(
        self, statement: Statement, query: PlannedQuery, asked: SparkQuery, client: Client | None
    ) -> SparkRun:
        """The run that ``begin`` begins. Raises what a lease, a lost member, a missing service and
        a statement that is not wanted any more raise."""
        self.services.require()
        at = await self._runs.timestamp(statement, query)
        statement.check()
        if client is None:
            raise ConnectionBroken("the client is gone")
        sink = RootSink(statement.page_rows)
        run = SparkRun(statement, client, asked, at, sink)
        sink.attach(lambda: self._hop(lambda: self.services.taken(run)))
        return run

    def begin(self, run: SparkRun, results: Results, finished: Callable[[], None]) -> None:
        """From here on the cursor drives it."""
        statement = run.statement

        def over() -> None:
            self.services.end(run)
            finished()

        cursor = Cursor(
            results,
            statement.channel,
            run.sink,
            on_finished=over,
            on_broken=lambda _: self.services.end(run),
        )
        run.tell(cursor.ended, lambda: self._hop(cursor.pump))
        run.client.cursors[statement.query] = cursor
        self._runs.active[run.query] = run.at
        self._limit(statement, cursor.ended)
        self.services.begin(run)

    def _limit(self, statement: Statement, ended: Callable[[RemudaError], None]) -> None:
        """End it when its time is over."""
        if statement.timeout is None:
            return
        error = QueryTimeout(f"the query did not end within {statement.timeout:g} s")
        timer = asyncio.get_running_loop().call_later(statement.timeout, ended, error)
        statement.progress.on_closed.append(timer.cancel)

    # --- EXPLAIN ------------------------------------------------------------------------------

    async def explained(
        self, statement: Statement, found: PlannedExplain, values: tuple[PhysicalValue, ...]
    ) -> list[str]:
        """The nodes above the plan of the grid. Raises NotOnSpark for EXPLAIN ANALYZE of what
        Spark runs."""
        if not isinstance(found.statement, PlannedQuery):
            return []
        chosen = await self.chosen(statement, found.statement, values)
        if chosen is None:
            return []
        lines = explained_choice(chosen.grid, chosen.spark, chosen.engine, chosen.why)
        if chosen.asked is None:
            return lines
        if found.options.analyze:
            raise NotOnSpark(
                "EXPLAIN ANALYZE does not run on Spark", hint="SET engine = grid measures the grid."
            )
        if found.options.verbose:
            lines.append(f"  Spark SQL: {chosen.asked.text}")
        lines += [
            f"  Scan of {scan.map}: {', '.join(scan.columns) or 'no column'}"
            for scan in chosen.asked.scans
        ]
        lines.append("On the grid it would be:")
        return lines


def above(lines: list[str], answer: Answer, *, as_json: bool) -> Answer:
    """An answer of EXPLAIN with more lines above it; in JSON the first one is a member."""
    if not lines:
        return answer
    columns, batch = answer
    rest = batch.column(0).to_pylist()
    if as_json:
        (made,) = json.loads(rest[0])
        told = [{"Engine": lines[0].removeprefix("Engine: "), **made}]
        return answer_rows(columns, [(json.dumps(told, indent=2, ensure_ascii=False),)])
    return answer_rows(columns, [(line,) for line in (*lines, *rest)])
