"""A small language for logical plans, so that planner tests need no parser."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from remuda.catalog.statistics import ColumnStatistics, FixedStatistics, MapStatistics
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, VARCHAR, SqlType, decimal
from remuda.plan.expression import (
    AggregateCall,
    Call,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    SortKey,
)
from remuda.plan.logical import (
    Aggregate,
    Filter,
    JoinKind,
    Logical,
    OutputColumn,
    Project,
    Scan,
    Sort,
    Union,
    Values,
    Window,
)
from remuda.plan.physical import PhysicalPlan
from remuda.plan.windows import WindowCall
from remuda.planner.algebra import make_filter, make_join, make_window
from remuda.planner.normalize import normalize
from remuda.planner.planner import PlanningContext, plan_query
from remuda.planner.rules.rule import Rewriting

TYPES = {
    "int": INTEGER,
    "bigint": BIGINT,
    "text": VARCHAR,
    "double": DOUBLE,
    "date": DATE,
    "bool": BOOLEAN,
    "money": decimal(15, 2),
    "price": decimal(7, 2),
}


@dataclass
class Plans:
    """``plans.map(...)`` declares, ``plans.scan(...)`` reads, ``plans.c("t.x")`` names a column."""

    schemas: dict[str, MapSchema] = field(default_factory=dict)
    statistics: dict[str, MapStatistics] = field(default_factory=dict)
    columns: dict[str, OutputColumn] = field(default_factory=dict)
    next_id: int = 0
    fold: object = None

    def map(
        self,
        name: str,
        columns: str,
        key: str,
        *,
        partition_by: str | None = None,
        replicated: bool = False,
        rows: float | None = None,
        **distinct: float | ColumnStatistics,
    ) -> MapSchema:
        parsed = tuple(
            Column(part.split()[0], TYPES[part.split()[1]], part.split()[0] not in key.split())
            for part in columns.split(",")
        )
        keys = tuple(key.split())
        schema = MapSchema(
            name,
            parsed,
            keys,
            tuple(partition_by.split()) if partition_by else keys,
            replicated,
            map_id=len(self.schemas) + 1,
        )
        self.schemas[name] = schema
        if rows is not None:
            known = {
                column: value
                if isinstance(value, ColumnStatistics)
                else ColumnStatistics(distinct=value)
                for column, value in distinct.items()
            }
            self.statistics[name] = MapStatistics(rows, known)
        return schema

    def column(self, name: str, type_: SqlType) -> OutputColumn:
        column = OutputColumn(self.next_id, name.rsplit(".", maxsplit=1)[-1], type_)
        self.next_id += 1
        self.columns[name] = column
        return column

    def scan(self, name: str, alias: str | None = None) -> Scan:
        schema = self.schemas[name]
        alias = alias or name
        output = tuple(self.column(f"{alias}.{c.name}", c.type) for c in schema.columns)
        return Scan(output, schema, alias, tuple(range(len(schema.columns))))

    # --- expressions ---

    def c(self, name: str) -> ColumnRef:
        column = self.columns[name]
        return ColumnRef(column.type, column.id, column.name)

    def of(self, value: object, type_: SqlType | None = None) -> Expression:
        if isinstance(value, Expression):
            return value
        if isinstance(value, str) and value in self.columns:
            return self.c(value)
        return Literal(type_ or _type_of(value), value)  # type: ignore[arg-type]

    def call(self, function: str, *arguments: object, type: SqlType = BOOLEAN) -> Call:  # noqa: A002
        known = [self.of(a) for a in arguments]
        types = [k.type for k in known if isinstance(k, ColumnRef)]
        kind = types[0] if types else None
        parts = tuple(
            Literal(kind, k.value) if isinstance(k, Literal) and kind and k.value is not None else k
            for k in known
        )
        return Call(type, function, parts)

    def eq(self, left: object, right: object) -> Call:
        return self.call("=", left, right)

    def all(self, *parts: Expression) -> Expression:
        return parts[0] if len(parts) == 1 else Call(BOOLEAN, "and", parts)

    def any(self, *parts: Expression) -> Expression:
        return Call(BOOLEAN, "or", parts)

    def isin(self, column: str, *values: object) -> InList:
        ref = self.c(column)
        return InList(BOOLEAN, ref, tuple(self.of(v, ref.type) for v in values))

    def parameter(self, index: int, type_: SqlType) -> Parameter:
        return Parameter(type_, index)

    def cast(self, value: object, type_: SqlType) -> Cast:
        return Cast(type_, self.of(value))

    # --- operators ---

    def where(self, node: Logical, *parts: Expression) -> Filter:
        return make_filter(node, self.all(*parts))

    def join(
        self, left: Logical, right: Logical, *parts: Expression, kind: str = "inner"
    ) -> Logical:
        return make_join(JoinKind(kind), left, right, self.all(*parts) if parts else None)

    def project(self, node: Logical, **expressions: object) -> Project:
        known = {name: self.of(value) for name, value in expressions.items()}
        output = tuple(self.column(name, e.type) for name, e in known.items())
        return Project(output, node, tuple(known.values()))

    def aggregate(self, node: Logical, group: str, **calls: tuple[object, ...]) -> Aggregate:
        """``calls``: name=(function, argument or None[, "distinct"])."""
        keys = [self.columns[name] for name in group.split()]
        made = []
        output = list(keys)
        for name, (function, argument, *rest) in calls.items():
            operand = None if argument is None else self.of(argument)
            type_ = BIGINT if operand is None or function == "count" else _result(function, operand)
            made.append(AggregateCall(str(function), operand, type_, "distinct" in rest))
            output.append(self.column(name, type_))
        return Aggregate(tuple(output), node, tuple(k.id for k in keys), tuple(made))

    def window(
        self, node: Logical, partition: str, order: str, **calls: tuple[object, ...]
    ) -> Window:
        """``calls``: name=(function, argument or None)."""
        made, results = [], []
        for name, (function, argument) in calls.items():
            operand = None if argument is None else self.of(argument)
            counted = operand is None or function == "count"
            type_ = BIGINT if counted else _result(str(function), operand)
            made.append(WindowCall(str(function), () if operand is None else (operand,), type_))
            results.append(self.column(name, type_))
        keys = tuple(self.columns[name].id for name in partition.split())
        sort = tuple(SortKey(self.columns[name].id) for name in order.split())
        return make_window(node, keys, sort, tuple(made), tuple(results))

    def sort(
        self, node: Logical, keys: str = "", limit: object = None, offset: object = None
    ) -> Sort:
        """``keys``: names, a leading ``-`` for descending."""
        parsed = tuple(
            SortKey(self.columns[key.lstrip("-")].id, key.startswith("-"), key.startswith("-"))
            for key in keys.split()
        )
        return Sort(
            node.output,
            node,
            parsed,
            None if limit is None else self.of(limit, BIGINT),
            None if offset is None else self.of(offset, BIGINT),
        )

    def union(self, *inputs: Logical) -> Union:
        output = tuple(self.column(f"u{self.next_id}", c.type) for c in inputs[0].output)
        return Union(output, inputs)

    def values(self, *rows: tuple[int, ...]) -> Values:
        output = tuple(self.column(f"v{self.next_id}", INTEGER) for _ in rows[0])
        return Values(output, rows)

    # --- results ---

    def context(self, members: int = 3, perturb: object = None) -> PlanningContext:
        return PlanningContext(
            FixedStatistics(self.statistics),
            members,
            fold=self.fold,  # type: ignore[arg-type]
            perturb=perturb,  # type: ignore[arg-type]
        )

    def rewriting(self, members: int = 3) -> Rewriting:
        return Rewriting(self.context(members), 10_000)

    def normalize(self, node: Logical) -> tuple[Logical, set[str]]:
        rewriting = self.rewriting()
        return normalize(node, rewriting), set(rewriting.fired)

    def plan(self, node: Logical, members: int = 3, perturb: object = None) -> PhysicalPlan:
        return plan_query(node, self.context(members, perturb))


def _type_of(value: object) -> SqlType:
    match value:
        case bool():
            return BOOLEAN
        case int():
            return INTEGER
        case float():
            return DOUBLE
        case _:
            return VARCHAR


def _result(function: str, operand: Expression) -> SqlType:
    if function == "sum":
        return decimal(38, operand.type.scale or 0) if operand.type.scale else BIGINT
    if function == "avg":
        return DOUBLE if operand.type.is_float else decimal(38, 16)
    return operand.type


@pytest.fixture
def plans() -> Plans:
    return Plans()
