"""The operations of a map inside a transaction. A request that the client can answer, or keep until
the commit, is not sent.

Pessimistic transactions lock what they touch, at once: only a put of a key that they have locked
waits. A put waits if the client can tell that the member will take it: no CHECK constraint, no time
to live, and no question about what was there.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from remuda.client.core.routing import Router
from remuda.client.network.deadline import Deadline
from remuda.client.operations.binding import ROWS_AS_MESSAGES, Binding
from remuda.client.operations.transaction_core import TransactionCore
from remuda.client.operations.transaction_requests import PESSIMISTIC
from remuda.client.requests.requests import Call, Condition, MapRequests
from remuda.client.values.objects import ObjectCodec, PhysicalRow
from remuda.datatypes.conformance import RowCheck
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View
from remuda.errors import RemudaError, SchemaChanged
from remuda.transaction.own_writes import canonical_key

SHAPES_KEPT: Final = 1_000


@dataclass(frozen=True)
class Shape:
    """The parts that are the same in all transactions of a client that use a map, as long as it and
    the view stay. Threads share it."""

    schema: MapSchema
    view: View
    codec: ObjectCodec
    router: Router
    requests: MapRequests

    @cached_property
    def check(self) -> RowCheck:
        return RowCheck(self.schema)


class TransactionBinding(Binding):
    core: TransactionCore
    columnar = False

    def __init__(
        self,
        core: TransactionCore,
        schema: MapSchema,
        value_type: type | None,
        key_type: type | None,
    ) -> None:
        view = core.view
        known = (id(schema), view.number, value_type, key_type)
        shape = core.shapes.get(known)
        if shape is None or shape.schema is not schema or shape.view is not view:
            made = Binding(core.outside(), schema, value_type, key_type)
            shape = Shape(schema, view, made.codec, made.router, made.requests)
            if len(core.shapes) >= SHAPES_KEPT:
                core.shapes.clear()
            core.shapes[known] = shape
        self.core, self.schema, self.view = core, schema, view
        self.codec, self.router, self.requests = shape.codec, shape.router, shape.requests
        self._shape = shape
        self._types = value_type, key_type

    def get(self, key: PhysicalRow, deadline: Deadline) -> Coroutine[Any, Any, PhysicalRow | None]:
        return self._get(key, deadline)

    async def _get(self, key: PhysicalRow, deadline: Deadline) -> PhysicalRow | None:
        core = self.core
        if core.unsent.puts and (own := core.unsent.find(self.requests, key)) is not None:
            core.require_open()
            return own
        if core.pessimistic:
            return await self._get_locked(key, deadline)
        if core.begins_with_get:
            owner = self.router.owner(key)
            return await core.begin_with_get(self.requests, key, owner, deadline)
        if core.reads_directly and not self.schema.replicated:
            owner = self.router.owner(key)
            found, row = await core.get_directly(self.requests, key, owner, deadline)
            if found:
                return row
        call: Call[PhysicalRow | None] = self.requests.get_one(key)
        return await core.ask(core.held.member, call, deadline)

    async def _get_locked(self, key: PhysicalRow, deadline: Deadline) -> PhysicalRow | None:
        """The transaction has a name before it waits for a lock, so that a client that
        gives up can tell its member."""
        core = self.core
        call: Call[PhysicalRow | None] = self.requests.get_one(key)
        row = await core.ask(self.router.owner(key), call, deadline)
        if core.locks_reads:
            core.locked.add((self.schema.map_id, canonical_key(key)))
        return row

    async def put(
        self,
        row: PhysicalRow,
        deadline: Deadline,
        condition: Condition = Condition.ALWAYS,
        want_old: bool = False,
        ttl: int | None = None,
    ) -> PhysicalRow | None:
        plain = condition is Condition.ALWAYS and not want_old and ttl is None
        if plain and self._waits((row,)):
            try:
                self._keep((row,))
            except RemudaError:
                if self.core.begins_with_get:
                    await self._require_known(deadline)
                raise
            return ()
        old = await super().put(row, deadline, condition, want_old, ttl)
        if self.core.pessimistic:
            self.core.locked.add((self.schema.map_id, canonical_key(self.key_of(row))))
        return old

    async def put_all(
        self, rows: Sequence[PhysicalRow], deadline: Deadline, ttl: int | None = None
    ) -> None:
        if ttl is None and len(rows) <= ROWS_AS_MESSAGES and self._waits(rows):
            self._keep(rows)
            return
        await super().put_all(rows, deadline, ttl)

    def _waits(self, rows: Sequence[PhysicalRow]) -> bool:
        """Whether puts wait for the commit."""
        core = self.core
        core.require_open()
        options = core.options
        if options.read_only or core.unsent.full or self.schema.checks:
            return False
        if self.schema.generated:
            return False
        return options.concurrency != PESSIMISTIC or self._locked(rows)

    def _locked(self, rows: Sequence[PhysicalRow]) -> bool:
        map_id, locked = self.schema.map_id, self.core.locked
        return all((map_id, canonical_key(self.key_of(row))) in locked for row in rows)

    def _keep(self, rows: Sequence[PhysicalRow]) -> None:
        """Raises what the member would raise for a row that does not fit."""
        check, core = self._shape.check, self.core
        for row in rows:
            check.row(row)
        for row in rows:
            key = self.key_of(row)
            if core.begins_with_get:
                if core.first_owner is None:
                    core.first_owner = self.router.owner(key)
                core.kept[self.schema.map_id, self.schema.version] = self
            core.unsent.put(self.requests, key, row)

    async def _require_known(self, deadline: Deadline) -> None:
        """A row does not fit the map as it was known last. Begin the transaction: its member knows
        the catalog. Raises SchemaChanged if the map may be another one by now."""
        core, name = self.core, self.schema.name
        await core.begin(deadline)
        known = core.described.get(name)
        if known is None or known.catalog_version != core.held.catalog_version:
            raise SchemaChanged(f'map "{name}" may have been altered')

    def as_now(self, schema: MapSchema, rows: Sequence[bytes]) -> None:
        """Keep ``rows``, which were packed for the map of this binding, for ``schema``, which the
        map has now. Raises ObjectMismatch and other DataErrors for what does not fit it."""
        new = TransactionBinding(self.core, schema, *self._types)
        for packed in rows:
            values = self.codec.python_row(self.requests.unpack_row(packed))
            row = new.codec.row(self.codec.build_key(values), self.codec.build_value(values))
            new.core.unsent.put(new.requests, new.key_of(row), row)
