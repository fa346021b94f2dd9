"""Entry listeners: the changes of a map as the application's objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from remuda.client.asynchronous.change_stream import ROWS, ChangeStream
from remuda.client.asynchronous.feed import Feed
from remuda.client.asynchronous.handle import Handle, condition_of
from remuda.client.asynchronous.listener import Listener, subscription_name
from remuda.client.core.core import Core
from remuda.client.core.reader import Reader
from remuda.client.requests.feed_events import KINDS, EntryEvent, EventKind
from remuda.client.requests.feeds import FeedPage, FeedQuery
from remuda.client.requests.requests import RunOptions
from remuda.client.values.decoding import python_values
from remuda.client.values.objects import ObjectCodec
from remuda.client.values.predicate import Condition, Operand, col, quote
from remuda.client.values.values import parameters_of
from remuda.datatypes.hashes.keyhash import hasher, partition_of
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue, from_physical
from remuda.errors import InputError
from remuda.limits import LISTENER_EVENTS


class Listening(Handle):
    """Part of ``Map``."""

    async def listen(
        self,
        *,
        where: Condition | Operand | None = None,
        key: Any = None,
        values: bool = True,
        initial: bool = False,
        buffer: int = LISTENER_EVENTS,
    ) -> Listener[EntryEvent]:
        """The changes of this map from now on, as they are committed; see ``Listener``.

        ``where``: only entries that meet a condition over ``remuda.col`` (one that ceases to meet
        it is told as removed); ``key``: only this one. ``values=False``: events have keys, but no
        values. ``initial``: first an event INITIAL for each entry that is there. ``buffer``: events
        that may wait here for a slow reader. Raises UndefinedMap, InsufficientPrivilege,
        LimitExceeded, and errors of the condition.
        """
        self._refuse_in_transaction()
        binding = await self._bind(self._core.deadline())
        codecs = Codecs(binding.codec, self._value_type, self._key_type)
        partitions = None
        if key is not None:
            physical = binding.codec.key(key)
            where = _only(binding.schema, physical, where)
            partitions = _partition_of(binding.schema, physical)
        condition, items = condition_of(where)
        text = f"SELECT * FROM {quote(binding.schema.name)}{condition}"  # noqa: S608  (quoted)
        parameters, types = parameters_of(items)
        query = FeedQuery(
            subscription_name(), "listener", text, parameters, types, keys_only=not values
        )

        async def there(at: int) -> tuple[Reader, AsyncIterator[EntryEvent]]:
            options = RunOptions(read_timestamp=at)
            reader = await self._core.execute(text, parameters, types, options)
            return reader, _initial(reader, binding.codec, at, values)

        return await Listener(buffer, lambda page: _events(page, codecs.of(page)), _gap).begin(
            lambda page, room, ends: Feed(
                self._core, query, partitions, page, room, ends, rows=buffer
            ),
            there if initial else None,
        )

    async def changes(
        self,
        from_: Any = "latest",
        *,
        where: Condition | Operand | None = None,
        rows: int = ROWS,
    ) -> ChangeStream:
        """The changes of this map as record batches; see ``ChangeStream``.

        ``from_``: "latest" (what is committed from now on), "snapshot" (first all rows as they are,
        then the changes since), "earliest" (all changes that are kept), a moment, a hybrid
        timestamp, or the ``position`` of another stream of this map. ``where``: only entries that
        meet a condition over ``remuda.col``. ``rows``: changes in a batch, about. Raises InputError
        for a position that is none and for a moment in the future, ChangesExpired (what came after
        it is not kept any more), UndefinedMap (also for a position of a map that was dropped),
        InsufficientPrivilege.
        """
        self._refuse_in_transaction()
        binding = await self._bind(self._core.deadline())
        condition, items = condition_of(where)
        parameters, types = parameters_of(items)
        stream = ChangeStream(self._core, binding.schema, condition, parameters, types, rows)
        return await stream.begin(from_)

    def over(self, core: Core) -> Listening:
        """The same map, over other connections."""
        self._refuse_in_transaction()
        return Listening(core, self.name, self._value_type, self._key_type)

    def _refuse_in_transaction(self) -> None:
        if self._core.in_transaction:
            raise InputError(
                "the map of a transaction has no listeners",
                hint="Listen to the map of the client.",
            )


class Codecs:
    """Makes objects of what a map gives, also when it is altered meanwhile."""

    def __init__(self, first: ObjectCodec, value_type: type | None, key_type: type | None) -> None:
        self._codec = first
        self._types = value_type, key_type

    def of(self, page: FeedPage) -> ObjectCodec:
        """Raises ObjectMismatch when the class of the values does not fit any more."""
        schema = self._codec.schema
        width = len(schema.key)
        keys, columns = page.columns[:width], page.columns[width:]
        if columns and _named(columns) != _named(schema.shown):
            names = tuple(column.name for column in keys)
            hidden = tuple(column for column in keys if column.name not in _named(columns))
            altered = MapSchema(
                schema.name,
                hidden + columns,
                names,
                tuple(names[schema.key.index(name)] for name in schema.partition_by),
                value_shape=schema.value_shape,
                map_id=schema.map_id,
            )
            self._codec = ObjectCodec(altered, *self._types)
        return self._codec


def _named(columns: Sequence[Column]) -> dict[str, SqlType]:
    return {column.name: column.type for column in columns}


def _only(
    schema: MapSchema, key: Sequence[PhysicalValue], where: Condition | Operand | None
) -> Condition | Operand | None:
    condition = where
    for name, value in zip(schema.key, key, strict=True):
        same = col(name) == from_physical(value, schema.column(name).type)
        condition = same if condition is None else same & condition
    return condition


def _partition_of(schema: MapSchema, key: Sequence[PhysicalValue]) -> list[int]:
    types = [schema.columns[position].type for position in schema.partition_positions]
    parts = [key[schema.key.index(name)] for name in schema.partition_by]
    return [partition_of(hasher(types)(parts))]


def _events(page: FeedPage, codec: ObjectCodec) -> list[EntryEvent]:
    schema = codec.schema
    positions = schema.key_positions
    names = [column.name for column in page.columns[len(positions) :]]
    places = _places(names, schema)
    blank: list[Any] = [None] * len(schema.columns)

    def built(row: tuple[Any, ...] | None) -> Any:
        if row is None:
            return None
        return codec.build_value([None if place is None else row[place] for place in places])

    found = []
    for change in page.changes:
        for position, item in zip(positions, change.key, strict=True):
            blank[position] = item
        key = codec.build_key(blank)
        new, old = built(change.new), built(change.old)
        found.append(EntryEvent(KINDS[change.kind], key, new, old, change.timestamp))
    return found


async def _initial(
    reader: Reader, codec: ObjectCodec, at: int, values: bool
) -> AsyncIterator[EntryEvent]:
    while (batch := await reader.next_batch()) is not None:
        places = _places(batch.schema.names, codec.schema)
        found = zip(batch.columns, reader.columns, strict=True)
        for row in zip(*[python_values(array, column) for array, column in found], strict=True):
            full = [None if place is None else row[place] for place in places]
            value = codec.build_value(full) if values else None
            yield EntryEvent(EventKind.INITIAL, codec.build_key(full), value, None, at)


def _places(names: Sequence[str], schema: MapSchema) -> list[int | None]:
    """Where the columns of the schema are; a row id is not among those of a query."""
    at = {name: place for place, name in enumerate(names)}
    return [at.get(column.name) for column in schema.columns]


def _gap(timestamp: int) -> EntryEvent:
    return EntryEvent(EventKind.GAP, None, None, None, timestamp)
