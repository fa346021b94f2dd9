"""Reading a map, or the result of a query, into Spark as Arrow batches.

A map is read in slices: some partitions, which one member has when the read is planned, over a
connection to whoever has them when they are read, all at one timestamp, so that the job sees one
state of the whole grid however long its tasks take (``spark.transfer.read_time``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from remuda.client.blocking.client import Client
from remuda.client.network.address import format_address
from remuda.client.network.known_members import without_owner
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import NOBODY, View
from remuda.spark.transfer.arrow_rows import arrow_schema, check_wanted, exact
from remuda.spark.transfer.grid import connect
from remuda.spark.transfer.options import Options
from remuda.spark.transfer.predicates import Condition, condition, conjunction, quote
from remuda.spark.transfer.read_time import ReadTime, run_name, ticket
from remuda.spark.transfer.slice_reading import PIECE_SIZE, Scan, read_slice, read_whole

Connect = Callable[[str], Client]

OTHERS_MAX = 8
"""Members that a task knows beside the one that it begins with."""


@dataclass(frozen=True)
class Slice(InputPartition):
    """The part that one task reads: ``statement`` over ``partitions`` (None: a query, wherever it
    runs), in ``pieces``. ``address``: of the member that has them when the read is planned, and of
    others. ``ticket`` names the read."""

    address: str
    partitions: tuple[int, ...] | None
    statement: str
    parameters: tuple[object, ...]
    ticket: str
    pieces: int = 1


class FilterPush:
    """``pushFilters`` of a reader, that Spark takes for the default one where it must not be used.

    In a session without ``spark.sql.python.filterPushdown.enabled`` (off by default) Spark refuses
    a reader that overrides ``pushFilters``; it looks at ``__func__`` to find out. With this, a
    plain session reads and filters by itself, and one with the setting pushes filters down.
    """

    def __init__(self, push: Callable[[list[Filter]], Iterable[Filter]]) -> None:
        self.push = push
        self.__func__ = DataSourceReader.pushFilters

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self.push(filters)


class RemudaReader(DataSourceReader):
    """Planned in one process and run in others: everything it holds can be pickled."""

    def __init__(
        self,
        options: Options,
        wanted: StructType,
        schema: MapSchema | None,
        connect_: Connect = connect,
    ) -> None:
        self.pushFilters = FilterPush(self.take_filters)  # type: ignore[method-assign]
        self.options = options
        self.wanted = wanted
        self.schema = schema
        self.connect = connect_
        self.conditions: list[Condition] = []
        if schema is not None:
            check_wanted(wanted, schema)
            if options.where is not None:
                self.conditions.append(Condition(options.where))

    def take_filters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Keep the filters that the grid can apply; give back those that Spark has to apply."""
        if self.schema is None:
            return filters
        columns = {column.name: column for column in self.schema.columns}
        left = []
        for filter_ in filters:
            found = condition(filter_, columns)
            if found is None:
                left.append(filter_)
            else:
                self.conditions.append(found)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        if self.schema is None:
            text = self.options.query or ""
            return [Slice(self.options.address, None, text, (), ticket())]
        with self.connect(self.options.address) as client:
            view = client.cluster_info().view
            size = client.describe_map(self.schema.name).bytes
        if NOBODY in view.owners:
            raise without_owner(view)
        where = conjunction(self.conditions)
        statement, name = self.statement(where.text), ticket()
        found = slices(view, self.options.partitions_per_member)
        pieces = 1 + size // PIECE_SIZE // len(found) if found else 1
        return [
            Slice(address, numbers, statement, where.parameters, name, pieces)
            for address, numbers in found
        ]

    def statement(self, where: str) -> str:
        assert self.schema is not None
        names = [field.name for field in self.wanted.fields]
        # Spark asks for no column at all when it only counts rows.
        selected = ", ".join(quote(name) for name in names) or "1"
        text = f"SELECT {selected} FROM {quote(self.schema.name)}"  # noqa: S608 (quoted)
        return f"{text} WHERE {where}" if where else text

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Slice)
        target = arrow_schema(self.wanted)
        with self.connect(partition.address) as client:
            for batch in self.batches(client, partition):
                yield exact(batch, target)

    def batches(self, client: Client, part: Slice) -> Iterator[pa.RecordBatch]:
        timeout = self.options.timeout
        if part.partitions is None and self.options.at is None:
            # One statement, which keeps its own timestamp while it runs.
            yield from read_whole(client, Scan(part.statement, part.parameters, None, timeout))
            return
        with ReadTime(
            lambda: self.connect(part.address),
            run_name(part.ticket) if self.options.at is None else f"{part.ticket}/at",
            proposed=self.options.at,
            seconds=self.options.lease,
        ) as time:
            scan = Scan(part.statement, part.parameters, time.at, timeout, part.pieces)
            if part.partitions is None:
                yield from read_whole(client, scan)
            else:
                yield from read_slice(client, scan, part.partitions)


def slices(view: View, per_member: int) -> list[tuple[str, tuple[int, ...]]]:
    """(addresses, partitions): every partition exactly once, its owner's address first."""
    addresses = [format_address(member.host, member.user_port) for member in view.members]
    made = []
    for index, member in enumerate(view.members):
        others = [*addresses[index + 1 :], *addresses[:index]][:OTHERS_MAX]
        owned = view.partitions_of(member.number)
        count = min(per_member, len(owned))
        made += [
            (",".join([addresses[index], *others]), owned[start::count]) for start in range(count)
        ]
    return made
