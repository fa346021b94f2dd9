"""The operations of a map under one schema version and one view: physical rows in and out."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from remuda.client.arrow_stream import encode_stream, pieces
from remuda.client.core import Core
from remuda.client.objects import ObjectCodec, PhysicalRow
from remuda.client.requests import Call, Condition, MapRequests
from remuda.client.routing import Router
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.conformance import check_row_size, check_row_sizes, too_large
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import values_to_array
from remuda.errors import FrameTooLarge

KEYS_PER_REQUEST = 4096
ROWS_AS_MESSAGES = 64
"""Up to this many rows for one member travel as protobuf rows; more as an Arrow batch."""


class Binding:
    """A map as the client knows it now. A SchemaChanged or ViewChanged answer makes it stale."""

    def __init__(
        self, core: Core, schema: MapSchema, value_type: type | None, key_type: type | None
    ) -> None:
        self.core = core
        self.schema = schema
        self.codec = ObjectCodec(schema, value_type, key_type)
        self.router = Router(schema, core.view)
        self.requests = MapRequests(schema, core.clock, core.view.number)

    # --- one entry ---

    def get(self, key: PhysicalRow) -> Coroutine[Any, Any, PhysicalRow | None]:
        call: Call[PhysicalRow | None] = self.requests.get_one(key)
        return self.core.call(self.router.owner(key), call, read=True)

    async def contains(self, key: PhysicalRow) -> bool:
        call = self.requests.get((key,), keys_only=True)
        return (await self.core.call(self.router.owner(key), call, read=True))[0] is not None

    async def put(
        self,
        row: PhysicalRow,
        condition: Condition = Condition.ALWAYS,
        want_old: bool = False,
    ) -> PhysicalRow | None:
        """The row that was there before, when ``want_old``."""
        call = self.requests.put((row,), condition, want_old)
        try:
            answer = await self.core.call(self.router.owner(self.key_of(row)), call)
        except FrameTooLarge as error:
            raise too_large(self.schema) from error
        return answer[0] if answer else None

    async def remove(self, key: PhysicalRow, want_old: bool) -> PhysicalRow | None:
        """The removed row (empty unless ``want_old``), None when there was none."""
        call = self.requests.remove((key,), want_old)
        rows: list[PhysicalRow | None] = await self.core.call(self.router.owner(key), call)
        return rows[0]

    # --- many entries ---

    async def get_all(self, keys: Iterable[PhysicalRow]) -> dict[PhysicalRow, PhysicalRow]:
        """The rows of those keys that exist, one request per owner at a time."""
        found: dict[PhysicalRow, PhysicalRow] = {}
        source = iter(keys)
        while chunk := list(islice(source, KEYS_PER_REQUEST)):
            await self._get_chunk(chunk, found)
        return found

    async def _get_chunk(
        self, keys: Sequence[PhysicalRow], found: dict[PhysicalRow, PhysicalRow]
    ) -> None:
        by_owner: dict[int, list[PhysicalRow]] = defaultdict(list)
        for key in keys:
            by_owner[self.router.owner(key)].append(key)
        calls = [(owner, self.requests.get(part)) for owner, part in by_owner.items()]
        try:
            answers = await self.core.scatter(calls, read=True)
        except FrameTooLarge:  # large rows: fewer of them at a time
            if len(keys) == 1:
                raise
            middle = len(keys) // 2
            await self._get_chunk(keys[:middle], found)
            await self._get_chunk(keys[middle:], found)
            return
        for part, rows in zip(by_owner.values(), answers, strict=True):
            found.update((key, row) for key, row in zip(part, rows, strict=True) if row is not None)

    async def put_rows(self, rows: Sequence[PhysicalRow]) -> None:
        """Upsert; of rows with the same key the last one counts."""
        unique = {self.key_of(row): row for row in rows}
        if 0 < len(unique) <= ROWS_AS_MESSAGES:
            by_owner: dict[int, list[PhysicalRow]] = defaultdict(list)
            for key, row in unique.items():
                check_row_size(self.schema, row)
                by_owner[self.router.owner(key)].append(row)
            with contextlib.suppress(FrameTooLarge):  # then a batch, which travels in pieces
                await self.core.scatter(
                    [(owner, self.requests.put(part)) for owner, part in by_owner.items()]
                )
                return
        if unique:
            batch = self.batch(list(unique.values()))
            check_row_sizes(self.schema, batch)
            await self.put_batch(batch)

    async def put_batch(self, batch: pa.RecordBatch) -> None:
        """Upsert the rows of an engine-form batch with unique keys."""
        schema = batch.schema
        if self.schema.replicated:  # whoever gets it copies it to the others
            parts = [(self.core.next_member(), batch)]
        else:
            parts = self.router.split(batch)
        queues = [(member, list(pieces(part))) for member, part in parts]
        while queues:
            calls = [
                (member, self.requests.put_batch(encode_stream(schema, [queue.pop(0)])))
                for member, queue in queues
            ]
            await self.core.scatter(calls)
            queues = [(member, queue) for member, queue in queues if queue]

    def batch(self, rows: Sequence[PhysicalRow]) -> pa.RecordBatch:
        """Physical rows as one engine-form batch."""
        columns = list(zip(*rows, strict=True))
        arrays = [
            values_to_array(values, column.type)
            for values, column in zip(columns, self.schema.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=engine_schema(self.schema))

    async def size(self) -> int:
        """Entries on the whole cluster: the member that is asked adds up."""
        return await self.core.call(None, self.requests.size(), read=True)

    def key_of(self, row: PhysicalRow) -> PhysicalRow:
        return tuple([row[i] for i in self.schema.key_positions])
