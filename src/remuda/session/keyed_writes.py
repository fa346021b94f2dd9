"""Statements that change the one entry whose key they name, so that the owner of the key carries
them out as it carries out ``map.compute`` (decision 0069).

``of_change`` and ``of_insert`` are the one place that decides. They look at the statement alone;
``KeyedStatements.takes`` (``member.statements.write_statements``) adds what depends on its run.
Every other statement takes the general way: a query, then a write that is staged and committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import BIGINT, BOOLEAN, SqlType
from remuda.plan.codec import encode
from remuda.plan.expression import (
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    Parameter,
    Subquery,
    conjunction,
    transform,
    walk,
)
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.keyed_write import Draw, KeyedWrite, Meets
from remuda.plan.logical import (
    Filter,
    Join,
    JoinKind,
    Logical,
    Project,
    Scan,
    Supplied,
    Values,
)
from remuda.plan.physical import PhysicalPlan
from remuda.plan.sequence_calls import CURRVAL, LASTVAL, NEXTVAL
from remuda.planner.point import PointRead, point_read
from remuda.session.parameters import with_clock_parameters
from remuda.sql.scope.statements import ChangeStatement, InsertStatement

_DRAWN: Final = frozenset({NEXTVAL, CURRVAL, LASTVAL})
"""Calls of sequences that change nothing but the next number."""


@dataclass(frozen=True, slots=True)
class KeyedPlan:
    """``encoded`` is ``write`` as the owner gets it. The values of its parameters are the user's,
    then those named by ``clock_parameters``, then those of ``draws``."""

    write: KeyedWrite
    encoded: bytes
    clock_parameters: tuple[str, ...]
    draws: tuple[Draw, ...] = ()

    @property
    def given(self) -> int:
        """How many parameters are the user's."""
        return len(self.write.parameter_types) - len(self.clock_parameters) - len(self.draws)


def of_change(
    statement: ChangeStatement, source: PhysicalPlan, clock_parameters: tuple[str, ...]
) -> KeyedPlan | None:
    """``source`` is the plan of the rows that change, with these clock parameters. None: the
    statement takes the general way."""
    schema = statement.schema
    if statement.query is not None or statement.chooses or not _fits(schema, statement.writes):
        return None
    if statement.verb in ("UPDATE", "DELETE"):
        if statement.writes == statement.removes:  # an UPDATE of the key moves the entry
            return None
        point = point_read(source)
        found = None if point is None else _of_point(schema, point, statement)
        return _planned(found, statement.parameter_types, clock_parameters)
    return _of_rows(
        statement.source,
        schema,
        statement.parameter_types,
        refuses=statement.insert_only,
        returning=len(statement.returning),
    )


def of_insert(statement: InsertStatement) -> KeyedPlan | None:
    """None: the statement takes the general way."""
    if not _fits(statement.schema, writes=True):
        return None
    types, refuses = statement.parameter_types, statement.mode == "insert"
    return _of_rows(statement.source, statement.schema, types, refuses=refuses, returning=0)


def _fits(schema: MapSchema, writes: bool) -> bool:
    """Every member has a copy of a replicated map, and values of unique indexes concern the owners
    of other keys. (A row that is removed gives its values free.)"""
    return not (schema.replicated or schema.temporary or (writes and schema.uniques))


def _planned(
    write: KeyedWrite | None,
    types: tuple[SqlType, ...],
    clock_parameters: tuple[str, ...],
    draws: Sequence[Draw] = (),
) -> KeyedPlan | None:
    """None as well if the parts of ``write`` do not have one value each, wherever and however often
    they are computed."""
    if write is None:
        return None
    parts = [*write.key, *write.row, *write.returning]
    parts += [] if write.filter is None else [write.filter]
    if any(is_volatile(part) for part in parts):
        return None
    parts += [each.expression for each in draws if each.expression is not None]
    inner = [each for part in parts for each in walk(part)]
    if any(isinstance(each, Subquery) for each in inner):
        return None
    moments = {each.index: each.type for each in inner if isinstance(each, Parameter)}
    count = len(types) + len(clock_parameters)
    more = tuple(moments.get(index, BOOLEAN) for index in range(len(types), count))
    drawn = tuple([each.type for each in draws])
    write = replace(write, parameter_types=types + more + drawn)
    return KeyedPlan(write, encode(write), clock_parameters, tuple(draws))


# --- UPDATE and DELETE ---------------------------------------------------------------------------


def _of_point(schema: MapSchema, point: PointRead, statement: ChangeStatement) -> KeyedWrite | None:
    """``point`` reads the row to write, or the key of the row to remove, and RETURNING."""
    if point.by_array or len(point.keys) != 1 or point.map_id != schema.map_id:
        return None
    width = len(schema.columns) if statement.writes else len(schema.key)
    old = {position: column for column, position in point.columns}
    row = list(point.expressions[:width]) if statement.writes else []
    columns = dict(point.columns)
    for place in schema.key_positions if row else ():  # an entry keeps its key as it is stored
        column = old.setdefault(place, -1 - place)
        columns[column] = place
        row[place] = ColumnRef(row[place].type, column, schema.columns[place].name)
    return KeyedWrite(
        schema.name,
        schema.map_id,
        schema.version,
        Meets.EXISTING,
        False,
        point.keys[0],
        point.filter,
        tuple(columns.items()),
        tuple(row),
        point.expressions[width:],
        (),
    )


# --- INSERT and upsert ---------------------------------------------------------------------------


@dataclass
class _Row:
    """The one row of a plan: its columns as expressions over parameters and, if ``join`` looks for
    the entry with its key, over the ``columns`` of that entry."""

    values: Mapping[ColumnId, Expression]
    given: tuple[Expression, ...] = ()
    """The row before the join."""
    join: JoinKind | None = None
    columns: tuple[tuple[ColumnId, int], ...] = ()
    filters: list[Expression] = field(default_factory=list)


def _of_rows(
    source: Logical,
    schema: MapSchema,
    types: tuple[SqlType, ...],
    *,
    refuses: bool,
    returning: int,
) -> KeyedPlan | None:
    if schema.has_row_ids:  # a row gets its key where it is stored
        return None
    source, clock_parameters = with_clock_parameters(source, len(types))
    draws = _Draws(len(types) + len(clock_parameters))
    found = _row_of(source, schema, draws)
    if found is None:
        return None
    outputs = [found.values[column.id] for column in source.output]
    width = len(schema.columns)
    given = outputs if found.join is None else found.given
    if found.join is None:
        meets = Meets.ABSENT if refuses else Meets.EITHER
    else:
        meets = Meets.EITHER if found.join is JoinKind.LEFT else Meets.ABSENT
    write = KeyedWrite(
        schema.name,
        schema.map_id,
        schema.version,
        meets,
        refuses and found.join is None,
        tuple([given[place] for place in schema.key_positions]),
        conjunction(tuple(found.filters)),
        found.columns,
        tuple(outputs[:width]),
        tuple(outputs[width : width + returning]),
        (),
    )
    return _planned(write, types, clock_parameters, draws.made)


class _Draws:
    """The values that the initiator draws; the first one is the parameter number ``first``."""

    def __init__(self, first: int) -> None:
        self._first = first
        self.made: list[Draw] = []

    def add(self, draw: Draw) -> Parameter:
        self.made.append(draw)
        return Parameter(draw.type, self._first + len(self.made) - 1)

    def of(self, expression: Expression, row: _Row) -> Expression:
        """A column of ``row``, drawn if it is volatile. One of the entry that is there, or of a row
        that was chosen by a condition, stays as it is, and has no short way."""
        if not is_volatile(expression) or row.join is not None or row.filters:
            return expression
        return self.add(Draw(expression.type, expression))

    def numbered(self, plan: Supplied, schema: MapSchema) -> _Row | None:
        """A row with the results of calls of sequences."""
        definition = plan.definition
        if definition is None or definition.step is not None or not definition.calls:
            return None
        found = _row_of(definition.base, schema, self)
        if found is None or found.join is not None or found.filters:
            return None
        cells = [found.values[column.id] for column in definition.base.output]
        for call in definition.calls:
            if call.function not in _DRAWN or call.name is not None:
                return None
            guard = None if call.guard is None else cells[call.guard]
            cells.append(self.add(Draw(BIGINT, guard, call)))
        places = zip(plan.output, plan.positions, strict=True)
        return replace(found, values={column.id: cells[place] for column, place in places})


def _row_of(plan: Logical, schema: MapSchema, draws: _Draws) -> _Row | None:
    """None for a plan of several rows, or of other operators."""
    match plan:
        case Values(output=output, rows=(row,)):
            return _Row(
                {
                    column.id: Literal(column.type, value)
                    for column, value in zip(output, row, strict=True)
                }
            )
        case Supplied() as supplied:
            return draws.numbered(supplied, schema)
        case Project(input=inner, expressions=expressions):
            found = _row_of(inner, schema, draws)
            if found is None:
                return None
            made = [draws.of(_over(each, found.values), found) for each in expressions]
            values = {c.id: value for c, value in zip(plan.output, made, strict=True)}
            return replace(found, values=values)
        case Filter(input=inner, condition=condition):
            found = _row_of(inner, schema, draws)
            if found is None:
                return None
            found.filters.append(_over(condition, found.values))
            return found
        case Join(kind=JoinKind.LEFT | JoinKind.ANTI as kind, left=left, right=Scan() as scan):
            # The binder joins the row with the map that it goes into, by its arbiter: the key,
            # as there are no unique indexes here.
            found = _row_of(left, schema, draws)
            if found is None or found.join is not None or found.filters or scan.schema != schema:
                return None
            given = tuple([found.values[column.id] for column in left.output])
            ids = zip(scan.output, scan.positions, strict=True)
            columns = tuple([(column.id, position) for column, position in ids])
            old = {c.id: ColumnRef(c.type, c.id, c.name) for c in scan.output}
            return _Row({**found.values, **old}, given, kind, columns)
        case _:
            return None


def _over(expression: Expression, values: Mapping[ColumnId, Expression]) -> Expression:
    def rewrite(part: Expression) -> Expression:
        return values.get(part.column, part) if isinstance(part, ColumnRef) else part

    return transform(expression, rewrite)
