"""From the text of a statement to something that can be run; planned statements are cached."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from remuda.catalog.catalog import Catalog
from remuda.catalog.statistics import StatisticsReader
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import SqlType
from remuda.errors import LimitExceeded, RemudaError
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.limits import PLAN_CACHE_ENTRIES, STATEMENT_LENGTH_MAX
from remuda.plan.codec import encode_plan
from remuda.plan.expression import Parameter
from remuda.plan.logical import Logical, Scan, inputs_of
from remuda.plan.physical import PhysicalPlan
from remuda.planner.context import PlanningContext
from remuda.planner.planner import plan_query
from remuda.planner.point import PointRead, point_read
from remuda.session.parameters import with_clock_parameters
from remuda.session.shape import ResultShape
from remuda.sql.binder import bind
from remuda.sql.parser import parse
from remuda.sql.statements import (
    BoundQuery,
    BoundStatement,
    CreateMapStatement,
    DropMapStatement,
    ExplainStatement,
    InsertStatement,
    ShowStatement,
)


@dataclass(frozen=True)
class PlannedQuery:
    """A query ready to run. Its parameters are the user's, then the moments named by
    ``clock_parameters``. ``encoded`` is the plan as bytes."""

    plan: PhysicalPlan
    encoded: bytes
    columns: tuple[Column, ...]
    parameter_types: tuple[SqlType, ...]
    clock_parameters: tuple[str, ...]
    point: PointRead | None

    @cached_property
    def shape(self) -> ResultShape:
        return ResultShape(self.columns)


@dataclass(frozen=True)
class PlannedInsert:
    """``source`` puts out all columns of ``schema``. ``insert_only``: existing keys are refused."""

    source: PlannedQuery
    schema: MapSchema
    insert_only: bool


@dataclass(frozen=True)
class PlannedExplain:
    analyze: bool
    verbose: bool
    statement: PlannedQuery | PlannedInsert


Planned: TypeAlias = (
    PlannedQuery
    | PlannedInsert
    | PlannedExplain
    | CreateMapStatement
    | DropMapStatement
    | ShowStatement
)


@dataclass(frozen=True)
class Environment:
    """What a plan depends on besides the statement; a cached plan of another one is not used."""

    catalog: Catalog
    view: int
    members: int
    statistics: StatisticsReader
    generation: int
    """Counts the refreshes of the statistics."""

    def fits(self, other: Environment, planned: Planned) -> bool:
        """Whether a statement planned under ``other`` is good here."""
        if other.catalog.version != self.catalog.version or other.members != self.members:
            return False
        if isinstance(planned, PlannedQuery) and planned.point is not None:
            return True
        return other.generation == self.generation and other.view == self.view


Key: TypeAlias = tuple[str, tuple[SqlType, ...] | None, bool]


def bound(text: str, types: Sequence[SqlType] | None, catalog: Catalog) -> BoundStatement:
    """Raises SqlSyntaxError and the binder's InputErrors, all with the statement attached."""
    if len(text) > STATEMENT_LENGTH_MAX:
        raise LimitExceeded(f"a statement has at most {STATEMENT_LENGTH_MAX} characters")
    try:
        return bind(parse(text), catalog, types)
    except RemudaError as error:
        error.statement = error.statement or text
        raise
    except RecursionError as problem:
        raise LimitExceeded("the statement is nested too deeply") from problem


def planned(statement: BoundStatement, environment: Environment) -> Planned:
    match statement:
        case BoundQuery():
            names = statement.names
            return _query(statement.plan, names, statement.parameter_types, environment)
        case InsertStatement():
            names = tuple(column.name for column in statement.schema.columns)
            source = _query(statement.source, names, statement.parameter_types, environment)
            return PlannedInsert(source, statement.schema, statement.mode == "insert")
        case ExplainStatement():
            inner = planned(statement.statement, environment)
            assert isinstance(inner, PlannedQuery | PlannedInsert)
            return PlannedExplain(statement.analyze, statement.verbose, inner)
        case _:
            return statement


def _query(
    plan: Logical, names: Sequence[str], types: tuple[SqlType, ...], environment: Environment
) -> PlannedQuery:
    plan, clock_parameters = with_clock_parameters(plan, len(types))
    context = PlanningContext(
        statistics=environment.statistics,
        members=environment.members,
        parameter_types=types,
        fold=evaluate_constant,
    )
    physical = plan_query(plan, context)
    columns = tuple(
        Column(name, column.type, column.nullable)
        for name, column in zip(names, physical.output, strict=True)
    )
    return PlannedQuery(
        plan=physical,
        encoded=encode_plan(physical),
        columns=columns,
        parameter_types=types,
        clock_parameters=clock_parameters,
        point=point_read(physical) if not clock_parameters else None,
    )


def maps_of(statement: BoundStatement) -> tuple[MapSchema, ...]:
    """The maps that a statement reads: those whose statistics matter."""
    match statement:
        case BoundQuery(plan=plan) | InsertStatement(source=plan):
            found = {node.schema.map_id: node.schema for node in _scans(plan)}
            return tuple(found.values())
        case ExplainStatement(statement=inner):
            return maps_of(inner)
        case _:
            return ()


def _scans(plan: Logical) -> Iterator[Scan]:
    if isinstance(plan, Scan):
        yield plan
    for child in inputs_of(plan):
        yield from _scans(child)


class PlanCache:
    """Planned statements, least recently used out first. DDL and SHOW are not kept."""

    def __init__(self, stale: Callable[[PhysicalPlan], bool]) -> None:
        """``stale`` says whether the statistics behind a plan should be taken again."""
        self._stale = stale
        self._entries: OrderedDict[Key, tuple[Planned, Environment]] = OrderedDict()

    def find(self, key: Key, environment: Environment) -> Planned | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        found, made_under = entry
        if not environment.fits(made_under, found):
            del self._entries[key]
            return None
        query = found.source if isinstance(found, PlannedInsert) else found
        if isinstance(query, PlannedQuery) and query.point is None and self._stale(query.plan):
            return None
        self._entries.move_to_end(key)
        return found

    def keep(self, key: Key, statement: Planned, environment: Environment) -> None:
        if isinstance(statement, PlannedQuery | PlannedInsert):
            # The catalog and the statistics themselves would be kept alive for nothing.
            lean = replace(environment, catalog=Catalog(environment.catalog.version))
            self._entries[key] = (statement, lean)
            if len(self._entries) > PLAN_CACHE_ENTRIES:
                self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)


def route_of(point: PointRead, schema: MapSchema) -> tuple[int, ...] | None:
    """The parameters that make up the partition key of a point read, in ``partition_by`` order, so
    that a client can go straight to the owner; None if there is no such rule."""
    if schema.replicated or len(point.keys) != 1:
        return None
    by_name = dict(zip(schema.key, point.keys[0], strict=True))
    found: list[int] = []
    for name in schema.partition_by:
        expression = by_name[name]
        if not isinstance(expression, Parameter) or expression.type != schema.column(name).type:
            return None
        found.append(expression.index)
    return tuple(found)
