"""Spark as an engine beside the grid: the form of a query there, its cost, and the choice.

To the optimizer Spark is a convention with a cost of its own, in the units of
``planner.memo.cost``: a constant for the job, the bytes of the columns that are read (they leave
the grid), and the work on rows, the last two shared by the cores of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from remuda.datatypes.values import PhysicalValue
from remuda.errors import NotOnSpark
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.plan.logical import Logical, Scan
from remuda.plan.physical import PhysicalPlan
from remuda.plan.uses import operators_of
from remuda.planner.planner import PlanningContext, normalized
from remuda.session.client_session import ClientSession
from remuda.session.parameters import with_clock_parameters, with_values
from remuda.session.planning import Environment
from remuda.sql.scope.statements import BoundQuery
from remuda.sql.spark_sql.relations import SparkQuery, spark_query
from remuda.sql.text.engine_hints import engine_hint

GRID: Final = "grid"
SPARK: Final = "spark"
AUTO: Final = "auto"

UNITS_PER_SECOND: Final = 2.5e8
"""A unit of cost is about 4 ns (``planner.memo.cost``)."""
START: Final = 0.25 * UNITS_PER_SECOND
"""A job of a warm session, whatever it does: planning, stages, Python workers."""
SCAN_START: Final = 0.1 * UNITS_PER_SECOND
"""Each map that is read: planning a Python data source, and its first task."""
BYTE: Final = 2.5
"""A byte out of the grid into Spark: about 100 MB/s for each core (benchmarks/spark.py)."""
TEXT_WIDTH: Final = 20.0
NUMBER_WIDTH: Final = 8.0
WORK: Final = 15.0
"""Work of a core of Spark for a unit of the grid's work: TPC-H over cached data frames takes it
15 to 19 times as long on the same cores (benchmarks/tpc.py)."""


ROWS_UNKNOWN: Final = 1000.0


def engine_of(text: str, session: ClientSession) -> str:
    """The engine that the hint of a statement names, else the setting. Raises InputError."""
    return engine_hint(text) or session.engine


def chooses_engine(session: bytes, text: str) -> bool:
    """Whether a statement may have to ask which engine runs it: cheap, and may say so in vain."""
    return b'"engine"' in session or "/*+" in text


def on_spark(
    statement: BoundQuery,
    values: Sequence[PhysicalValue],
    *,
    environment: Environment,
    prefix: str,
) -> SparkQuery:
    """The statement in Spark's SQL, for one execution: its parameters, and then its
    ``clock_parameters``, are constants in it. Raises NotOnSpark, and the DataErrors of its constant
    parts."""
    if statement.locking:
        raise NotOnSpark("FOR UPDATE and FOR SHARE do not run on Spark")
    plan, _ = with_clock_parameters(statement.plan, len(statement.parameter_types))
    plan = with_values(plan, values)
    context = PlanningContext(
        statistics=environment.statistics, members=environment.members, fold=evaluate_constant
    )
    return spark_query(normalized(plan, context), plan.output, evaluate_constant, prefix)


def cost_on_grid(plan: PhysicalPlan) -> float:
    return plan.fragments[0].root.traits.cost


def cost_on_spark(
    statement: BoundQuery, grid: float, environment: Environment, cores: int
) -> float:
    """``grid`` is what the same query costs there, on the slowest of the members; ``cores`` are
    those of Spark, which share what is read and computed."""
    moved = 0.0
    scans = 0
    for scan in _scans(statement.plan):
        known = environment.statistics.statistics(scan.schema)
        rows = ROWS_UNKNOWN if known is None else known.rows
        moved += rows * sum(_width(scan, position) for position in scan.positions)
        scans += 1
    shared = BYTE * moved + WORK * grid * environment.members
    return START + SCAN_START * scans + shared / cores


def _width(scan: Scan, position: int) -> float:
    column = scan.schema.columns[position]
    return TEXT_WIDTH if column.type.holds_text or column.type.holds_bytes else NUMBER_WIDTH


def _scans(plan: Logical) -> Iterator[Scan]:
    """The planner has not pruned their columns yet: those that nothing names are counted, too."""
    yield from (node for node in operators_of(plan) if isinstance(node, Scan))


def choose(grid: float, spark: float, demand: int, memory: int | None) -> tuple[str, str]:
    """The engine of ``auto``, and why: a query that does not fit into the memory of a member, by
    the planner's own estimate, goes to Spark; any other to the cheaper engine."""
    if memory is not None and demand > memory:
        return SPARK, f"it would hold about {demand} bytes on a member, which has {memory}"
    if spark < grid:
        return SPARK, "cheaper"
    return GRID, "cheaper"


def explained_choice(grid: float, spark: float | None, engine: str, why: str) -> list[str]:
    """The lines above the plan. ``spark`` is None where ``why`` says that it was not asked."""
    cost = "" if spark is None else f", spark cost={spark:.0f}"
    return [f"Engine: {engine} ({why}; grid cost={grid:.0f}{cost})"]
