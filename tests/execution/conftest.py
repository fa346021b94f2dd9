"""A grid in one thread for operators: members, maps, exchanges and pool are plain objects, and
everything that could happen in another order is ordered by a seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Context
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.execution.build import build_fragments
from remuda.execution.context import EncodedBatch, FragmentContext
from remuda.execution.contract import Progress
from remuda.execution.instances import Sites
from remuda.execution.memory import MemoryAccount
from remuda.execution.operators.scan import TableScanOperator
from remuda.execution.root_sink import RootSink
from remuda.limits import PARTITIONS
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import (
    SINGLETON,
    Distribution,
    Fragment,
    Physical,
    PhysicalPlan,
    Placement,
    Root,
    Site,
    TableScan,
    Traits,
)
from remuda.query.ids import Endpoint, QueryId
from remuda.query.stream import Grant

ANYWHERE = Traits(Distribution(Placement.PARTITIONED))


@dataclass
class Table:
    """A map in memory: columns (id, name, type) and, per member, rows."""

    id: int
    columns: tuple[OutputColumn, ...]
    rows: dict[int, list[tuple]]

    def scan(self, condition=None, output: Sequence[int] | None = None, **more) -> TableScan:
        wanted = list(range(len(self.columns))) if output is None else list(output)
        return TableScan(
            tuple(self.columns[place] for place in wanted),
            ANYWHERE,
            map_name=f"t{self.id}",
            map_id=self.id,
            schema_version=1,
            alias=f"t{self.id}",
            positions=tuple(wanted),
            filter=condition,
            filter_columns=tuple((column.id, place) for place, column in enumerate(self.columns)),
            **more,
        )


class ListCursor:
    def __init__(self, batches: list[pa.RecordBatch], open_cursors: list) -> None:
        self._batches = iter(batches)
        self._open = open_cursors
        open_cursors.append(self)

    def next(self) -> pa.RecordBatch | None:
        return next(self._batches, None)

    def close(self) -> None:
        if self in self._open:
            self._open.remove(self)

    def share(self) -> ListCursor:
        if self in self._open:
            self._open.remove(self)
        other = ListCursor([], self._open)
        other._batches = self._batches
        return other


class MemorySources:
    def __init__(self, tables: Sequence[Table], member: int, batch_rows: int) -> None:
        self._tables = {table.id: table for table in tables}
        self._member = member
        self._batch_rows = batch_rows
        self.open_cursors: list = []
        self.read: list[int] = []
        """Rows of each batch that a scan has given."""
        self.prepared = 0
        """So many times ``ready`` says no."""

    def ready(self, map_id: int, at: int) -> bool:
        if self.prepared:
            self.prepared -= 1
            return False
        return True

    def scan(self, of):
        table, positions = self._tables[of.map_id], of.positions
        rows = table.rows.get(self._member, [])
        batches = []
        for start in range(0, len(rows), self._batch_rows):
            part = rows[start : start + self._batch_rows]
            arrays = [
                values_to_array([row[p] for row in part], table.columns[p].type) for p in positions
            ]
            schema = pa.schema([(f"c{p}", engine_type(table.columns[p].type)) for p in positions])
            if arrays:
                batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
            else:
                empty = pa.array([{}] * len(part), pa.struct([]))
                batches.append(pa.RecordBatch.from_struct_array(empty))
        return ListCursor(batches, self.open_cursors)

    def counter(self, map_id):
        return self.read.append

    def lookup(self, map_id, schema_version, at, keys, partitions=None):
        rows = {row[:1]: row for row in self._tables[map_id].rows.get(self._member, [])}
        return [rows.get(tuple(key)) for key in keys]


class StepPool:
    """Runs what was submitted one slice at a time, in an order drawn from the seed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._tasks: list = []

    def submit(self, task, inline: bool = False) -> None:
        assert task not in self._tasks, "an instance was submitted twice"
        self._tasks.append(task)

    def step(self) -> bool:
        if not self._tasks:
            return False
        self._tasks.pop(self._chance.randrange(len(self._tasks))).run_slice()
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1e-4
        return self.now


@dataclass
class Member:
    number: int
    sources: MemorySources
    memory: MemoryAccount
    instances: tuple = ()
    profiles: list = field(default_factory=list)
    errors: list = field(default_factory=list)

    def on_done(self, profile) -> None:
        self.profiles.append(profile)

    def on_failed(self, fragment, error) -> None:
        self.errors.append((fragment, error))


class Grid:
    """Runs one plan on ``members`` members; messages arrive in any order, also across streams."""

    def __init__(
        self,
        plan: PhysicalPlan,
        tables: Sequence[Table],
        members: Sequence[int] = (1,),
        seed: int = 0,
        batch_rows: int = 1000,
        page_rows: int = 1000,
        parameters: tuple = (),
        memory_limit: int | None = None,
        duplicate: bool = False,
        instances: dict[int, int] | None = None,
        spill=None,
    ) -> None:
        self.chance = random.Random(seed)
        self.pool = StepPool(self.chance)
        self.clock = Clock()
        self.sink = RootSink(page_rows)
        self.network: list[Callable[[], None]] = []
        self.sent: list[tuple[int, int, EncodedBatch]] = []
        self.duplicate = duplicate
        sites = {
            f.id: (members[0],) if f.site is Site.INITIATOR else tuple(members)
            for f in plan.fragments
        }
        self.sites = Sites(sites, instances or {})
        owners = [members[p % len(members)] for p in range(PARTITIONS)]
        self.members: dict[int, Member] = {}
        for number in members:
            member = Member(
                number,
                MemorySources(tables, number, batch_rows),
                MemoryAccount(memory_limit, spill),
            )
            context = FragmentContext(
                query=QueryId(1, 2),
                member=number,
                parameters=parameters,
                read_timestamp=1,
                owners=owners,
                sites=self.sites,
                sources=member.sources,
                exchange=Port(self, number),
                clock=self.clock,
                analyze=True,
                memory=member.memory,
            )
            sink = self.sink if number == members[0] else None
            member.instances = build_fragments(plan, context, self.pool, member, sink=sink)
            self.members[number] = member

    @property
    def instances(self) -> list:
        return [i for member in self.members.values() for i in member.instances]

    def start(self) -> None:
        for instance in self.instances:
            instance.schedule()

    def deliver(self, message: Callable[[], None]) -> None:
        self.network.append(message)
        if self.duplicate and self.chance.random() < 0.3:
            self.network.append(message)

    def step(self) -> bool:
        """One thing happens; False when nothing can."""
        choices = [bool(self.network), True]
        if choices[0] and self.chance.random() < 0.5:
            self.network.pop(self.chance.randrange(len(self.network)))()
            return True
        if self.pool.step():
            return True
        if self.network:
            self.network.pop(self.chance.randrange(len(self.network)))()
            return True
        return False

    def run(self) -> list[tuple]:
        """All rows; raises the first error."""
        self.start()
        pages: list[pa.RecordBatch] = []
        idle = steps = 0
        while not (self.sink.exhausted and all(i.ended for i in self.instances)):
            page = self.sink.take() if self.chance.random() < 0.5 else None
            if page is not None:
                assert page.num_rows <= self.sink.page_rows
                pages.append(page)
                continue
            for member in self.members.values():
                if member.errors:
                    error = member.errors[0][1]
                    self.cancel(error)
                    raise error
            steps += 1
            assert steps < 200_000, "the query hangs"
            if self.step():
                continue
            idle += 1
            assert idle < 1000, "the query hangs"
            for instance in self.instances:
                instance.schedule()
        while self.network:
            self.network.pop()()
        self.assert_clean()
        self.pages = pages
        return rows_of(pages)

    def cancel(self, error=None) -> None:
        for instance in self.instances:
            instance.cancel(error)
        while self.pool.step() or self.network:
            if self.network:
                self.network.pop()()
        self.sink.clear()

    def assert_clean(self) -> None:
        for member in self.members.values():
            assert not member.sources.open_cursors
            assert member.memory.held == 0
            for instance in member.instances:
                assert instance.ended
                assert not instance._mailbox
                for inbox in instance._inboxes.values():
                    assert not any(inbox._queues.values())
                    assert not any(stream.buffered_bytes for stream in inbox._streams.values())
                if instance._outbox is not None:
                    assert instance._outbox.held == 0


class Port:
    def __init__(self, grid: Grid, member: int) -> None:
        self._grid = grid
        self._member = member

    def send_batch(self, edge: int, instance: int, receivers, batch: EncodedBatch) -> None:
        body = b"".join(part.to_pybytes() for part in batch.body)
        assert len(body) == batch.size
        self._grid.sent.append((edge, self._member, batch))
        me = Endpoint(self._member, instance)
        for receiver in receivers:
            assert receiver.member != self._member
            self._grid.deliver(
                lambda receiver=receiver: self._find(receiver, edge, "receives").on_batch(
                    edge, me, batch.ordinal, batch.last, body
                )
            )

    def send_flow_control(self, edge: int, instance: int, sender: Endpoint, grant: Grant) -> None:
        assert sender.member != self._member
        me = Endpoint(self._member, instance)
        self._grid.deliver(
            lambda: self._find(sender, edge, "sends").on_flow_control(edge, me, grant)
        )

    def _find(self, at: Endpoint, edge: int, what: str) -> Any:
        return next(
            made
            for made in self._grid.members[at.member].instances
            if edge in getattr(made, what) and made.instance == at.instance
        )


def rows_of(batches: Sequence[pa.RecordBatch], types: Sequence[SqlType] | None = None) -> list:
    rows: list[tuple] = []
    for batch in batches:
        if batch.num_columns == 0:
            rows += [()] * batch.num_rows
            continue
        columns = []
        for place, column in enumerate(batch.columns):
            if types is not None:
                columns.append(array_to_values(column, types[place]))
            else:
                columns.append(_plain_values(column))
        rows += list(zip(*columns, strict=True))
    return rows


def _plain_values(column: pa.Array) -> list:
    if pa.types.is_decimal(column.type):
        scale = column.type.scale
        return [
            None if v is None else int(v.scaleb(scale, Context(prec=60)))
            for v in column.to_pylist()
        ]
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32()).to_pylist()
    if pa.types.is_temporal(column.type):
        return column.cast(pa.int64()).to_pylist()
    return column.to_pylist()


_IDS = itertools.count(1000)


def columns(*specs: tuple[str, SqlType]) -> tuple[OutputColumn, ...]:
    return tuple(OutputColumn(next(_IDS), name, type_) for name, type_ in specs)


def single(node: Physical) -> PhysicalPlan:
    """A plan of one fragment on the initiator."""
    root = Root(node.output, Traits(SINGLETON), node)
    fragment = Fragment(0, root, Site.INITIATOR)
    return PhysicalPlan((fragment,), node.output, (), ())


def run(node: Physical, *tables: Table, **options) -> list[tuple]:
    return Grid(single(node), tables, **options).run()


def interrupt_scans(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Every scan sometimes answers WAIT before it goes on."""
    chance = random.Random(seed)
    advance = TableScanOperator.advance

    def sometimes(self):
        return Progress.WAIT if chance.random() < 0.4 else advance(self)

    monkeypatch.setattr(TableScanOperator, "advance", sometimes)


_TABLE_IDS = itertools.count(1)


def table(specs, rows, members: Sequence[int] = (1,)) -> Table:
    """``rows`` dealt round robin to ``members``."""
    dealt: dict[int, list[tuple]] = {member: [] for member in members}
    for number, row in enumerate(rows):
        dealt[members[number % len(members)]].append(row)
    return Table(next(_TABLE_IDS), columns(*specs), dealt)


@pytest.fixture(scope="session")
def engine() -> SimpleNamespace:
    """The names of this module: test modules cannot import each other."""
    return SimpleNamespace(
        Grid=Grid,
        Table=Table,
        table=table,
        columns=columns,
        single=single,
        run=run,
        interrupt_scans=interrupt_scans,
        rows_of=rows_of,
        traits=ANYWHERE,
    )
