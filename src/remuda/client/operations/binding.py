"""The operations of a map under one schema version and one view: physical rows in and out."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from remuda.client.core.core import Core
from remuda.client.core.routing import Router
from remuda.client.core.tries import MAYBE_AGAIN, of_write
from remuda.client.network.deadline import Deadline
from remuda.client.operations import bulk
from remuda.client.requests.requests import Call, Condition, MapRequests
from remuda.client.values.arrow_stream import Found, encode_stream
from remuda.client.values.objects import ObjectCodec, PhysicalRow
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.conformance import check_row_size, check_row_sizes, too_large
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import values_to_array
from remuda.errors import FrameTooLarge, RemudaError
from remuda.limits import ENCODED_BATCH_SIZE_MAX

KEYS_PER_REQUEST = 4096
KEYS_AS_MESSAGES = 64
"""Up to this many keys are sent one by one, and their rows come so; more as an Arrow batch."""
ROWS_AS_MESSAGES = 64
"""Up to this many rows travel as protobuf rows and are committed as a transaction; more as an Arrow
batch and a staged commit."""


def worst(errors: Sequence[RemudaError]) -> RemudaError:
    """The one that decides whether all may be sent again: nobody may, if one of them may not."""
    lasting = [error for error in errors if not isinstance(error, MAYBE_AGAIN)]
    unknown = [error for error in errors if error.may_have_run]
    return of_write((lasting or unknown or list(errors))[0])


class Binding:
    """A map as the client knows it now. A SchemaChanged or ViewChanged answer makes it stale.

    Each operation is one try of it, and ends at the ``deadline`` of all its tries.
    """

    columnar = True
    """Whether members read many keys as columns (``get_columns``)."""

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

    def get(self, key: PhysicalRow, deadline: Deadline) -> Coroutine[Any, Any, PhysicalRow | None]:
        call: Call[PhysicalRow | None] = self.requests.get_one(key)
        return self.core.ask(self.router.owner(key), call, deadline)

    async def contains(self, key: PhysicalRow, deadline: Deadline) -> bool:
        call = self.requests.get((key,), keys_only=True)
        return (await self.core.ask(self.router.owner(key), call, deadline))[0] is not None

    async def put(
        self,
        row: PhysicalRow,
        deadline: Deadline,
        condition: Condition = Condition.ALWAYS,
        want_old: bool = False,
        ttl: int | None = None,
    ) -> PhysicalRow | None:
        """The row that was there before, when ``want_old``."""
        try:
            if condition is Condition.ALWAYS and not want_old and ttl is None:
                stored = self.requests.put_one(row)
                owner = self.router.owner_of_row(row)
                await self.core.write(owner, stored, deadline, self.schema.name)
                return None
            call = self.requests.put((row,), condition, want_old, ttl)
            owner = self.router.owner_of_row(row)
            answer = await self.core.write(owner, call, deadline, self.schema.name)
        except FrameTooLarge as error:
            raise too_large(self.schema) from error
        return answer[0] if answer else None

    async def remove(
        self, key: PhysicalRow, deadline: Deadline, want_old: bool
    ) -> PhysicalRow | None:
        """The removed row (empty unless ``want_old``), None when there was none."""
        call = self.requests.remove((key,), want_old)
        rows: list[PhysicalRow | None] = await self.core.write(
            self.router.owner(key), call, deadline, self.schema.name
        )
        return rows[0]

    # --- many entries ---

    async def get_all(
        self, keys: Iterable[PhysicalRow], deadline: Deadline
    ) -> dict[PhysicalRow, PhysicalRow]:
        """The rows of those keys that exist, one request per owner at a time."""
        found: dict[PhysicalRow, PhysicalRow] = {}
        source = iter(keys)
        while chunk := list(islice(source, KEYS_PER_REQUEST)):
            await self._get_chunk(chunk, found, deadline)
        return found

    async def _get_chunk(
        self,
        keys: Sequence[PhysicalRow],
        found: dict[PhysicalRow, PhysicalRow],
        deadline: Deadline,
    ) -> None:
        by_owner: dict[int, list[PhysicalRow]] = defaultdict(list)
        for key in keys:
            by_owner[self.router.owner(key)].append(key)
        calls = [(owner, self.requests.get(part)) for owner, part in by_owner.items()]
        answers = await self.core.scatter(calls, deadline)
        errors = [answer for answer in answers if isinstance(answer, RemudaError)]
        if any(isinstance(error, FrameTooLarge) for error in errors) and len(keys) > 1:
            middle = len(keys) // 2  # large rows: fewer of them at a time
            await self._get_chunk(keys[:middle], found, deadline)
            await self._get_chunk(keys[middle:], found, deadline)
            return
        if errors:
            raise errors[0]
        for part, rows in zip(by_owner.values(), answers, strict=True):
            assert not isinstance(rows, RemudaError)
            found.update((key, row) for key, row in zip(part, rows, strict=True) if row is not None)

    async def get_columns(self, keys: Sequence[pa.Array], deadline: Deadline) -> list[Found]:
        """The places of those keys that exist, whose columns are given in engine form, and the rows
        of these, in several parts."""
        found: list[Found] = []
        for start in range(0, len(keys[0]), KEYS_PER_REQUEST):
            part = [column.slice(start, KEYS_PER_REQUEST) for column in keys]
            found += await self._get_part(part, start, deadline)
        return found

    async def _get_part(
        self, keys: Sequence[pa.Array], first: int, deadline: Deadline
    ) -> list[Found]:
        """``first``: the place of the first key."""
        by_owner = self.router.places(keys)
        calls = [
            (owner, self.requests.get_columns([column.take(pa.array(places)) for column in keys]))
            for owner, places in by_owner
        ]
        answers = await self.core.scatter(calls, deadline)
        errors = [answer for answer in answers if isinstance(answer, RemudaError)]
        count = len(keys[0])
        if any(isinstance(error, FrameTooLarge) for error in errors) and count > 1:
            middle = count // 2  # large rows: fewer of them at a time
            lower, upper = ([c.slice(0, middle) for c in keys], [c.slice(middle) for c in keys])
            found = await self._get_part(lower, first, deadline)
            return found + await self._get_part(upper, first + middle, deadline)
        if errors:
            raise errors[0]
        found = []
        for (_, mine), answer in zip(by_owner, answers, strict=True):
            assert not isinstance(answer, RemudaError)
            places, batch = answer
            found.append((mine[places] + first, batch))
        return found

    async def ttl(self, key: PhysicalRow, deadline: Deadline) -> int | None:
        """Microseconds; 0: it does not expire; None: there is no entry."""
        return await self.core.ask(self.router.owner(key), self.requests.ttl(key), deadline)

    async def set_ttl(self, key: PhysicalRow, deadline: Deadline, ttl: int) -> bool:
        call = self.requests.set_ttl(key, ttl)
        answer = await self.core.write(self.router.owner(key), call, deadline)
        return answer[0] is not None

    async def put_all(
        self, rows: Sequence[PhysicalRow], deadline: Deadline, ttl: int | None = None
    ) -> None:
        """Upsert rows with different keys, all or none: the member that is asked commits them on
        all owners; rows that do not fit one frame are a staged job."""
        owner = self.core.next_member()
        if not self.schema.replicated:
            owner = self.router.owner(self.key_of(rows[0]))  # of all of them, often
        if len(rows) <= ROWS_AS_MESSAGES:
            for row in rows:
                check_row_size(self.schema, row)
            with contextlib.suppress(FrameTooLarge):
                call = self.requests.put(rows, ttl=ttl)
                await self.core.write(owner, call, deadline, self.schema.name)
                return
        await self.put_batch(self.batch(rows), owner, deadline, ttl)

    async def put_columns(
        self, batch: pa.RecordBatch, deadline: Deadline, ttl: int | None = None
    ) -> None:
        """The same for rows in engine form."""
        owner = self.core.next_member()
        if not self.schema.replicated:
            first = batch.slice(0, 1)
            ((owner, _),) = self.router.split(first)
        await self.put_batch(batch, owner, deadline, ttl)

    async def put_batch(
        self, batch: pa.RecordBatch, owner: int, deadline: Deadline, ttl: int | None
    ) -> None:
        check_row_sizes(self.schema, batch)
        if batch.nbytes > ENCODED_BATCH_SIZE_MAX:
            await bulk.put_batches(self.core, self.schema, [batch], deadline, ttl)
            return
        whole = self.requests.put_batch(encode_stream(batch.schema, [batch]), ttl)
        await self.core.write(owner, whole, deadline, self.schema.name)

    def batch(self, rows: Sequence[PhysicalRow]) -> pa.RecordBatch:
        """Physical rows as one engine-form batch."""
        columns = list(zip(*rows, strict=True))
        arrays = [
            values_to_array(values, column.type)
            for values, column in zip(columns, self.schema.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=engine_schema(self.schema))

    async def size(self, deadline: Deadline) -> int:
        """Entries on the whole cluster: the member that is asked adds up."""
        return await self.core.call(None, self.requests.size(), True, deadline)

    def key_of(self, row: PhysicalRow) -> PhysicalRow:
        positions = self.schema.key_positions
        if len(positions) == 1:
            return (row[positions[0]],)
        return tuple([row[i] for i in positions])
