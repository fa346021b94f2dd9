"""From the text of a statement to something that can be run; planned statements are cached."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from remuda.catalog.catalog import Catalog
from remuda.catalog.statistics import StatisticsReader
from remuda.datatypes.schema import Column, MapSchema, Origin
from remuda.datatypes.sql import SqlType
from remuda.errors import LimitExceeded, RemudaError
from remuda.execution.evaluate.compile import evaluate_constant
from remuda.limits import PLAN_CACHE_ENTRIES, PLAN_CACHE_SIZE_MAX, STATEMENT_LENGTH_MAX
from remuda.plan.codec import encode_plan
from remuda.plan.expression import Literal
from remuda.plan.logical import Logical, Project, Scan, Sort, Supplied, inputs_of
from remuda.plan.physical import PhysicalPlan
from remuda.plan.sequence_calls import SequenceCall
from remuda.plan.uses import operators_of
from remuda.planner.constant_read import ConstantRead, constant_read
from remuda.planner.context import PlanningContext
from remuda.planner.index_read import IndexRead, index_read
from remuda.planner.planner import plan_query, without_correlated_recursion
from remuda.planner.point import PointRead, point_read
from remuda.session.answer_form import AnswerForm
from remuda.session.definitions import settled
from remuda.session.in_zone import in_zone
from remuda.session.keyed_writes import KeyedPlan, of_change, of_insert
from remuda.session.parameters import check_count, with_clock_parameters
from remuda.session.privileges import Need, needs_of
from remuda.session.routes import route_of, route_of_write
from remuda.session.settings import PLAIN, Meaning
from remuda.session.shape import ResultShape
from remuda.sql.binder import bind
from remuda.sql.changes.literal_rows import literal_insert
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import (
    AnalyzeStatement,
    Arbiter,
    BoundQuery,
    BoundStatement,
    CancelStatement,
    CatalogReader,
    CatalogStatement,
    ChangeStatement,
    ClusterStatement,
    CopyStatement,
    CreateAsStatement,
    CreateIndexStatement,
    CreateMapStatement,
    DropIndexStatement,
    ExplainStatement,
    InsertStatement,
    ItemEffect,
    LockStatement,
    PrivilegeStatement,
    Repeats,
    SessionStatement,
    ShowStatement,
    SnapshotStatement,
    TruncateStatement,
)
from remuda.sql.trees.cursors import Declaration
from remuda.sql.trees.syntax import ExplainOptions

CACHED_TEXT_MAX = 16 * 1024
"""Characters of a statement whose plan is kept: machines write longer ones, each for one run."""
ENTRY_SIZE = 4096
OBJECTS_PER_ENCODED_BYTE = 8
"""Bytes of a plan as objects, per byte of its encoded form: measured, rounded up."""


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
    indexed: IndexRead | None = None
    constant: ConstantRead | None = None
    route: tuple[int, ...] | None = None
    """See ``session.routes``."""
    supplied: tuple[PlannedSupply, ...] = ()
    needs: tuple[Need, ...] = ()
    locking: bool = False
    """FOR UPDATE, FOR SHARE."""
    effects: tuple[ItemEffect, ...] = ()
    declares: Declaration | None = None
    """The cursor that is declared for it: the statement gives no rows."""

    @cached_property
    def shape(self) -> ResultShape:
        return ResultShape(self.columns)

    @cached_property
    def shown(self) -> tuple[Column, ...]:
        """The columns of the result. Items that act show something else than the plan gives."""
        columns = list(self.columns)
        for effect in self.effects:
            if (shows := effect.shows) is not None:
                columns[effect.column] = replace(columns[effect.column], type=shows, nullable=True)
        return tuple(columns)

    @cached_property
    def form(self) -> AnswerForm:
        return AnswerForm(self.columns, self.parameter_types, self.route)


@dataclass(frozen=True)
class PlannedSupply:
    """A relation that the initiator must have before the query starts: one that the member knows
    by name, or a recursive CTE."""

    relation: str
    recursion: PlannedRecursion | None = None
    enough: int | None = None
    """The query reads no more than so many rows of it, whichever they are."""

    def mentions(self, relation: str) -> bool:
        """Whether it is made from ``relation``, or is it."""
        if self.relation == relation:
            return True
        inner = self.recursion
        return inner is not None and any(
            supply.mentions(relation) for query in inner.queries for supply in query.supplied
        )


@dataclass(frozen=True)
class PlannedRecursion:
    """See ``logical.Recursion``. ``base`` and ``step`` share the statement's parameters."""

    name: str
    working: str
    base: PlannedQuery
    step: PlannedQuery | None
    distinct: bool
    calls: tuple[SequenceCall, ...] = ()

    @property
    def queries(self) -> tuple[PlannedQuery, ...]:
        return (self.base,) if self.step is None else (self.base, self.step)


@dataclass(frozen=True)
class PlannedInsert:
    """``source`` puts out all columns of ``schema``. ``insert_only``: existing keys are refused."""

    source: PlannedQuery
    schema: MapSchema
    insert_only: bool
    needs: tuple[Need, ...] = ()
    keyed: KeyedPlan | None = None
    """The short way, if it has one."""

    @cached_property
    def form(self) -> AnswerForm:
        return _form_of_change(self, ())


@dataclass(frozen=True)
class PlannedChange:
    """``source`` puts out ``written`` columns of rows to write (the first one is the action, if it
    ``chooses``), then ``removed`` key columns of rows to remove, then those of RETURNING. See
    ``ChangeStatement``."""

    source: PlannedQuery
    schema: MapSchema
    verb: str
    written: int
    removed: int
    insert_only: bool
    reads_target: bool
    repeats: Repeats
    returning: tuple[Column, ...]
    chooses: bool = False
    arbiters: tuple[Arbiter, ...] = ()
    needs: tuple[Need, ...] = ()
    answer: PlannedQuery | None = None
    """The query whose rows the client gets for RETURNING; it reads them as ``relation``."""
    relation: str = ""
    keyed: KeyedPlan | None = None
    """The short way, if it has one."""
    keeps_uniques: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those that the client gets."""
        return self.returning if self.answer is None else self.answer.columns

    @cached_property
    def shape(self) -> ResultShape:
        return ResultShape(self.columns)

    @cached_property
    def form(self) -> AnswerForm:
        return _form_of_change(self, self.columns)


@dataclass(frozen=True)
class PlannedExplain:
    """``title``: see ``ExplainStatement``."""

    options: ExplainOptions
    statement: PlannedQuery | PlannedInsert | PlannedChange
    title: str = ""
    needs: tuple[Need, ...] = ()


Planned: TypeAlias = (
    PlannedQuery
    | PlannedInsert
    | PlannedChange
    | PlannedExplain
    | CreateMapStatement
    | CreateAsStatement
    | CatalogStatement
    | CopyStatement
    | TruncateStatement
    | ShowStatement
    | AnalyzeStatement
    | LockStatement
    | SessionStatement
    | SnapshotStatement
    | ClusterStatement
    | CancelStatement
    | PrivilegeStatement
    | CreateIndexStatement
    | DropIndexStatement
)


@dataclass(frozen=True)
class Environment:
    """The things besides the statement on which a plan depends; a cached plan of another value is
    not used."""

    catalog: Catalog
    view: int
    members: int
    statistics: StatisticsReader
    versions: Mapping[int, int]
    """How often the statistics of each map were taken; 0 for a map that is not there."""

    def fits(self, other: Environment, planned: Planned) -> bool:
        """Whether a statement planned under ``other`` is good here. Statistics of maps that it does
        not read do not matter."""
        if other.catalog.version != self.catalog.version or other.members != self.members:
            return False
        if by_key(planned):
            return True
        return other.view == self.view and all(
            self.versions.get(number, 0) == version for number, version in other.versions.items()
        )

    def of(self, planned: PlannedQuery | PlannedInsert | PlannedChange) -> Environment:
        """The values to keep with a plan, to tell later whether it fits: the catalog and the
        statistics themselves would be kept alive for nothing."""
        read = maps_read(planned)
        return replace(
            self,
            catalog=Catalog(self.catalog.version),
            versions={number: self.versions.get(number, 0) for number in read},
        )


Key: TypeAlias = tuple[str, tuple[SqlType | None, ...] | None, bool, Meaning]
"""Text, types of parameters (None: inferred), whether one member alone runs it, settings."""


def bound(
    text: str,
    types: Sequence[SqlType | None] | None,
    catalog: CatalogReader,
    meaning: Meaning = PLAIN,
) -> BoundStatement:
    """Raises SqlSyntaxError and the binder's InputErrors, all with
    the statement attached."""
    if len(text) > STATEMENT_LENGTH_MAX:
        raise LimitExceeded(f"a statement has at most {STATEMENT_LENGTH_MAX} characters")
    zone, path, _, database, _ = meaning
    plain = None if types else literal_insert(text, catalog, zone, path)
    if plain is not None:
        return plain
    try:
        parsed = parse(text)
        if types is not None:
            check_count(parsed.parameters, len(types))
        return in_zone(bind(parsed, catalog, types, zone, path, database=database), zone)
    except RemudaError as error:
        raise error.within(error.statement or text) from error.__cause__
    except RecursionError as problem:
        raise LimitExceeded("the statement is nested too deeply") from problem


def planned(statement: BoundStatement, environment: Environment) -> Planned:
    """Raises LimitExceeded for what is nested too deeply."""
    try:
        found = _planned(statement, environment)
        if not isinstance(found, PlannedQuery | PlannedInsert | PlannedChange | PlannedExplain):
            return found
        return replace(found, needs=needs_of(statement, environment.catalog))
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply to be planned") from None


def needs(found: Planned, catalog: Catalog) -> tuple[Need, ...]:
    """Which roles it takes to run this."""
    if isinstance(found, PlannedQuery | PlannedInsert | PlannedChange | PlannedExplain):
        return found.needs
    return needs_of(found, catalog)


def _planned(statement: BoundStatement, environment: Environment) -> Planned:
    match statement:
        case BoundQuery():
            names, types, origins = statement.names, statement.parameter_types, statement.origins
            query = _query(statement.plan, names, types, environment, origins)
            if statement.effects or statement.declares:  # its answer is another one than its rows
                query = replace(query, point=None, indexed=None, constant=None, route=None)
                query = replace(query, effects=statement.effects, declares=statement.declares)
            return replace(query, locking=True) if statement.locking else query
        case InsertStatement():
            names = tuple(column.name for column in statement.schema.columns)
            source = _query(statement.source, names, statement.parameter_types, environment)
            insert_only, keyed = statement.mode == "insert", of_insert(statement)
            return PlannedInsert(source, statement.schema, insert_only, keyed=keyed)
        case ChangeStatement():
            return _change(statement, environment)
        case ExplainStatement():
            inner = _planned(statement.statement, environment)
            assert isinstance(inner, PlannedQuery | PlannedInsert | PlannedChange)
            return PlannedExplain(statement.options, inner, statement.title)
        case CreateMapStatement() | CreateAsStatement():
            return replace(statement, schema=settled(statement.schema))
        case _:
            return statement


def _change(statement: ChangeStatement, environment: Environment) -> PlannedChange:
    schema = statement.schema
    written = len(schema.columns) + statement.chooses if statement.writes else 0
    removed = len(schema.key) if statement.removes else 0
    names = [column.name for column in statement.source.output[: written + removed]]
    types, origins = statement.parameter_types, statement.origins
    source = _query(statement.source, [*names, *statement.returning], types, environment, origins)
    query = statement.query
    answer = None if query is None else _query(query.plan, query.names, types, environment)
    return PlannedChange(
        source=source,
        schema=schema,
        verb=statement.verb,
        written=written,
        removed=removed,
        insert_only=statement.insert_only,
        reads_target=statement.reads_target,
        repeats=statement.repeats,
        returning=source.columns[written + removed :],
        chooses=statement.chooses,
        arbiters=statement.arbiters,
        answer=answer,
        relation=statement.relation,
        keyed=of_change(statement, source.plan, source.clock_parameters),
        keeps_uniques=statement.keeps_uniques,
    )


def _query(
    plan: Logical,
    names: Sequence[str],
    types: tuple[SqlType, ...],
    environment: Environment,
    origins: Sequence[Origin | None] = (),
) -> PlannedQuery:
    context = PlanningContext(
        statistics=environment.statistics,
        members=environment.members,
        parameter_types=types,
        fold=evaluate_constant,
    )
    plan = without_correlated_recursion(plan, context)
    enough = rows_wanted(plan)
    supplied = tuple(_supply(node, types, environment, enough) for node in _supplied(plan))
    plan, clock_parameters = with_clock_parameters(plan, len(types))
    physical = plan_query(plan, context)
    known = origins or (None,) * len(names)
    columns = tuple(
        Column(name, column.type, column.nullable, origin=origin)
        for name, column, origin in zip(names, physical.output, known, strict=True)
    )
    point = point_read(physical) if not clock_parameters else None
    schema = environment.catalog.find_id(point.map_id) if point is not None else None
    return PlannedQuery(
        plan=physical,
        encoded=encode_plan(physical),
        columns=columns,
        parameter_types=types,
        clock_parameters=clock_parameters,
        point=point,
        indexed=index_read(physical) if not clock_parameters and not supplied else None,
        constant=constant_read(physical),
        route=route_of(point, schema) if point is not None and schema is not None else None,
        supplied=supplied,
    )


def _supplied(plan: Logical) -> tuple[Supplied, ...]:
    """The relations that ``plan`` reads besides maps, each once."""
    return tuple({n.relation: n for n in _leaves(plan) if isinstance(n, Supplied)}.values())


def rows_wanted(plan: Logical) -> int | None:
    """How many rows the query reads at most, when it only projects and cuts off: as many of a
    recursive CTE are enough (PostgreSQL's executor stops there, too)."""
    wanted: int | None = None
    while True:
        match plan:
            case Project(input=plan):
                continue
            case Sort(input=plan, keys=(), limit=Literal(value=int(limit)), offset=None):
                wanted = limit if wanted is None else min(wanted, limit)
            case Sort(
                input=plan,
                keys=(),
                limit=Literal(value=int(limit)),
                offset=Literal(value=int(offset)),
            ):
                wanted = limit + offset
            case Supplied():
                return wanted
            case _:
                return None


def _supply(
    node: Supplied, types: tuple[SqlType, ...], environment: Environment, enough: int | None
) -> PlannedSupply:
    definition = node.definition
    if definition is None:
        return PlannedSupply(node.relation)
    names = [column.name for column in definition.base.output]
    recursion = PlannedRecursion(
        definition.name,
        definition.working,
        _query(definition.base, names, types, environment),
        None if definition.step is None else _query(definition.step, names, types, environment),
        definition.distinct,
        definition.calls,
    )
    return PlannedSupply(node.relation, recursion, enough)


def maps_of(statement: BoundStatement) -> tuple[MapSchema, ...]:
    """The maps that a statement reads: those whose statistics matter."""
    match statement:
        case ChangeStatement(source=plan, query=BoundQuery() as query):
            return (*maps_of(replace(statement, query=None)), *maps_of(query))
        case BoundQuery(plan=plan) | InsertStatement(source=plan) | ChangeStatement(source=plan):
            found = {node.schema.map_id: node.schema for node in _scans(plan)}
            return tuple(found.values())
        case ExplainStatement(statement=inner):
            return maps_of(inner)
        case _:
            return ()


def _leaves(plan: Logical) -> Iterator[Logical]:
    """Also those in the plans of subqueries."""
    yield from (node for node in operators_of(plan) if not inputs_of(node))


def _scans(plan: Logical) -> Iterator[Scan]:
    """Every scan, those of the definitions of recursive CTEs included."""
    for leaf in _leaves(plan):
        if isinstance(leaf, Scan):
            yield leaf
        elif isinstance(leaf, Supplied) and leaf.definition is not None:
            yield from _scans(leaf.definition.base)
            if leaf.definition.step is not None:
                yield from _scans(leaf.definition.step)


class PlanCache:
    """Planned statements, least recently used out first, bounded in number and in memory.

    Not kept is what hardly comes a second time: DDL, SHOW, texts above ``CACHED_TEXT_MAX``, and
    rows written out in an INSERT.
    """

    def __init__(
        self, stale: Callable[[Iterable[int]], bool], size_max: int = PLAN_CACHE_SIZE_MAX
    ) -> None:
        """``stale`` says whether the statistics of one of these maps should be taken again;
        ``size_max`` is bytes, as ``_memory`` estimates them."""
        self._stale = stale
        self._size_max = size_max
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._fitting: dict[Key, Environment] = {}
        """Under which each was found to be good last."""
        self.size = 0
        """Bytes of all entries, estimated."""

    def find(self, key: Key, environment: Environment) -> Planned | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        found = entry.planned
        if self._fitting.get(key) is not environment:
            if not environment.fits(entry.environment, found):
                self._remove(key)
                return None
            self._fitting[key] = environment
        if entry.chosen and self._stale(entry.environment.versions):
            return None
        self._entries.move_to_end(key)
        return found

    def keep(self, key: Key, statement: Planned, environment: Environment) -> None:
        if not isinstance(statement, PlannedQuery | PlannedInsert | PlannedChange):
            return
        text = key[0]
        if len(text) > CACHED_TEXT_MAX or _written_out(statement):
            return
        self._remove(key)
        size, chosen = _memory(text, _source(statement)), not by_key(statement)
        self._entries[key] = entry = _Entry(statement, environment.of(statement), size, chosen)
        self.size += entry.size
        while len(self._entries) > PLAN_CACHE_ENTRIES or self.size > self._size_max:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        self._fitting.pop(key, None)
        if entry is not None:
            self.size -= entry.size

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True, slots=True)
class _Entry:
    planned: PlannedQuery | PlannedInsert | PlannedChange
    environment: Environment
    size: int
    chosen: bool
    """By statistics: it is not ``by_key``."""


def _form_of_change(found: PlannedInsert | PlannedChange, columns: Sequence[Column]) -> AnswerForm:
    types = () if found.keyed is None else found.keyed.write.parameter_types
    return AnswerForm(columns, types, route_of_write(found.keyed, found.schema))


def by_key(planned: Planned) -> bool:
    """Whether nothing is to be chosen for the plan: it reads or changes entries by key."""
    if isinstance(planned, PlannedQuery):
        return planned.point is not None
    return isinstance(planned, PlannedInsert | PlannedChange) and planned.keyed is not None


def _source(statement: PlannedQuery | PlannedInsert | PlannedChange) -> PlannedQuery:
    return statement if isinstance(statement, PlannedQuery) else statement.source


def maps_read(statement: PlannedQuery | PlannedInsert | PlannedChange) -> set[int]:
    """Those of recursive CTEs and of an answer by RETURNING included."""
    pending = [_source(statement)]
    if isinstance(statement, PlannedChange) and statement.answer is not None:
        pending.append(statement.answer)
    found: set[int] = set()
    while pending:
        query = pending.pop()
        found.update(dependency.map_id for dependency in query.plan.dependencies)
        for supply in query.supplied:
            if supply.recursion is not None:
                pending += supply.recursion.queries
    return found


def _written_out(statement: PlannedQuery | PlannedInsert | PlannedChange) -> bool:
    """Whether it stores rows that are all in its text."""
    if isinstance(statement, PlannedQuery) or (statement.keyed and statement.keyed.draws):
        return False
    source = statement.source
    return not source.parameter_types and not source.plan.dependencies


def _memory(text: str, query: PlannedQuery) -> int:
    """Bytes that a cached query takes, about."""
    return ENTRY_SIZE + len(text) + OBJECTS_PER_ENCODED_BYTE * len(query.encoded)
