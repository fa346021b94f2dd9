"""``Map``: the entries of one map, as the application's own objects. All its logic is here: the
blocking ``Map`` runs these coroutines to their end.
"""

from __future__ import annotations

import html
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import pyarrow as pa

from remuda.client.asynchronous.handle import AGAIN
from remuda.client.asynchronous.map_aggregates import Aggregates
from remuda.client.asynchronous.map_changes import NOT_GIVEN, ChangedEntries
from remuda.client.asynchronous.map_lifetimes import Lifetimes, Ttl, checked_ttl
from remuda.client.asynchronous.map_listening import Listening
from remuda.client.core.tries import MAYBE_AGAIN, STALE, Tries
from remuda.client.network.deadline import Deadline
from remuda.client.operations import bulk
from remuda.client.operations.binding import KEYS_AS_MESSAGES, ROWS_AS_MESSAGES, Binding
from remuda.client.requests import requests
from remuda.client.requests.requests import NO_OPTIONS
from remuda.client.values.objects import PhysicalRow
from remuda.client.values.predicate import Condition, Operand, quote
from remuda.datatypes.schema import MapSchema
from remuda.errors import InputError, ObjectMismatch, SchemaChanged, UndefinedMap

if TYPE_CHECKING:
    import pandas as pd


K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
_MISSING: Any = object()


class Map(ChangedEntries, Aggregates, Listening, Lifetimes, Generic[K, V]):
    """A handle of one map; cheap, may be made before the map exists.

    Keys are scalars, or objects with one field per key column (tuple, named tuple, dataclass,
    mapping). Values are objects with named fields (dataclass, named tuple, mapping) or scalars. The
    first ``put`` into an unknown map defines its schema; ``CREATE TABLE`` does it explicitly.

    Values come back as ``value_type`` when the handle knows it, because it was given or because an
    object of that class was put through this handle; else as ``Row`` (whole rows, without key
    columns that the map named itself) or as the bare scalar. An object that does not fit the schema
    is refused with ``ObjectMismatch``, and nothing of its batch is stored. Reading a map that does
    not exist raises ``UndefinedMap``.
    """

    # --- one entry ---

    @overload
    async def get(self, key: K) -> V | None: ...

    @overload
    async def get(self, key: K, default: D) -> V | D: ...

    async def get(self, key: K, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        core, binding = self._core, self._binding
        deadline = Deadline(core.patience)
        if binding is None or binding.view is not core.members.view:
            binding = await self._bound_perhaps(deadline)
        try:
            physical = binding.codec.key(key)
        except ObjectMismatch as error:
            binding = await self._newer(binding, error, deadline)
            physical = binding.codec.key(key)
        try:
            row = await binding.get(physical, deadline)
        except AGAIN as error:
            binding, row = await self._read_again(
                error, deadline, lambda b: b.get(b.codec.key(key), deadline)
            )
        return default if row is None else binding.codec.value(row)

    async def put(self, key: K, value: V, *, ttl: Ttl = None) -> None:
        """Store ``value``, whether the key exists or not; ``get_and_put`` tells the old value.

        ``ttl``: how long the entry lives, in seconds, as a ``timedelta`` or like "10 s"; 0: until
        it is removed; None: as the options of the map say.
        """
        await self._put(key, value, requests.Condition.ALWAYS, want_old=False, ttl=ttl)

    async def get_and_put(
        self, key: Any, value: Any, default: Any = None, *, ttl: Ttl = None
    ) -> Any:
        """Store ``value``; the value before, or ``default``."""
        binding, old = await self._put(key, value, requests.Condition.ALWAYS, True, ttl)
        return default if old is None else binding.codec.value(old)

    async def put_if_absent(self, key: K, value: V, *, ttl: Ttl = None) -> bool:
        """Store ``value`` unless the key exists; whether it was stored."""
        _, old = await self._put(key, value, requests.Condition.IF_ABSENT, True, ttl)
        return old is None

    async def replace(
        self, key: Any, value: Any, *, if_version: int | None = None, if_value: Any = NOT_GIVEN
    ) -> bool:
        """Store ``value`` if the key exists, and has the version (of ``get_versioned``) and the
        value that are given; whether it was stored."""
        if if_version is not None or if_value is not NOT_GIVEN:
            _, old = await self._replace(key, value, if_version, if_value, want_old=False)
            return old is not None
        _, old = await self._put(key, value, requests.Condition.IF_PRESENT, want_old=True)
        return old is not None

    async def remove(
        self,
        key: Any,
        default: Any = None,
        *,
        if_version: int | None = None,
        if_value: Any = NOT_GIVEN,
    ) -> Any:
        """Remove the entry, if it has the version (of ``get_versioned``) and the value that are
        given; its value, or ``default`` when nothing was removed."""
        if if_version is not None or if_value is not NOT_GIVEN:
            binding, old = await self._remove_checked(key, if_version, if_value, want_old=True)
            return default if old is None else binding.codec.value(old)
        binding, old = await self._remove(key, want_old=True)
        return default if old is None else binding.codec.value(old)

    async def delete(
        self, key: Any, *, if_version: int | None = None, if_value: Any = NOT_GIVEN
    ) -> bool:
        """As ``remove``; whether an entry was removed."""
        if if_version is not None or if_value is not NOT_GIVEN:
            _, old = await self._remove_checked(key, if_version, if_value, want_old=False)
            return old is not None
        _, old = await self._remove(key, want_old=False)
        return old is not None

    async def contains(self, key: K) -> bool:
        """Whether the key exists."""
        deadline = self._core.deadline()
        binding = await self._bound_now(deadline)
        try:
            return await binding.contains(binding.codec.key(key), deadline)
        except AGAIN as error:
            _, found = await self._read_again(
                error, deadline, lambda b: b.contains(b.codec.key(key), deadline)
            )
            return found

    async def get_or_default(self, key: Any, default: Any) -> Any:
        """``get`` by its other name."""
        return await self.get(key, default)

    async def get_and_remove(self, key: Any, default: Any = None) -> Any:
        """``remove`` by its other name."""
        return await self.remove(key, default)

    async def contains_key(self, key: Any) -> bool:
        """``contains`` by its other name."""
        return await self.contains(key)

    # --- as a dictionary ---

    async def pop(self, key: K, default: Any = _MISSING) -> Any:
        """Remove the entry; its value, else ``default``. KeyError when neither is there."""
        found = await self.remove(key, _MISSING)
        if found is not _MISSING:
            return found
        if default is _MISSING:
            raise KeyError(key)
        return default

    async def popitem(self) -> tuple[K, V]:
        """Remove an entry, whichever, and return its key and value. KeyError when there is none."""
        while True:
            async with aclosing(self.keys()) as keys:
                key = await anext(keys, _MISSING)
            if key is _MISSING:
                raise KeyError("the map is empty")
            value = await self.remove(key, _MISSING)
            if value is not _MISSING:  # else another one has removed it
                return key, value

    async def setdefault(self, key: K, default: V) -> V:
        """The value of ``key``; ``default``, which is stored, when there is none."""
        while not await self.put_if_absent(key, default):
            found = await self.get(key, _MISSING)
            if found is not _MISSING:  # else it was removed in between
                kept: V = found
                return kept
        return default

    async def update(self, entries: Mapping[K, V] | Iterable[tuple[K, V]] = (), **named: V) -> None:
        """Store many entries, all or none: ``put_all``. Names are keys, as of ``dict.update``."""
        pairs: dict[Any, Any] = dict(entries)
        await self.put_all({**pairs, **named})

    # --- many entries ---

    async def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """The values of those of ``keys`` that exist, by key, in the order given."""
        wanted = list(keys)
        deadline = self._core.deadline()
        try:
            return await self._get_all(await self._bound_now(deadline), wanted, deadline)
        except AGAIN as error:
            _, found = await self._read_again(
                error, deadline, lambda b: self._get_all(b, wanted, deadline)
            )
            return found

    async def put_all(
        self,
        entries: Mapping[Any, Any]
        | Iterable[tuple[Any, Any]]
        | pa.Table
        | pa.RecordBatch
        | pd.DataFrame,
        *,
        key: str | Sequence[str] | None = None,
        replicated: bool = False,
        ttl: Ttl = None,
    ) -> int:
        """Store many entries; the number of entries given.

        All appear together or not at all, and each is checked before anything is sent. Of pairs
        with the same key the last one counts. An Arrow table, record batch or pandas DataFrame
        holds whole rows; two with the same key are a ``UniqueViolation``. For a map that does not
        exist yet, ``key`` names the key columns of the table, and ``replicated`` puts a full copy
        on each member. ``ttl`` is that of ``put``.
        """
        lasting = checked_ttl(ttl)
        deadline = self._core.deadline()
        table = bulk.as_table(entries)
        if table is not None:
            names = (key,) if isinstance(key, str) else key
            return await self._put_table(table, names, replicated, lasting, deadline)
        if not isinstance(entries, Iterable):
            raise InputError(
                "put_all takes a mapping, (key, value) pairs, or a table; "
                f"found {type(entries).__name__}"
            )
        pairs = list(entries.items() if isinstance(entries, Mapping) else entries)
        if not pairs:
            return 0
        first_key, first_value = _pair(pairs[0])
        binding = await self._bind_for(first_key, first_value, deadline)
        try:
            await self._put_pairs(binding, pairs, lasting, deadline)
        except ObjectMismatch as mismatch:
            binding = await self._newer(binding, mismatch, deadline)
            await self._put_pairs(binding, pairs, lasting, deadline)
        except STALE:
            self._unbind()
            binding = await self._bind_for(first_key, first_value, deadline)
            await self._put_pairs(binding, pairs, lasting, deadline)
        return len(pairs)

    async def entries(
        self, where: Condition | Operand | None = None
    ) -> AsyncGenerator[tuple[K, V], None]:
        """(key, value) of each entry, streamed; ``where`` is a condition over ``remuda.col``."""
        async with aclosing(self.entry_lists(where)) as lists:
            async for some in lists:
                for entry in some:
                    yield entry

    def items(self, where: Condition | Operand | None = None) -> AsyncGenerator[tuple[K, V], None]:
        """``entries`` by its other name."""
        return self.entries(where)

    async def values(self, where: Condition | Operand | None = None) -> AsyncGenerator[V, None]:
        """The value of each entry, streamed."""
        async with aclosing(self.value_lists(where)) as lists:
            async for some in lists:
                for value in some:
                    yield value

    async def keys(self, where: Condition | Operand | None = None) -> AsyncGenerator[K, None]:
        """The key of each entry, streamed."""
        async with aclosing(self.key_lists(where)) as lists:
            async for some in lists:
                for key in some:
                    yield key

    async def entry_lists(
        self, where: Condition | Operand | None = None
    ) -> AsyncGenerator[list[tuple[Any, Any]], None]:
        """``entries``, as many at once as come in one batch."""
        binding = await self._bind(self._core.deadline())
        codec = binding.codec
        async with self._select(binding, self._all_columns(binding), where) as pages:
            while (rows := await pages.next()) is not None:
                yield [(codec.build_key(row), codec.build_value(row)) for row in rows]

    async def value_lists(
        self, where: Condition | Operand | None = None
    ) -> AsyncGenerator[list[Any], None]:
        """``values``, as many at once as come in one batch."""
        binding = await self._bind(self._core.deadline())
        build = binding.codec.build_value
        async with self._select(binding, self._all_columns(binding), where) as pages:
            while (rows := await pages.next()) is not None:
                yield [build(row) for row in rows]

    async def key_lists(
        self, where: Condition | Operand | None = None
    ) -> AsyncGenerator[list[Any], None]:
        """``keys``, as many at once as come in one batch."""
        binding = await self._bind(self._core.deadline())
        positions = binding.schema.key_positions
        build = binding.codec.build_key
        row: list[Any] = [None] * len(binding.schema.columns)
        async with self._select(binding, binding.schema.key, where) as pages:
            while (rows := await pages.next()) is not None:
                found = []
                for values in rows:
                    for position, item in zip(positions, values, strict=True):
                        row[position] = item
                    found.append(build(row))
                yield found

    async def size(self) -> int:
        """The number of entries on the whole cluster."""
        if self._core.in_transaction:
            return await self._counted()
        deadline = self._core.deadline()
        try:
            return await (await self._bound_now(deadline)).size(deadline)
        except STALE as error:
            return await (await self._bind_again(error, deadline)).size(deadline)

    async def _counted(self) -> int:
        """As the transaction sees them."""
        name = quote((await self._bound_now(self._core.deadline())).schema.name)
        text = f"SELECT count(*) FROM {name}"  # noqa: S608  (quoted)
        reader = await self._core.execute(text, (), (), NO_OPTIONS)
        batch = await reader.next_batch()
        await reader.close()
        return 0 if batch is None else int(batch.column(0)[0].as_py())

    # --- indexes ---

    async def create_index(
        self,
        *columns: str,
        kind: str = "sorted",
        descending: Collection[str] = (),
        name: str | None = None,
        if_not_exists: bool = False,
    ) -> str:
        """Make a secondary index of these columns and return its name; returns when it is built.

        ``kind``: "sorted" finds values and ranges and gives order, "hash" finds values of all its
        columns together, "bitmap" is for one column with few different values. Conditions
        (``where=`` and SQL) use it by themselves. Writes go on meanwhile.
        """
        if not columns or not all(isinstance(column, str) for column in columns):
            raise InputError("create_index takes the names of one or more columns")
        unknown = [column for column in descending if column not in columns]
        if unknown:
            raise InputError(f"column {unknown[0]!r} is descending, but not of the index")
        chosen = name or "_".join([self.name, *columns, "idx"])
        listed = ", ".join(quote(c) + (" DESC" if c in descending else "") for c in columns)
        absent = "IF NOT EXISTS " if if_not_exists else ""
        await self._run(
            f"CREATE INDEX {absent}{quote(chosen)} ON {quote(self.name)} "
            f"USING {quote(str(kind).lower())} ({listed})"
        )
        return chosen

    async def drop_index(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a secondary index of this map."""
        known = "IF EXISTS " if if_exists else ""
        await self._run(f"DROP INDEX {known}{quote(name)} ON {quote(self.name)}")

    def __aiter__(self) -> AsyncIterator[K]:
        return self.keys()

    def __repr__(self) -> str:
        """Its columns as well, as far as this handle knows them: nothing is asked."""
        if self._binding is None:
            return f"<Map {self.name}>"
        schema = self._binding.schema
        columns = ", ".join(f"{column.name} {column.type}" for column in schema.columns)
        return f"<Map {self.name} ({columns}) by ({', '.join(schema.key)})>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    # --- inside ---

    async def _put(
        self,
        key: Any,
        value: Any,
        condition: requests.Condition,
        want_old: bool,
        ttl: Ttl = None,
    ) -> tuple[Binding, PhysicalRow | None]:
        lasting = None if ttl is None else checked_ttl(ttl)
        core, bound = self._core, self._binding
        deadline = Deadline(core.patience)
        if (
            bound is None
            or bound.view is not core.members.view
            or (type(key), type(value)) not in self._learned
        ):
            plain = condition is requests.Condition.ALWAYS and not want_old and lasting is None
            bound = await self._bind_for(key, value, deadline, perhaps=plain)
        binding = bound
        try:
            row = binding.codec.row(key, value)
        except ObjectMismatch as error:
            binding = await self._newer(binding, error, deadline)
            row = binding.codec.row(key, value)
        tries: Tries | None = None
        while True:
            try:
                return binding, await binding.put(row, deadline, condition, want_old, lasting)
            except AGAIN as error:
                twice = condition is requests.Condition.ALWAYS and not want_old
                repeats = self._core.settings.retry_writes if twice else 0
                tries = tries or self._core.tries(repeats, deadline)
                await tries.after(error)
                if isinstance(error, STALE):
                    self._unbind()
                binding = await self._bind_for(key, value, deadline)
                row = binding.codec.row(key, value)

    async def _remove(self, key: Any, want_old: bool) -> tuple[Binding, PhysicalRow | None]:
        deadline = self._core.deadline()
        binding = await self._bound_now(deadline)
        tries: Tries | None = None
        while True:
            try:
                return binding, await binding.remove(binding.codec.key(key), deadline, want_old)
            except AGAIN as error:
                tries = tries or self._core.tries(0, deadline)
                await tries.after(error)
                binding = await self._bind_again(error, deadline)

    async def _get_all(
        self, binding: Binding, wanted: Sequence[Any], deadline: Deadline
    ) -> dict[Any, Any]:
        if binding.columnar and len(wanted) > KEYS_AS_MESSAGES:
            columns = binding.codec.key_columns(wanted)
            if columns is not None:
                return await self._get_columns(binding, wanted, columns, deadline)
        by_key = {binding.codec.key(key): key for key in wanted}
        rows = await binding.get_all(by_key, deadline)
        return {
            key: binding.codec.value(rows[physical])
            for physical, key in by_key.items()
            if physical in rows
        }

    async def _get_columns(
        self,
        binding: Binding,
        keys: Sequence[Any],
        columns: Sequence[pa.Array],
        deadline: Deadline,
    ) -> dict[Any, Any]:
        found: list[Any] = [_MISSING] * len(keys)
        for places, batch in await binding.get_columns(columns, deadline):
            for place, value in zip(places.tolist(), binding.codec.values(batch), strict=True):
                found[place] = value
        return {key: value for key, value in zip(keys, found, strict=True) if value is not _MISSING}

    async def _put_pairs(
        self,
        binding: Binding,
        pairs: Sequence[tuple[Any, Any]],
        ttl: int | None,
        deadline: Deadline,
    ) -> None:
        if set(map(type, pairs)) != {tuple} or set(map(len, pairs)) != {2}:
            pairs = list(map(_pair, pairs))
        batch = binding.codec.batch(pairs) if len(pairs) > ROWS_AS_MESSAGES else None
        unique: list[PhysicalRow] = []
        if batch is None:
            encode = binding.codec.row
            rows = [encode(key, value) for key, value in pairs]
            unique = list({binding.key_of(row): row for row in rows}.values())
        tries: Tries | None = None
        while True:
            try:
                if batch is None:
                    await binding.put_all(unique, deadline, ttl)
                else:
                    await binding.put_columns(batch, deadline, ttl)
                return
            except MAYBE_AGAIN as error:
                tries = tries or self._core.tries(self._core.settings.retry_writes, deadline)
                await tries.after(error)
            binding = self._rebuilt(binding)

    async def _put_table(
        self,
        table: pa.Table,
        key: Sequence[str] | None,
        replicated: bool,
        ttl: int | None,
        deadline: Deadline,
    ) -> int:
        try:
            schema = await self._schema_for(table, key, replicated, deadline)
            return await bulk.put_table(self._core, schema, table, deadline, ttl)
        except SchemaChanged:
            self._unbind()
            schema = await self._schema_for(table, key, replicated, deadline)
            return await bulk.put_table(self._core, schema, table, deadline, ttl)

    async def _schema_for(
        self, table: pa.Table, key: Sequence[str] | None, replicated: bool, deadline: Deadline
    ) -> MapSchema:
        core = self._core
        try:
            schema = (await self._bind(deadline)).schema
        except UndefinedMap:
            return await bulk.create_for(
                core, self.name, table.schema, key, replicated, deadline=deadline
            )
        bulk.check_key(schema, key)
        return schema


def _pair(entry: Any) -> tuple[Any, Any]:
    try:
        key, value = entry
    except (TypeError, ValueError):
        raise InputError(
            "put_all takes a mapping, (key, value) pairs, or a table; "
            f"found {type(entry).__name__} where a pair should be"
        ) from None
    return key, value
