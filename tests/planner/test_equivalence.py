"""Plans give the rows that the query means: random queries over random data, computed by a naive
interpreter of the algebra, and by an interpreter of the physical plan with three members.

The interpreters are slow and obvious. The physical one keeps the rows of each member apart, moves
them only in exchanges, and checks what fragments promise: where a fragment runs, pruning, and that
a row sent by hash arrives at the owner of its key.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from seeds import seeds

from remuda.datatypes.sql import BOOLEAN
from remuda.plan import logical as lg
from remuda.plan import physical as ph
from remuda.plan.codec import decode_plan, encode_plan
from remuda.plan.explain.explain import preorder
from remuda.plan.expression import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
)
from remuda.plan.logical import JoinKind, Logical
from remuda.planner.normalize import normalize

Row = dict[int, Any]
MEMBERS = (1, 2, 3)
INITIATOR = 2


# --- expressions -----------------------------------------------------------------------------


def evaluate(e: Expression | None, row: Row) -> Any:
    match e:
        case None:
            return True
        case ColumnRef(column=column):
            return row[column]
        case Literal(value=value):
            return value
        case Cast(operand=operand):
            return evaluate(operand, row)
        case InList(operand=operand, values=values):
            found = [evaluate(Call(BOOLEAN, "=", (operand, v)), row) for v in values]
            return True if True in found else None if None in found else False
        case Case(branches=branches, otherwise=otherwise):
            for condition, value in branches:
                if evaluate(condition, row) is True:
                    return evaluate(value, row)
            return evaluate(otherwise, row)
        case Call(function=function, arguments=arguments):
            return apply(function, [evaluate(a, row) for a in arguments])
    raise AssertionError(e)


def apply(function: str, values: list[Any]) -> Any:
    if function == "and":
        return False if False in values else None if None in values else True
    if function == "or":
        return True if True in values else None if None in values else False
    if function == "coalesce":
        return next((v for v in values if v is not None), None)
    if function == "is_null":
        return values[0] is None
    if function == "is_not_null":
        return values[0] is not None
    if None in values:
        return None
    if function == "nullif":
        return None if values[0] == values[1] else values[0]
    if function == "not":
        return not values[0]
    table: dict[str, Callable[[Any, Any], Any]] = {
        "=": lambda a, b: a == b,
        "<>": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "+": lambda a, b: a + b,
        "/": lambda a, b: a / b,
    }
    return table[function](*values)


# --- relational pieces shared by both interpreters ---------------------------------------------


def joined(
    kind: JoinKind, left: list[Row], right: list[Row], on: Callable[[Row], bool], sides: Any
) -> list[Row]:
    left_columns, right_columns = sides
    result: list[Row] = []
    matched_right: set[int] = set()
    for a in left:
        hits = [i for i, b in enumerate(right) if on({**a, **b})]
        matched_right.update(hits)
        if kind is JoinKind.SEMI:
            result += [a] if hits else []
        elif kind is JoinKind.ANTI:
            result += [] if hits else [a]
        else:
            result += [{**a, **right[i]} for i in hits]
            if not hits and kind in (JoinKind.LEFT, JoinKind.FULL):
                result.append({**a, **dict.fromkeys(right_columns)})
    if kind in (JoinKind.RIGHT, JoinKind.FULL):
        result += [
            {**dict.fromkeys(left_columns), **b}
            for i, b in enumerate(right)
            if i not in matched_right
        ]
    return result


def aggregated(calls: Sequence[AggregateCall], rows: list[Row]) -> list[Any]:
    results = []
    for call in calls:
        values = [1 if call.argument is None else evaluate(call.argument, row) for row in rows]
        values = [v for v in values if v is not None]
        if call.distinct:
            values = list(dict.fromkeys(values))
        results.append(combine(call.function, values))
    return results


def combine(function: str, values: list[Any]) -> Any:
    match function:
        case "count":
            return len(values)
        case "sum":
            return sum(values) if values else None
        case "avg":
            return sum(values) / len(values) if values else None
        case "min":
            return min(values, default=None)
        case _:
            return max(values, default=None)


def grouped(rows: list[Row], group: Sequence[int]) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {} if group else {(): []}
    for row in rows:
        groups.setdefault(tuple(row[c] for c in group), []).append(row)
    return groups


def order(rows: list[Row], keys: Sequence[Any]) -> list[Row]:
    for key in reversed(keys):
        nulls = [r for r in rows if r[key.column] is None]
        rest = sorted(
            (r for r in rows if r[key.column] is not None),
            key=lambda r: r[key.column],
            reverse=key.descending,
        )
        rows = nulls + rest if key.nulls_first else rest + nulls
    return rows


def pick(rows: list[Row], output: Sequence[lg.OutputColumn]) -> list[Row]:
    return [{c.id: row[c.id] for c in output} for row in rows]


def cut(rows: list[Row], limit: Expression | None, offset: Expression | None) -> list[Row]:
    start = evaluate(offset, {}) if offset is not None else 0
    return rows[start:] if limit is None else rows[start : start + evaluate(limit, {})]


# --- the meaning of the algebra ------------------------------------------------------------------

Data = dict[str, list[tuple[Any, ...]]]


def meaning(node: Logical, data: Data) -> list[Row]:
    inputs = [meaning(child, data) for child in lg.inputs_of(node)]
    match node:
        case lg.Scan():
            return [
                {c.id: row[p] for c, p in zip(node.output, node.positions, strict=True)}
                for row in data[node.schema.name]
            ]
        case lg.Values(rows=rows):
            return [{c.id: v for c, v in zip(node.output, row, strict=True)} for row in rows]
        case lg.Filter(condition=condition):
            return [row for row in inputs[0] if evaluate(condition, row) is True]
        case lg.Project(expressions=expressions):
            return [
                {c.id: evaluate(e, row) for c, e in zip(node.output, expressions, strict=True)}
                for row in inputs[0]
            ]
        case lg.Join(kind=kind, left=left, right=right, condition=condition):
            sides = ([c.id for c in left.output], [c.id for c in right.output])
            return joined(kind, *inputs, lambda row: evaluate(condition, row) is True, sides)
        case lg.Aggregate(group=group, calls=calls):
            ids = [c.id for c in node.output]
            return [
                dict(zip(ids, [*key, *aggregated(calls, rows)], strict=True))
                for key, rows in grouped(inputs[0], group).items()
            ]
        case lg.Sort(keys=keys, limit=limit, offset=offset):
            return cut(order(inputs[0], keys), limit, offset)
        case lg.Union():
            ids = [c.id for c in node.output]
            return [
                dict(zip(ids, [row[c.id] for c in child.output], strict=True))
                for child, rows in zip(node.inputs, inputs, strict=True)
                for row in rows
            ]
    raise AssertionError(node)


# --- the execution of plans ----------------------------------------------------------------------


def owner(key: tuple[Any, ...]) -> int:
    return MEMBERS[hash(("partition", *key)) % len(MEMBERS)]


class Grid:
    def __init__(self, plan: ph.PhysicalPlan, schemas: dict[str, Any], data: Data, alone: bool):
        self.plan = plan
        self.schemas = schemas
        self.data = data
        self.members = (INITIATOR,) if alone else MEMBERS
        self.edges: dict[int, dict[int, list[list[Row]]]] = {}
        self.spools: dict[tuple[int, int], list[list[Any]]] = {}

    def run(self) -> list[Row]:
        for fragment in reversed(self.in_order()):
            sites = self.sites(fragment)
            match fragment.root:
                case ph.Send() as send:
                    receivers = self.sites(self.plan.fragments[send.receiver_fragment])
                    streams = self.edges.setdefault(send.edge, {m: [] for m in receivers})
                    for member in sites:
                        self.send(send, self.rows(send.input, member), streams)
                case ph.Store(input=child, spool=spool, output=output):
                    assert fragment.pruning is None
                    ids = [c.id for c in output]
                    for member in sites:
                        rows = [[row[c] for c in ids] for row in self.rows(child, member)]
                        self.spools[spool, member] = rows
        root = self.plan.fragments[0].root
        assert isinstance(root, ph.Root)
        assert [c.id for c in root.input.output] == [c.id for c in root.output]
        return self.rows(root.input, INITIATOR)

    def in_order(self) -> list[ph.Fragment]:
        """Readers before what they read."""
        stores = {f.root.spool: f for f in self.plan.fragments if isinstance(f.root, ph.Store)}
        found: dict[int, ph.Fragment] = {}

        def add(fragment: ph.Fragment) -> None:
            found.pop(fragment.id, None)
            found[fragment.id] = fragment
            for node in preorder(fragment.root):
                if isinstance(node, ph.Receive):
                    add(self.plan.fragments[node.sender_fragment])
                elif isinstance(node, ph.SpoolScan):
                    add(stores[node.spool])

        add(self.plan.fragments[0])
        assert len(found) == len(self.plan.fragments), "nothing is computed in vain"
        return list(found.values())[1:]

    def sites(self, fragment: ph.Fragment) -> tuple[int, ...]:
        if fragment.site is ph.Site.INITIATOR:
            return (INITIATOR,)
        if fragment.pruning is None:
            return self.members
        keys = [tuple(evaluate(e, {}) for e in key) for key in fragment.pruning.keys]
        return tuple({owner(key) for key in keys})

    def send(self, send: ph.Send, rows: list[Row], streams: dict[int, list[list[Row]]]) -> None:
        parts: dict[int, list[Row]] = {m: [] for m in streams}
        for row in rows:
            if send.kind is ph.ExchangeKind.UNICAST:
                parts[owner(tuple(row[c] for c in send.hash_keys))].append(row)
            else:
                for part in parts.values():
                    part.append(row)
        assert send.kind in (ph.ExchangeKind.UNICAST, ph.ExchangeKind.BROADCAST) or len(parts) == 1
        for member, part in parts.items():
            streams[member].append(part)

    def rows(self, node: ph.Physical, member: int) -> list[Row]:
        rows = self.execute(node, member)
        for row in rows:
            assert set(row) >= {c.id for c in node.output}, type(node).__name__
        return pick(rows, node.output)

    def execute(self, node: ph.Physical, member: int) -> list[Row]:
        if isinstance(node, ph.TableScan | ph.KeyLookup):
            return self.access(node, member)
        inputs = [self.rows(child, member) for child in ph.inputs_of(node)]
        match node:
            case ph.ValuesScan(rows=rows):
                return [{c.id: v for c, v in zip(node.output, r, strict=True)} for r in rows]
            case ph.FilterRows(condition=condition):
                return [row for row in inputs[0] if evaluate(condition, row) is True]
            case ph.ProjectRows(expressions=expressions):
                return [
                    {c.id: evaluate(e, row) for c, e in zip(node.output, expressions, strict=True)}
                    for row in inputs[0]
                ]
            case ph.HashJoin() | ph.NestedLoopJoin():
                return self.join(node, inputs)
            case ph.LookupJoin():
                return self.lookup_join(node, inputs[0], member)
            case ph.HashAggregate():
                return self.aggregate(node, inputs[0])
            case ph.SortRows(keys=keys, limit=limit):
                return cut(order(inputs[0], keys), limit, None)
            case ph.LimitRows(limit=limit, offset=offset):
                return cut(inputs[0], limit, offset)
            case ph.UnionRows():
                ids = [c.id for c in node.output]
                for child in node.inputs:
                    assert len(child.output) == len(ids)
                return [
                    dict(zip(ids, [row[c.id] for c in child.output], strict=True))
                    for child, rows in zip(node.inputs, inputs, strict=True)
                    for row in rows
                ]
            case ph.SpoolScan(spool=spool, positions=positions):
                stored = self.spools[spool, member]
                pairs = list(zip(node.output, positions, strict=True))
                return [{c.id: row[p] for c, p in pairs} for row in stored]
            case ph.Receive(edge=edge, collation=collation):
                rows = [row for part in self.edges[edge][member] for row in part]
                return order(rows, collation)
        raise AssertionError(node)

    def access(self, node: ph.TableScan | ph.KeyLookup, member: int) -> list[Row]:
        schema = self.schemas[node.map_name]
        own = not schema.replicated or (isinstance(node, ph.TableScan) and node.partitioned_replica)
        result = []
        keys = None
        if isinstance(node, ph.KeyLookup):
            keys = {tuple(evaluate(e, {}) for e in key) for key in node.keys}
        for row in self.data[node.map_name]:
            place = owner(tuple(row[p] for p in schema.partition_positions))
            if own and len(self.members) > 1 and place != member:
                continue
            if keys is not None and tuple(row[p] for p in schema.key_positions) not in keys:
                continue
            seen = {column: row[p] for column, p in node.filter_columns}
            if evaluate(node.filter, seen) is True:
                pairs = zip(node.output, node.positions, strict=True)
                result.append({c.id: row[p] for c, p in pairs})
        return result

    def join(self, node: ph.HashJoin | ph.NestedLoopJoin, inputs: list[list[Row]]) -> list[Row]:
        sides = ([c.id for c in node.left.output], [c.id for c in node.right.output])
        if isinstance(node, ph.NestedLoopJoin):
            condition = node.condition
            return joined(node.kind, *inputs, lambda r: evaluate(condition, r) is True, sides)
        pairs = list(zip(node.left_keys, node.right_keys, strict=True))
        assert all(a in sides[0] and b in sides[1] for a, b in pairs)

        def on(row: Row) -> bool:
            same = all(row[a] is not None and row[a] == row[b] for a, b in pairs)
            return same and evaluate(node.residual, row) is True

        return joined(node.kind, *inputs, on, sides)

    def lookup_join(self, node: ph.LookupJoin, rows: list[Row], member: int) -> list[Row]:
        """Every member finds the matches that it has; all of them, where the left rows were sent to
        where their matches are."""
        schema = self.schemas[node.map_name]
        names = [column.name for column in schema.columns]
        inner = [
            {c.id: row[p] for c, p in zip(node.inner, node.positions, strict=True)}
            | {-1 - i: row[names.index(name)] for i, name in enumerate(node.inner_keys)}
            for row in self.data[node.map_name]
            if schema.replicated
            or len(self.members) == 1
            or owner(tuple(row[p] for p in schema.partition_positions)) == member
        ]

        def on(row: Row) -> bool:
            pairs = [(row[key], row[-1 - i]) for i, key in enumerate(node.outer_keys)]
            same = all(a is not None and a == b for a, b in pairs)
            return same and evaluate(node.residual, row) is True

        sides = ([c.id for c in node.input.output], [c.id for c in node.inner])
        return joined(node.kind, rows, inner, on, sides)

    def aggregate(self, node: ph.HashAggregate, rows: list[Row]) -> list[Row]:
        result = []
        names = [c.id for c in node.output]
        if isinstance(node, ph.StreamingAggregate):
            keys = [tuple(row[c] for c in node.group) for row in rows]
            runs = [key for key, before in zip(keys, [None, *keys], strict=False) if key != before]
            assert len(runs) == len(set(keys)), "a group comes in pieces"
        for key, members in grouped(rows, node.group).items():
            if node.phase is ph.AggregatePhase.FINAL:
                values = []
                for call, (state,) in zip(node.calls, node.states, strict=True):
                    states = [r[state] for r in members if r[state] is not None]
                    function = "sum" if call.function == "count" else call.function
                    value = combine(function, states)
                    values.append(value or 0 if call.function == "count" else value)
            else:
                assert node.phase is ph.AggregatePhase.SINGLE or not any(
                    call.distinct for call in node.calls
                )
                values = aggregated(node.calls, members)
            result.append(dict(zip(names, [*key, *values], strict=True)))
        return result


# --- random queries ------------------------------------------------------------------------------


class Maker:
    """Random queries over four small maps with NULLs and few distinct values."""

    def __init__(self, plans: Any, seed: int) -> None:
        self.plans = plans
        self.random = random.Random(seed)
        self.count = 0
        rows = self.random.choice([None, 10, 1e3, 1e6])
        big = self.random.choice([None, 10, 1e3, 1e7])
        plans.map("a", "k int, x int, y int", "k", rows=rows)
        plans.map("b", "k int, n int, x int", "k n", partition_by="k", rows=big)
        plans.map("r", "k int, x int, y int", "k", replicated=True, rows=rows)
        plans.map("s", "k int, x int", "k", rows=big)
        self.data: Data = {}
        for name, schema in plans.schemas.items():
            keys = {
                tuple(self.random.randrange(6) for _ in schema.key)
                for _ in range(self.random.choice([0, 6, 12, 20]))
            }
            self.data[name] = [
                (*key, *(self.value() for _ in range(len(schema.columns) - len(key))))
                for key in sorted(keys)
            ]

    def value(self) -> int | None:
        return self.random.choice([None, 0, 1, 2, 3, 4])

    def relation(self, depth: int) -> Logical:
        roll = self.random.random()
        if depth == 0 or roll < 0.25:
            name = self.random.choice(list(self.plans.schemas))
            self.count += 1
            node: Logical = self.plans.scan(name, f"{name}{self.count}")
        elif roll < 0.7:
            node = self.joined(depth)
        elif roll < 0.8:
            node = self.aggregated(self.relation(depth - 1))
        elif roll < 0.88:
            node = self.projected(self.relation(depth - 1))
        elif roll < 0.94:
            left, right = self.relation(depth - 1), self.relation(depth - 1)
            width = min(len(left.output), len(right.output))
            node = self.plans.union(self.narrowed(left, width), self.narrowed(right, width))
        else:
            below = self.relation(depth - 1)
            keys = " ".join(self.name(c) for c in below.output)
            node = self.plans.sort(below, keys, limit=self.random.randrange(6))
        if self.random.random() < 0.35:
            node = self.plans.where(node, self.condition(node.output))
        return node

    def name(self, column: Any) -> str:
        key = f"#{column.id}"
        self.plans.columns[key] = column
        return key

    def column(self, output: Sequence[Any]) -> ColumnRef:
        c = self.random.choice(output)
        return ColumnRef(c.type, c.id, c.name)

    def joined(self, depth: int) -> Logical:
        left, right = self.relation(depth - 1), self.relation(depth - 1)
        kind = self.random.choice(["inner"] * 4 + ["left", "left", "right", "full", "semi", "anti"])
        parts: list[Expression] = []
        parts += [
            self.plans.eq(self.column(left.output), self.column(right.output))
            for _ in range(self.random.choice([0, 1, 1, 1, 2]))
        ]
        if self.random.random() < 0.3:
            parts.append(self.condition((*left.output, *right.output)))
        return self.plans.join(left, right, *parts, kind=kind)

    def aggregated(self, node: Logical) -> Logical:
        keys = self.random.sample(node.output, k=min(len(node.output), self.random.randrange(3)))
        calls: dict[str, Any] = {}
        for i in range(self.random.randrange(3) if keys else 1):
            function = self.random.choice(["count", "sum", "min", "max", "avg"])
            distinct = ("distinct",) if self.random.random() < 0.3 else ()
            calls[f"g{self.count}_{i}"] = (function, self.column(node.output), *distinct)
        self.count += 1
        return self.plans.aggregate(node, " ".join(self.name(k) for k in keys), **calls)

    def projected(self, node: Logical) -> Logical:
        self.count += 1
        expressions: dict[str, Expression] = {}
        for i in range(self.random.randrange(1, 4)):
            value: Expression = self.column(node.output)
            if self.random.random() < 0.4:
                value = Call(value.type, "+", (value, Literal(value.type, 1)))
            expressions[f"p{self.count}_{i}"] = value
        return self.plans.project(node, **expressions)

    def narrowed(self, node: Logical, width: int) -> Logical:
        self.count += 1
        columns = self.random.sample(node.output, k=width)
        return self.plans.project(
            node,
            **{
                f"n{self.count}_{i}": ColumnRef(c.type, c.id, c.name) for i, c in enumerate(columns)
            },
        )

    def condition(self, output: Sequence[Any], depth: int = 2) -> Expression:
        roll = self.random.random()
        if depth and roll < 0.3:
            function = self.random.choice(["and", "or", "and"])
            parts = (self.condition(output, depth - 1), self.condition(output, depth - 1))
            return Call(BOOLEAN, function, parts)
        column = self.column(output)
        constant = Literal(column.type, self.random.randrange(5))
        if roll < 0.4:
            return Call(BOOLEAN, self.random.choice(["is_null", "is_not_null"]), (column,))
        if roll < 0.5:
            return InList(BOOLEAN, column, (constant, Literal(column.type, 1)))
        if roll < 0.55 and depth:
            return Call(BOOLEAN, "not", (self.condition(output, depth - 1),))
        if roll < 0.6:
            default = Call(column.type, "coalesce", (column, constant))
            return Call(BOOLEAN, "=", (default, self.column(output)))
        other = self.column(output) if self.random.random() < 0.3 else constant
        function = self.random.choice(["=", "=", "=", "<", ">=", "<>"])
        return Call(BOOLEAN, function, (column, other))


def _rows(rows: list[Row], output: Sequence[Any]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[c.id] for c in output) for row in rows)


@pytest.mark.parametrize("seed", seeds(100, 400))
def test_plans_mean_what_queries_mean(plans: Any, seed: int) -> None:
    maker = Maker(plans, seed)
    query = maker.relation(maker.random.randrange(1, 5))
    expected = _rows(meaning(query, maker.data), query.output)
    strict = plans.rewriting()
    strict.strict = True
    assert _rows(meaning(normalize(query, strict), maker.data), query.output) == expected
    for members in (3, 1):
        plan = decode_plan(encode_plan(plans.plan(query, members)))
        actual = Grid(plan, plans.schemas, maker.data, alone=members == 1).run()
        assert _rows(actual, plan.output) == expected
        assert members > 1 or len(plan.fragments) == 1


@pytest.mark.parametrize("seed", seeds(50, 200))
def test_perturbed_plans_mean_the_same(plans: Any, seed: int) -> None:
    """Whatever plan is picked; and a sub-plan that is there twice may be computed once."""
    maker = Maker(plans, seed)
    depth = maker.random.randrange(1, 4)
    maker.random.seed(seed)
    query = maker.relation(depth)
    if seed % 2:
        maker.random.seed(seed)
        maker.count = 0
        query = plans.union(query, maker.relation(depth))
    expected = _rows(meaning(query, maker.data), query.output)
    chance = random.Random(seed)
    for members in (3, 3, 3, 1):
        plan = plans.plan(query, members, lambda cost: cost * chance.lognormvariate(0, 2))
        actual = Grid(plan, plans.schemas, maker.data, alone=members == 1).run()
        assert _rows(actual, plan.output) == expected
