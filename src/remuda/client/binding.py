"""The operations of a map under one schema version and one view: physical rows in and out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa

from remuda.client.arrow_stream import encode_stream, pieces
from remuda.client.core import Core
from remuda.client.objects import ObjectCodec, PhysicalRow
from remuda.client.requests import Call, Condition, MapRequests
from remuda.client.routing import Router
from remuda.client.tries import MAYBE_AGAIN, of_write
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.conformance import check_row_size, check_row_sizes, too_large
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import values_to_array
from remuda.errors import FrameTooLarge, RemudaError

KEYS_PER_REQUEST = 4096
ROWS_AS_MESSAGES = 64
"""Up to this many rows for one member travel as protobuf rows; more as an Arrow batch."""


Rows: TypeAlias = Sequence[PhysicalRow] | pa.RecordBatch
"""Rows with different keys; a batch is in the engine's form."""


@dataclass(frozen=True, slots=True)
class Unserved:
    """The rows of a write of many that were not written, or of which it is not known, and why."""

    rows: Rows
    error: RemudaError


def worst(errors: Sequence[RemudaError]) -> RemudaError:
    """The one that decides whether all may be sent again: nobody may, if one of them may not."""
    lasting = [error for error in errors if not isinstance(error, MAYBE_AGAIN)]
    unknown = [error for error in errors if error.may_have_run]
    return of_write((lasting or unknown or list(errors))[0])


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema, at least one, as one."""
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


class Binding:
    """A map as the client knows it now. A SchemaChanged or ViewChanged answer makes it stale."""

    def __init__(
        self, core: Core, schema: MapSchema, value_type: type | None, key_type: type | None
    ) -> None:
        self.core = core
        self.schema = schema
        self.codec = ObjectCodec(schema, value_type, key_type)
        self.view = core.view
        self.router = Router(schema, self.view)
        self.requests = MapRequests(schema, core.clock, self.view.number)

    # --- one entry ---

    def get(self, key: PhysicalRow) -> Coroutine[Any, Any, PhysicalRow | None]:
        call: Call[PhysicalRow | None] = self.requests.get_one(key)
        return self.core.ask(self.router.owner(key), call)

    async def contains(self, key: PhysicalRow) -> bool:
        call = self.requests.get((key,), keys_only=True)
        return (await self.core.ask(self.router.owner(key), call))[0] is not None

    async def put(
        self,
        row: PhysicalRow,
        condition: Condition = Condition.ALWAYS,
        want_old: bool = False,
        ttl: int | None = None,
    ) -> PhysicalRow | None:
        """The row that was there before, when ``want_old``."""
        call = self.requests.put((row,), condition, want_old, ttl)
        try:
            owner = self.router.owner(self.key_of(row))
            answer = await self.core.write(owner, call, self.schema.name)
        except FrameTooLarge as error:
            raise too_large(self.schema) from error
        return answer[0] if answer else None

    async def remove(self, key: PhysicalRow, want_old: bool) -> PhysicalRow | None:
        """The removed row (empty unless ``want_old``), None when there was none."""
        call = self.requests.remove((key,), want_old)
        rows: list[PhysicalRow | None] = await self.core.write(
            self.router.owner(key), call, self.schema.name
        )
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
        answers = await self.core.scatter(calls)
        errors = [answer for answer in answers if isinstance(answer, RemudaError)]
        if any(isinstance(error, FrameTooLarge) for error in errors) and len(keys) > 1:
            middle = len(keys) // 2  # large rows: fewer of them at a time
            await self._get_chunk(keys[:middle], found)
            await self._get_chunk(keys[middle:], found)
            return
        if errors:
            raise errors[0]
        for part, rows in zip(by_owner.values(), answers, strict=True):
            assert not isinstance(rows, RemudaError)
            found.update((key, row) for key, row in zip(part, rows, strict=True) if row is not None)

    async def ttl(self, key: PhysicalRow) -> int | None:
        """Microseconds; 0: it does not expire; None: there is no entry."""
        return await self.core.ask(self.router.owner(key), self.requests.ttl(key))

    async def set_ttl(self, key: PhysicalRow, ttl: int) -> bool:
        answer = await self.core.write(self.router.owner(key), self.requests.set_ttl(key, ttl))
        return answer[0] is not None

    async def put_all(self, rows: Rows, ttl: int | None = None) -> Unserved | None:
        """Upsert; what was not done, None when all is."""
        if isinstance(rows, pa.RecordBatch):
            return await self._put_batch(rows, ttl)
        if len(rows) <= ROWS_AS_MESSAGES:
            by_owner: dict[int, list[PhysicalRow]] = defaultdict(list)
            for row in rows:
                check_row_size(self.schema, row)
                by_owner[self.router.owner(self.key_of(row))].append(row)
            parts = list(by_owner.values())
            answers = await self.core.scatter(
                [(owner, self.requests.put(part, ttl=ttl)) for owner, part in by_owner.items()]
            )
            self.core.wrote(self.schema.name)
            if not any(isinstance(answer, FrameTooLarge) for answer in answers):
                left = [
                    (part, answer)
                    for part, answer in zip(parts, answers, strict=True)
                    if isinstance(answer, RemudaError)
                ]
                if not left:
                    return None
                unserved = [row for part, _ in left for row in part]
                return Unserved(unserved, worst([error for _, error in left]))
        batch = self.batch(rows)  # it travels in pieces
        check_row_sizes(self.schema, batch)
        return await self._put_batch(batch, ttl)

    async def _put_batch(self, batch: pa.RecordBatch, ttl: int | None) -> Unserved | None:
        schema = batch.schema
        if self.schema.replicated:  # whoever gets it copies it to the others
            parts = [(self.core.next_member(), batch)]
        else:
            parts = self.router.split(batch)
        queues = [(member, list(pieces(part))) for member, part in parts]
        while queues:
            calls = [
                (member, self.requests.put_batch(encode_stream(schema, [queue[0]]), ttl))
                for member, queue in queues
            ]
            answers = await self.core.scatter(calls)
            self.core.wrote(self.schema.name)
            errors = [answer for answer in answers if isinstance(answer, RemudaError)]
            for (_, queue), answer in zip(queues, answers, strict=True):
                if not isinstance(answer, RemudaError):
                    del queue[0]
            if errors:
                rest = [piece for _, queue in queues for piece in queue]
                return Unserved(joined(rest), worst(errors))
            queues = [(member, queue) for member, queue in queues if queue]
        return None

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
