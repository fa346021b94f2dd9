"""``Map``: the entries of one map, as the application's own objects. All its logic is here: the
blocking ``Map`` runs these coroutines to their end.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from remuda.client import bulk, requests
from remuda.client.binding import Binding
from remuda.client.convert import python_values
from remuda.client.core import Core
from remuda.client.fields import class_shape
from remuda.client.inference import infer_schema
from remuda.client.latest import Latest
from remuda.client.objects import ObjectCodec, PhysicalRow
from remuda.client.predicate import Condition, Operand, quote
from remuda.client.reader import Reader
from remuda.client.requests import NO_OPTIONS, MapDescription
from remuda.client.row import Row
from remuda.client.tries import MAYBE_AGAIN, STALE, Tries
from remuda.client.values import parameters_of
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import require_unicode
from remuda.errors import (
    InputError,
    ObjectMismatch,
    RemudaError,
    SchemaChanged,
    UndefinedMap,
)

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

_AGAIN = (*MAYBE_AGAIN, *STALE)


class Map:
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

    def __init__(
        self,
        core: Core,
        name: str,
        value_type: type | None = None,
        key_type: type | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise InputError(f"the name of a map is text, found {type(name).__name__}")
        require_unicode(name, "the name of a map")
        self.name = name
        self._core = core
        self._value_type = value_type
        self._key_type = key_type
        self._binding: Binding | None = None
        self._described = Latest(core.ports, self._describe)

    async def schema(self) -> MapSchema:
        """The schema as the cluster has it now."""
        return (await self._bind()).schema

    # --- one entry ---

    async def get(self, key: Any, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        binding = self._binding
        if binding is None or binding.view is not self._core.view:
            binding = await self._bound_now()
        try:
            row = await binding.get(binding.codec.key(key))
        except _AGAIN as error:
            binding, row = await self._read_again(error, lambda b: b.get(b.codec.key(key)))
        return default if row is None else binding.codec.value(row)

    async def put(self, key: Any, value: Any) -> None:
        """Store ``value``, whether the key exists or not; ``get_and_put`` tells the old value."""
        await self._put(key, value, requests.Condition.ALWAYS, want_old=False)

    async def get_and_put(self, key: Any, value: Any, default: Any = None) -> Any:
        """Store ``value``; the value before, or ``default``."""
        binding, old = await self._put(key, value, requests.Condition.ALWAYS, want_old=True)
        return default if old is None else binding.codec.value(old)

    async def put_if_absent(self, key: Any, value: Any) -> bool:
        """Store ``value`` unless the key exists; whether it was stored."""
        _, old = await self._put(key, value, requests.Condition.IF_ABSENT, want_old=True)
        return old is None

    async def replace(self, key: Any, value: Any) -> bool:
        """Store ``value`` if the key exists; whether it was stored."""
        _, old = await self._put(key, value, requests.Condition.IF_PRESENT, want_old=True)
        return old is not None

    async def remove(self, key: Any, default: Any = None) -> Any:
        """Remove the entry; its value, or ``default`` when there was none."""
        binding, old = await self._remove(key, want_old=True)
        return default if old is None else binding.codec.value(old)

    async def delete(self, key: Any) -> bool:
        """Remove the entry; whether there was one."""
        _, old = await self._remove(key, want_old=False)
        return old is not None

    async def contains(self, key: Any) -> bool:
        """Whether the key exists."""
        binding = await self._bound_now()
        try:
            return await binding.contains(binding.codec.key(key))
        except _AGAIN as error:
            _, found = await self._read_again(error, lambda b: b.contains(b.codec.key(key)))
            return found

    # --- many entries ---

    async def get_all(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """The values of those of ``keys`` that exist, by key, in the order given."""
        wanted = list(keys)
        try:
            return await self._get_all(await self._bound_now(), wanted)
        except _AGAIN as error:
            _, found = await self._read_again(error, lambda b: self._get_all(b, wanted))
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
    ) -> int:
        """Store many entries; the number of entries given.

        A mapping or pairs: each object is checked before anything is sent; of pairs with the same
        key the last one counts; the members' parts appear one after the other (all together or not
        at all if the map has CHECK constraints). An Arrow table,
        record batch or pandas DataFrame holds whole rows: all appear together or not at all, and
        two rows with the same key are a ``UniqueViolation``. For a map that does not exist yet,
        ``key`` names the key columns of the table, and ``replicated`` puts a full copy on each
        member.
        """
        table = bulk.as_table(entries)
        if table is not None:
            names = (key,) if isinstance(key, str) else key
            return await self._put_table(table, names, replicated)
        if not isinstance(entries, Iterable):
            raise InputError(
                "put_all takes a mapping, (key, value) pairs, or a table; "
                f"found {type(entries).__name__}"
            )
        pairs = list(entries.items() if isinstance(entries, Mapping) else entries)
        if not pairs:
            return 0
        first_key, first_value = _pair(pairs[0])
        binding = await self._bind_for(first_key, first_value)
        try:
            await self._put_pairs(binding, pairs)
        except ObjectMismatch as mismatch:
            await self._put_pairs(await self._newer(binding, mismatch), pairs)
        except STALE:
            self._binding = None
            await self._put_pairs(await self._bind_for(first_key, first_value), pairs)
        return len(pairs)

    async def entries(
        self, where: Condition | Operand | None = None
    ) -> AsyncGenerator[tuple[Any, Any], None]:
        """(key, value) of each entry, streamed; ``where`` is a condition over ``remuda.col``."""
        async with aclosing(self.entry_lists(where)) as lists:
            async for some in lists:
                for entry in some:
                    yield entry

    async def values(self, where: Condition | Operand | None = None) -> AsyncGenerator[Any, None]:
        """The value of each entry, streamed."""
        async with aclosing(self.value_lists(where)) as lists:
            async for some in lists:
                for value in some:
                    yield value

    async def keys(self, where: Condition | Operand | None = None) -> AsyncGenerator[Any, None]:
        """The key of each entry, streamed."""
        async with aclosing(self.key_lists(where)) as lists:
            async for some in lists:
                for key in some:
                    yield key

    async def entry_lists(
        self, where: Condition | Operand | None = None
    ) -> AsyncGenerator[list[tuple[Any, Any]], None]:
        """``entries``, as many at once as come in one batch."""
        binding = await self._bind()
        codec = binding.codec
        async with self._select(binding, self._all_columns(binding), where) as pages:
            while (rows := await pages.next()) is not None:
                yield [(codec.build_key(row), codec.build_value(row)) for row in rows]

    async def value_lists(
        self, where: Condition | Operand | None = None
    ) -> AsyncGenerator[list[Any], None]:
        """``values``, as many at once as come in one batch."""
        binding = await self._bind()
        build = binding.codec.build_value
        async with self._select(binding, self._all_columns(binding), where) as pages:
            while (rows := await pages.next()) is not None:
                yield [build(row) for row in rows]

    async def key_lists(
        self, where: Condition | Operand | None = None
    ) -> AsyncGenerator[list[Any], None]:
        """``keys``, as many at once as come in one batch."""
        binding = await self._bind()
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
        try:
            return await (await self._bound_now()).size()
        except STALE as error:
            return await (await self._bind_again(error)).size()

    async def _counted(self) -> int:
        """As the transaction sees them."""
        name = quote((await self._bound_now()).schema.name)
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

    def __aiter__(self) -> AsyncIterator[Any]:
        return self.keys()

    def __repr__(self) -> str:
        return f"<Map {self.name}>"

    # --- inside ---

    async def _bind(self) -> Binding:
        """Learn the schema from the cluster. UndefinedMap when there is none."""
        return self._bound((await self._described.get()).schema)

    async def _describe(self) -> MapDescription:
        return await self._core.call(None, requests.describe_map(self.name), read=True)

    async def _bound_now(self) -> Binding:
        """The map as this handle knows it, in the view that the client knows."""
        binding = self._binding
        if binding is None:
            return await self._bind()
        if binding.view is not self._core.view:
            self._binding = binding = self._rebuilt(binding)
        return binding

    async def _bind_again(self, error: RemudaError) -> Binding:
        """The map as it is now, after a request met ``error``."""
        if isinstance(error, STALE):
            self._binding = None
        return await self._bound_now()

    async def _read_again(
        self, error: RemudaError, ask: Callable[[Binding], Coroutine[Any, Any, T]]
    ) -> tuple[Binding, T]:
        """``ask`` once more, and again, while ``Tries`` allows it."""
        tries = self._core.tries(self._core.settings.retry_reads)
        while True:
            await tries.after(error)
            binding = await self._bind_again(error)
            try:
                return binding, await ask(binding)
            except _AGAIN as another:
                error = another

    def _bound(self, schema: MapSchema) -> Binding:
        binding = self._binding
        if (
            binding is None
            or binding.schema != schema
            or binding.router.view is not self._core.view
        ):
            binding = Binding(self._core, schema, self._value_type, self._key_type)
            self._binding = binding
        return binding

    async def _bind_for(self, key: Any, value: Any) -> Binding:
        """The binding for a write: creates the map from its first entry, learns the classes."""
        binding = self._binding
        if binding is None or binding.view is not self._core.view:
            try:
                binding = await self._bound_now()
            except UndefinedMap:
                inferred = infer_schema(self.name, key, value)
                ObjectCodec(inferred).row(key, value)  # what does not fit makes no map
                call = requests.create_map(inferred, True)
                binding = self._bound((await self._core.call(None, call)).schema)
        if self._value_type is None and _is_learned(type(value)):
            self._value_type = type(value)
            self._binding = binding = self._rebuilt(binding)
        if self._key_type is None and _is_learned(type(key)):
            self._key_type = type(key)
            self._binding = binding = self._rebuilt(binding)
        return binding

    async def _newer(self, binding: Binding, error: ObjectMismatch) -> Binding:
        """The map as it is now, if that is not what an object did not fit; raises ``error`` if it
        is."""
        newest = await self._bind()
        if newest.schema.version == binding.schema.version:
            raise error
        return newest

    def _rebuilt(self, binding: Binding) -> Binding:
        return Binding(self._core, binding.schema, self._value_type, self._key_type)

    async def _put(
        self, key: Any, value: Any, condition: requests.Condition, want_old: bool
    ) -> tuple[Binding, PhysicalRow | None]:
        binding = await self._bind_for(key, value)
        try:
            row = binding.codec.row(key, value)
        except ObjectMismatch as error:
            binding = await self._newer(binding, error)
            row = binding.codec.row(key, value)
        tries: Tries | None = None
        while True:
            try:
                return binding, await binding.put(row, condition, want_old)
            except _AGAIN as error:
                twice = condition is requests.Condition.ALWAYS and not want_old
                tries = tries or self._core.tries(self._core.settings.retry_writes if twice else 0)
                await tries.after(error)
                if isinstance(error, STALE):
                    self._binding = None
                binding = await self._bind_for(key, value)
                row = binding.codec.row(key, value)

    async def _remove(self, key: Any, want_old: bool) -> tuple[Binding, PhysicalRow | None]:
        binding = await self._bound_now()
        tries: Tries | None = None
        while True:
            try:
                return binding, await binding.remove(binding.codec.key(key), want_old)
            except _AGAIN as error:
                tries = tries or self._core.tries(0)
                await tries.after(error)
                binding = await self._bind_again(error)

    async def _get_all(self, binding: Binding, wanted: Sequence[Any]) -> dict[Any, Any]:
        by_key = {binding.codec.key(key): key for key in wanted}
        rows = await binding.get_all(by_key)
        return {
            key: binding.codec.value(rows[physical])
            for physical, key in by_key.items()
            if physical in rows
        }

    async def _put_pairs(self, binding: Binding, pairs: Sequence[tuple[Any, Any]]) -> None:
        encode = binding.codec.row
        rows = [encode(*_pair(pair)) for pair in pairs]
        unique = list({binding.key_of(row): row for row in rows}.values())
        if binding.schema.checks:  # only the members can tell: all of the rows or none
            await bulk.put_batches(self._core, binding.schema, [binding.batch(unique)])
            return
        rest = await binding.put_all(unique)
        tries: Tries | None = None
        while rest is not None:
            if isinstance(rest.error, STALE):
                raise rest.error
            tries = tries or self._core.tries(self._core.settings.retry_writes)
            await tries.after(rest.error)
            rest = await self._rebuilt(binding).put_all(rest.rows)

    async def _put_table(self, table: pa.Table, key: Sequence[str] | None, replicated: bool) -> int:
        try:
            return await self._put_table_once(table, key, replicated)
        except SchemaChanged:
            self._binding = None
            return await self._put_table_once(table, key, replicated)

    async def _put_table_once(
        self, table: pa.Table, key: Sequence[str] | None, replicated: bool
    ) -> int:
        try:
            schema = (await self._bind()).schema
        except UndefinedMap:
            schema = await bulk.create_for(self._core, self.name, table.schema, key, replicated)
        else:
            bulk.check_key(schema, key)
        return await bulk.put_table(self._core, schema, table)

    def _all_columns(self, binding: Binding) -> tuple[str, ...]:
        return tuple(column.name for column in binding.schema.columns)

    def _select(
        self, binding: Binding, columns: Sequence[str], where: Condition | Operand | None
    ) -> _Selection:
        listed = ", ".join(map(quote, columns))
        text = f"SELECT {listed} FROM {quote(binding.schema.name)}"  # noqa: S608  (quoted)
        values: tuple[Any, ...] = ()
        if where is not None:
            if not isinstance(where, Condition | Operand):
                raise InputError(
                    f"where= takes a condition, found {type(where).__name__}",
                    hint='Like remuda.col("delay") > 30.',
                )
            text += f" WHERE {where.sql}"
            values = where.parameters
        return _Selection(self._core, text, values)

    async def _run(self, text: str) -> None:
        reader = await self._core.execute(text, (), (), NO_OPTIONS)
        await reader.close()


class _Selection:
    """Runs a SELECT while it is entered, and gives its rows as Python values, batch by batch."""

    def __init__(self, core: Core, text: str, values: Sequence[Any]) -> None:
        self._core = core
        self._text = text
        self._values = values
        self._reader: Reader

    async def __aenter__(self) -> Self:
        physical, types = parameters_of(self._values)
        self._reader = await self._core.execute(self._text, physical, types, NO_OPTIONS)
        return self

    async def next(self) -> Iterable[tuple[Any, ...]] | None:
        """The rows of the next batch; None at the end."""
        batch = await self._reader.next_batch()
        if batch is None:
            return None
        found = zip(batch.columns, self._reader.columns, strict=True)
        return zip(*[python_values(array, column) for array, column in found], strict=True)

    async def __aexit__(self, *_: object) -> None:
        await self._reader.close()


def _is_learned(cls: type) -> bool:
    """Classes worth remembering from a put: dataclasses and named tuples, not rows or mappings."""
    return class_shape(cls) is not None and not issubclass(cls, Row)


def _pair(entry: Any) -> tuple[Any, Any]:
    try:
        key, value = entry
    except (TypeError, ValueError):
        raise InputError(
            f"put_all takes a mapping, (key, value) pairs, or a table; found {entry!r}"
        ) from None
    return key, value
