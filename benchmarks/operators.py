"""TPC-H 1, 3 and 6 through hand-built physical plans in one thread, against DuckDB with one thread.

``python benchmarks/operators.py [-v]``, at scale 1. Queries are those of the TPC-H specification
with its validation parameters. Both sides answer from memory; results are compared before times are
taken.
"""

# ruff: noqa: E501 - plans read best on long lines
from __future__ import annotations

import datetime
import statistics
import sys
import time
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import tpc_data
from remuda.datatypes.arrow import from_arrow_type, to_engine
from remuda.datatypes.sql import BIGINT, BOOLEAN, INTEGER, VARCHAR, SqlType, decimal
from remuda.execution.build import build_fragments
from remuda.execution.context import FragmentContext
from remuda.execution.instances import Sites
from remuda.execution.root_sink import RootSink
from remuda.plan.expression import AggregateCall, Call, ColumnRef, Expression, Literal, SortKey
from remuda.plan.logical import JoinKind, OutputColumn
from remuda.plan.physical import (
    SINGLETON,
    AggregatePhase,
    Fragment,
    HashAggregate,
    HashJoin,
    Physical,
    PhysicalPlan,
    ProjectRows,
    Root,
    Site,
    SortRows,
    TableScan,
    Traits,
)
from remuda.query.ids import QueryId

BATCH_ROWS = 64 * 1024
TRAITS = Traits(SINGLETON)
MONEY = decimal(15, 2)

QUERIES = {
    "Q1": """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
        sum(l_extendedprice * (1 - l_discount)),
        sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), sum(l_discount), count(*)
        from lineitem where l_shipdate <= date '1998-09-02'
        group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""",
    "Q3": """select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate,
        o_shippriority from customer, orders, lineitem where c_mktsegment = 'BUILDING'
        and c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate < date '1995-03-15'
        and l_shipdate > date '1995-03-15' group by l_orderkey, o_orderdate, o_shippriority
        order by revenue desc, o_orderdate limit 10""",
    "Q6": """select sum(l_extendedprice * l_discount) from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
        and l_discount between 0.05 and 0.07 and l_quantity < 24""",
}


class Relation:
    """A table in engine form, cut into batches; its columns have ids."""

    ids = 0

    def __init__(self, map_id: int, table: pa.Table) -> None:
        self.map_id = map_id
        self.columns: list[OutputColumn] = []
        arrays = []
        for field in table.schema:
            type_ = from_arrow_type(field.type)
            Relation.ids += 1
            self.columns.append(OutputColumn(Relation.ids, field.name, type_))
            arrays.append(to_engine(table.column(field.name).combine_chunks(), type_))
        whole = pa.RecordBatch.from_arrays(arrays, names=table.column_names)
        self.batches = [
            whole.slice(start, BATCH_ROWS) for start in range(0, whole.num_rows, BATCH_ROWS)
        ]

    def __getitem__(self, name: str) -> ColumnRef:
        column = next(c for c in self.columns if c.name == name)
        return ColumnRef(column.type, column.id, column.name)

    def scan(self, condition: Expression | None, *output: str) -> TableScan:
        places = {column.name: place for place, column in enumerate(self.columns)}
        return TableScan(
            tuple(self.columns[places[name]] for name in output), TRAITS,
            map_name="", map_id=self.map_id, schema_version=1, alias="",
            positions=tuple(places[name] for name in output), filter=condition,
            filter_columns=tuple((c.id, place) for place, c in enumerate(self.columns)),
        )  # fmt: skip


class ScanNeeded:
    """Reads only the columns of output and filter, as the planner prunes them."""

    def __init__(self, relations: list[Relation]) -> None:
        self._relations = {relation.map_id: relation for relation in relations}

    def ready(self, map_id: int, at: int) -> bool:
        return True

    def scan(self, of):
        return Cursor([b.select(of.positions) for b in self._relations[of.map_id].batches])

    def lookup(self, map_id, schema_version, at, keys):
        raise NotImplementedError


class Cursor:
    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self._batches = iter(batches)

    def next(self) -> pa.RecordBatch | None:
        return next(self._batches, None)

    def close(self) -> None:
        pass


def used(node: TableScan) -> TableScan:
    """Drop filter columns that the filter does not use."""
    from dataclasses import replace

    from remuda.plan.expression import columns_of

    wanted = columns_of(node.filter) if node.filter is not None else frozenset()
    return replace(node, filter_columns=tuple(p for p in node.filter_columns if p[0] in wanted))


def compare(function: str, left: Expression, value: int, type_: SqlType | None = None) -> Call:
    return Call(BOOLEAN, function, (left, Literal(type_ or left.type, value)))


def day(text: str) -> int:
    return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days


def both(*conditions: Expression) -> Call:
    return Call(BOOLEAN, "and", conditions)


def column(name: str, type_: SqlType) -> OutputColumn:
    Relation.ids += 1
    return OutputColumn(Relation.ids, name, type_)


def one_minus(x: Expression) -> Expression:
    return Call(decimal(16, 2), "-", (Literal(decimal(1, 0), 1), x))


def q1(lineitem: Relation) -> Physical:
    scan = used(lineitem.scan(
        compare("<=", lineitem["l_shipdate"], day("1998-09-02")), "l_returnflag", "l_linestatus",
        "l_quantity", "l_extendedprice", "l_discount", "l_tax"))  # fmt: skip
    price, discount, tax = (lineitem[f"l_{n}"] for n in ("extendedprice", "discount", "tax"))
    disc_price = Call(decimal(31, 4), "*", (price, one_minus(discount)))
    disc = column("disc_price", disc_price.type)
    disc_ref = ColumnRef(disc.type, disc.id, disc.name)
    one_plus = Call(decimal(16, 2), "+", (Literal(decimal(1, 0), 1), tax))
    kept = (*scan.output[:6], disc)
    projected = ProjectRows(kept, TRAITS, scan, (
        *(ColumnRef(c.type, c.id, c.name) for c in scan.output[:6]), disc_price))  # fmt: skip
    sums = [
        lineitem["l_quantity"],
        price,
        disc_ref,
        Call(decimal(38, 6), "*", (disc_ref, one_plus)),
        discount,
    ]
    calls = [AggregateCall("sum", x, decimal(38, x.type.scale or 0)) for x in sums]
    calls.append(AggregateCall("count", None, BIGINT))
    group = scan.output[:2]
    output = (*group, *(column(f"a{i}", call.type) for i, call in enumerate(calls)))
    made = HashAggregate(
        output, TRAITS, projected, AggregatePhase.SINGLE, tuple(c.id for c in group), tuple(calls)
    )
    return SortRows(output, TRAITS, made, tuple(SortKey(c.id) for c in group))


def q3(lineitem: Relation, orders: Relation, customer: Relation) -> Physical:
    customers = used(
        customer.scan(
            Call(BOOLEAN, "=", (customer["c_mktsegment"], Literal(VARCHAR, "BUILDING"))),
            "c_custkey",
        )
    )
    order = used(
        orders.scan(
            compare("<", orders["o_orderdate"], day("1995-03-15")),
            "o_orderkey",
            "o_custkey",
            "o_orderdate",
            "o_shippriority",
        )
    )
    kept = (order.output[0], *order.output[2:])
    first = HashJoin(
        kept,
        TRAITS,
        JoinKind.INNER,
        order,
        customers,
        (orders["o_custkey"].column,),
        (customer["c_custkey"].column,),
        None,
    )
    items = used(
        lineitem.scan(
            compare(">", lineitem["l_shipdate"], day("1995-03-15")),
            "l_orderkey",
            "l_extendedprice",
            "l_discount",
        )
    )
    second = HashJoin(
        (*items.output, *kept[1:]),
        TRAITS,
        JoinKind.INNER,
        items,
        first,
        (lineitem["l_orderkey"].column,),
        (orders["o_orderkey"].column,),
        None,
    )
    revenue = Call(
        decimal(31, 4), "*", (lineitem["l_extendedprice"], one_minus(lineitem["l_discount"]))
    )
    group = (items.output[0], *kept[1:])
    total = column("revenue", decimal(38, 4))
    grouped = HashAggregate(
        (*group, total),
        TRAITS,
        second,
        AggregatePhase.SINGLE,
        tuple(c.id for c in group),
        (AggregateCall("sum", revenue, total.type),),
    )
    top = SortRows(
        grouped.output,
        TRAITS,
        grouped,
        (SortKey(total.id, descending=True), SortKey(group[1].id)),
        Literal(INTEGER, 10),
    )
    output = (group[0], total, group[1], group[2])
    return ProjectRows(output, TRAITS, top, tuple(ColumnRef(c.type, c.id, c.name) for c in output))


def q6(lineitem: Relation) -> Physical:
    date, discount = lineitem["l_shipdate"], lineitem["l_discount"]
    scan = used(lineitem.scan(both(
        compare(">=", date, day("1994-01-01")), compare("<", date, day("1995-01-01")),
        compare(">=", discount, 5, decimal(2, 2)), compare("<=", discount, 7, decimal(2, 2)),
        compare("<", lineitem["l_quantity"], 24, decimal(2, 0))), "l_extendedprice", "l_discount"))  # fmt: skip
    revenue = Call(decimal(30, 4), "*", (lineitem["l_extendedprice"], discount))
    total = column("revenue", decimal(38, 4))
    return HashAggregate(
        (total,),
        TRAITS,
        scan,
        AggregatePhase.SINGLE,
        (),
        (AggregateCall("sum", revenue, total.type),),
    )


class Here:
    """Runs a fragment in the calling thread."""

    def __init__(self) -> None:
        self._tasks: list = []
        self.error: Exception | None = None
        self.profile = None

    def submit(self, task, inline: bool = False) -> None:
        self._tasks.append(task)

    def run(self, sink: RootSink) -> list[pa.RecordBatch]:
        pages = []
        while not sink.exhausted:
            while self._tasks:
                self._tasks.pop().run_slice()
            if self.error is not None:
                raise self.error
            while (page := sink.take()) is not None:
                pages.append(page)
        return pages

    def on_done(self, profile) -> None:
        self.profile = profile

    def on_failed(self, fragment: int, error: Exception) -> None:
        self.error = error


def run(node: Physical, sources: ScanNeeded) -> tuple[list[pa.RecordBatch], Here]:
    root = Fragment(0, Root(node.output, TRAITS, node), Site.INITIATOR)
    plan = PhysicalPlan((root,), node.output, (), ())
    context = FragmentContext(
        query=QueryId(0, 0), member=1, parameters=(), read_timestamp=1, owners=[1] * 271,
        sites=Sites({0: (1,)}), sources=sources, exchange=None, clock=time.perf_counter,
    )  # fmt: skip
    here, sink = Here(), RootSink(4096)
    for instance in build_fragments(plan, context, here, here, sink=sink):
        instance.schedule()
    return here.run(sink), here


def plain(value: object) -> object:
    return value if not isinstance(value, float) else Decimal(str(value))


def rows_of(pages: list[pa.RecordBatch], node: Physical) -> list[tuple]:
    from remuda.datatypes.arrow import to_external

    rows = []
    for page in pages:
        columns = [
            to_external(c, o.type).to_pylist()
            for c, o in zip(page.columns, node.output, strict=True)
        ]
        rows += list(zip(*columns, strict=True))
    return rows


def median_ms(action, times: int = 9) -> float:
    """CPU time: both sides use one thread, and a busy machine disturbs it least."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds) * 1000


def main(directory: Path) -> None:
    connection = duckdb.connect(config={"threads": 1})
    tables = {}
    for number, name in enumerate(("lineitem", "orders", "customer")):
        file = directory / f"{name}.parquet"
        connection.execute(f"create table {name} as select * from read_parquet('{file}')")
        tables[name] = Relation(number, pq.read_table(file))
    lineitem, orders, customer = tables.values()
    sources = ScanNeeded(list(tables.values()))
    plans = {"Q1": q1(lineitem), "Q3": q3(lineitem, orders, customer), "Q6": q6(lineitem)}
    print(f"{'query':6} {'duckdb ms':>10} {'remuda ms':>10} {'ratio':>6}")
    for name, node in plans.items():
        pages, here = run(node, sources)
        want = connection.execute(QUERIES[name]).fetchall()
        assert rows_of(pages, node) == want, (name, rows_of(pages, node)[:3], want[:3])
        theirs = median_ms(lambda name=name: connection.execute(QUERIES[name]).fetchall())
        ours = median_ms(lambda node=node: run(node, sources))
        print(f"{name:6} {theirs:10.1f} {ours:10.1f} {ours / theirs:6.2f}")
        if "-v" in sys.argv:
            for operator in here.profile.operators:
                print(
                    f"    {operator.operator:16} {operator.rows:9} rows {operator.seconds * 1e3:8.1f} ms"
                )


if __name__ == "__main__":
    main(tpc_data.generate("tpch", 1))
