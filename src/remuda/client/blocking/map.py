"""``Map``: the entries of one map as a dictionary of the application's own objects."""

from __future__ import annotations

import html
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from datetime import timedelta
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import pyarrow as pa

from remuda.client.asynchronous import map as asynchronous
from remuda.client.asynchronous.change_stream import ROWS
from remuda.client.asynchronous.map_aggregates import By, Column
from remuda.client.asynchronous.map_changes import NOT_GIVEN, Expression, Where
from remuda.client.asynchronous.map_lifetimes import Ttl
from remuda.client.blocking.change_stream import ChangeStream
from remuda.client.blocking.listener import Listener
from remuda.client.core.core import Core
from remuda.client.network.driving import finish, items
from remuda.client.requests.feed_events import EntryEvent
from remuda.client.values.map_statistics import MapStatistics
from remuda.client.values.predicate import Condition, Operand
from remuda.datatypes.map_options import MapOptions
from remuda.datatypes.schema import MapSchema
from remuda.limits import LISTENER_EVENTS

if TYPE_CHECKING:
    import pandas as pd


K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
_MISSING: Any = object()
_SHOWN = 10
"""Entries that a notebook shows."""


class Map(Generic[K, V]):
    """A handle of one map; cheap, thread-safe, may be made before the map exists.

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
        self._core = core
        self._map: asynchronous.Map[K, V] = asynchronous.Map(core, name, value_type, key_type)

    @property
    def name(self) -> str:
        """The name of the map."""
        return self._map.name

    @property
    def schema(self) -> MapSchema:
        """The schema as the cluster has it now."""
        return finish(self._map.schema())

    # --- one entry ---

    @overload
    def get(self, key: K) -> V | None: ...

    @overload
    def get(self, key: K, default: D) -> V | D: ...

    def get(self, key: K, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        return finish(self._map.get(key, default))

    def put(self, key: K, value: V, *, ttl: Ttl = None) -> None:
        """Store ``value``, whether the key exists or not; ``get_and_put`` tells the old value.

        ``ttl``: how long the entry lives, in seconds, as a ``timedelta`` or like "10 s"; 0: until
        it is removed; None: as the options of the map say.
        """
        finish(self._map.put(key, value, ttl=ttl))

    def get_and_put(self, key: Any, value: Any, default: Any = None, *, ttl: Ttl = None) -> Any:
        """Store ``value``; the value before, or ``default``."""
        return finish(self._map.get_and_put(key, value, default, ttl=ttl))

    def put_if_absent(self, key: K, value: V, *, ttl: Ttl = None) -> bool:
        """Store ``value`` unless the key exists; whether it was stored."""
        return finish(self._map.put_if_absent(key, value, ttl=ttl))

    def ttl(self, key: Any) -> float | None:
        """The seconds that the entry has left; ``math.inf``: it stays until it is removed; None:
        there is no entry."""
        return finish(self._map.ttl(key))

    def set_ttl(self, key: Any, ttl: float | str | timedelta) -> bool:
        """Let the entry live for so long from now (see ``put``; 0: until it is removed); whether
        there is one."""
        return finish(self._map.set_ttl(key, ttl))

    def statistics(self) -> MapStatistics:
        """The counters of the map, their sum and those of each member. Raises UndefinedMap."""
        return finish(self._map.statistics())

    def options(self) -> MapOptions:
        """The options of the map, as they are now."""
        return finish(self._map.options())

    def set_options(self, **options: Any) -> None:
        """Change options: ``ttl="10 s"``, ``max_idle``, ``eviction``, ``max_entries``, ...; None
        sets one back. Entries that are there keep the TTL that they were written with. Raises
        InvalidDefinition."""
        finish(self._map.set_options(**options))

    def replace(
        self, key: Any, value: Any, *, if_version: int | None = None, if_value: Any = NOT_GIVEN
    ) -> bool:
        """Store ``value`` if the key exists, and has the version (of ``get_versioned``) and the
        value that are given; whether it was stored."""
        return finish(self._map.replace(key, value, if_version=if_version, if_value=if_value))

    def remove(
        self,
        key: Any,
        default: Any = None,
        *,
        if_version: int | None = None,
        if_value: Any = NOT_GIVEN,
    ) -> Any:
        """Remove the entry, if it has the version (of ``get_versioned``) and the value that are
        given; its value, or ``default`` when nothing was removed."""
        return finish(self._map.remove(key, default, if_version=if_version, if_value=if_value))

    def delete(self, key: Any, *, if_version: int | None = None, if_value: Any = NOT_GIVEN) -> bool:
        """As ``remove``; whether an entry was removed."""
        return finish(self._map.delete(key, if_version=if_version, if_value=if_value))

    def contains(self, key: Any) -> bool:
        """Whether the key exists; also ``key in map``."""
        return finish(self._map.contains(key))

    def get_or_default(self, key: Any, default: Any) -> Any:
        """``get`` by its other name."""
        return finish(self._map.get_or_default(key, default))

    def get_and_remove(self, key: Any, default: Any = None) -> Any:
        """``remove`` by its other name."""
        return finish(self._map.get_and_remove(key, default))

    def contains_key(self, key: Any) -> bool:
        """``contains`` by its other name."""
        return finish(self._map.contains_key(key))

    # --- what depends on the entry ---

    def compute(
        self,
        key: Any,
        expression: Expression,
        *params: Any,
        where: Where = None,
        insert: Any = None,
        return_old: bool = False,
    ) -> Any:
        """Change an entry where it is, in one step, and return its new value.

        ``expression`` is what follows SET in an UPDATE, ``"balance = balance + ?, at = now()"``,
        with the values of ``params``; or a mapping of columns to what they become:
        ``{"balance": col("balance") + 5}``. It may use all columns of the row, no subqueries, and
        leaves the key as it is. The change happens only if ``where`` holds: a condition over
        ``remuda.col``, or SQL, whose parameters follow those of the expression. ``insert`` is the
        value to store when the key is absent. None when the entry is absent, or ``where`` does not
        hold. With ``return_old`` the value before, None also when there was none.

        Raises what the expression raises (DivisionByZero, NumericOverflow, ...), NotNullViolation
        and CheckViolation for what the new value may not be; nothing has changed then.
        """
        return finish(
            self._map.compute(
                key, expression, *params, where=where, insert=insert, return_old=return_old
            )
        )

    def compute_all(
        self,
        keys: Iterable[Any],
        expression: Expression,
        *params: Any,
        where: Where = None,
        insert: Any = None,
        return_old: bool = False,
    ) -> dict[Any, Any]:
        """``compute`` for many keys, each for itself; the values of those that have changed, by
        key. After an error some may have changed and others not: to change all or none, use a
        transaction."""
        return finish(
            self._map.compute_all(
                keys, expression, *params, where=where, insert=insert, return_old=return_old
            )
        )

    def get_versioned(self, key: Any, default: Any = None) -> tuple[Any, int]:
        """(value, version) of an entry; (``default``, 0) when there is none. The version is the
        timestamp of the write that the entry comes from: another write, another version. Not in
        transactions, whose commit checks what they have read."""
        return finish(self._map.get_versioned(key, default))

    def replace_if(self, key: Any, old: Any, new: Any) -> bool:
        """Store ``new`` if the value is ``old``, in all columns; whether it was stored."""
        return finish(self._map.replace_if(key, old, new))

    def get_and_replace(
        self,
        key: Any,
        value: Any,
        default: Any = None,
        *,
        if_version: int | None = None,
        if_value: Any = NOT_GIVEN,
    ) -> Any:
        """``replace``, but it returns the value before; ``default`` when nothing was stored."""
        return finish(
            self._map.get_and_replace(key, value, default, if_version=if_version, if_value=if_value)
        )

    # --- many entries ---

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """The values of those of ``keys`` that exist, by key, in the order given."""
        return finish(self._map.get_all(keys))

    def put_all(
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
        return finish(self._map.put_all(entries, key=key, replicated=replicated, ttl=ttl))

    def entries(self, where: Condition | Operand | None = None) -> Iterator[tuple[K, V]]:
        """(key, value) of each entry, streamed; ``where`` is a condition over ``remuda.col``."""
        return chain.from_iterable(items(self._map.entry_lists(where)))

    def items(self, where: Condition | Operand | None = None) -> Iterator[tuple[K, V]]:
        """``entries`` by its other name."""
        return self.entries(where)

    def values(self, where: Condition | Operand | None = None) -> Iterator[V]:
        """The value of each entry, streamed."""
        return chain.from_iterable(items(self._map.value_lists(where)))

    def keys(self, where: Condition | Operand | None = None) -> Iterator[K]:
        """The key of each entry, streamed."""
        return chain.from_iterable(items(self._map.key_lists(where)))

    def size(self) -> int:
        """The number of entries on the whole cluster; also ``len(map)``."""
        return finish(self._map.size())

    # --- about all entries ---

    @overload
    def count(self, where: Condition | Operand | None = None) -> int: ...

    @overload
    def count(
        self, where: Condition | Operand | None = None, *, by: str | Sequence[str]
    ) -> dict[Any, int]: ...

    def count(self, where: Condition | Operand | None = None, *, by: By = None) -> Any:
        """The number of entries for which ``where`` holds. ``by``: for each value of these columns
        by itself, a dict whose keys are the values (tuples, for several columns)."""
        return finish(self._map.count(where) if by is None else self._map.count(where, by=by))

    def sum(
        self, column: Column, where: Condition | Operand | None = None, *, by: By = None
    ) -> Any:
        """The sum of a column, or of arithmetic over ``remuda.col``; None without values."""
        return finish(self._map.sum(column, where, by=by))

    def min(
        self, column: Column, where: Condition | Operand | None = None, *, by: By = None
    ) -> Any:
        """The smallest value; None without values."""
        return finish(self._map.min(column, where, by=by))

    def max(
        self, column: Column, where: Condition | Operand | None = None, *, by: By = None
    ) -> Any:
        """The largest value; None without values."""
        return finish(self._map.max(column, where, by=by))

    def avg(
        self, column: Column, where: Condition | Operand | None = None, *, by: By = None
    ) -> Any:
        """The average; None without values."""
        return finish(self._map.avg(column, where, by=by))

    def is_empty(self) -> bool:
        """Whether the map has no entry."""
        return finish(self._map.is_empty())

    def remove_all(self, where: Condition | Operand) -> int:
        """Remove the entries for which ``where`` holds, all at one moment; their number."""
        return finish(self._map.remove_all(where))

    def truncate(self) -> None:
        """Remove all entries, at one moment; the map stays. As TRUNCATE."""
        finish(self._map.truncate())

    def clear(self) -> None:
        """``truncate`` by its other name."""
        finish(self._map.clear())

    def destroy(self) -> None:
        """Drop the map with all its entries, as ``client.drop_map``. A rollback brings it back.
        UndefinedMap."""
        finish(self._map.destroy())

    # --- indexes ---

    def create_index(
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
        return finish(
            self._map.create_index(
                *columns,
                kind=kind,
                descending=descending,
                name=name,
                if_not_exists=if_not_exists,
            )
        )

    def drop_index(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a secondary index of this map."""
        finish(self._map.drop_index(name, if_exists=if_exists))

    # --- changes ---

    def listen(
        self,
        callback: Callable[[EntryEvent], object] | None = None,
        *,
        where: Condition | Operand | None = None,
        key: Any = None,
        values: bool = True,
        initial: bool = False,
        buffer: int = LISTENER_EVENTS,
    ) -> Listener[EntryEvent]:
        """The changes of this map from now on, as they are committed: iterate over the result, or
        give a ``callback``; see ``Listener``.

        ``where``: only entries that meet a condition over ``remuda.col`` (one that ceases to meet
        it is told as removed); ``key``: only this one. ``values=False``: events have keys, but no
        values. ``initial``: first an event INITIAL for each entry that is there. ``buffer``: events
        that may wait here for a slow reader. Raises UndefinedMap, InsufficientPrivilege,
        LimitExceeded, and errors of the condition.
        """

        return Listener(
            self._core,
            lambda core: self._map.over(core).listen(
                where=where, key=key, values=values, initial=initial, buffer=buffer
            ),
            callback,
        )

    def changes(
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
        return ChangeStream(
            self._core,
            lambda core: self._map.over(core).changes(from_, where=where, rows=rows),
        )

    # --- as a dictionary ---

    def __getitem__(self, key: K) -> V:
        found = self.get(key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        value: V = found
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return self.keys()

    def __len__(self) -> int:
        return self.size()

    def __bool__(self) -> bool:
        """A handle is always true: asking for its truth does not count entries on the cluster."""
        return True

    def pop(self, key: K, default: Any = _MISSING) -> Any:
        """Remove the entry; its value, else ``default``. KeyError when neither is there."""
        if default is _MISSING:
            return finish(self._map.pop(key))
        return finish(self._map.pop(key, default))

    def setdefault(self, key: K, default: V) -> V:
        """The value of ``key``; ``default``, which is stored, when there is none."""
        return finish(self._map.setdefault(key, default))

    def update(self, entries: Mapping[K, V] | Iterable[tuple[K, V]] = (), **named: V) -> None:
        """Store many entries, all or none: ``put_all``. Names are keys, as of ``dict.update``."""
        finish(self._map.update(entries, **named))

    def popitem(self) -> tuple[K, V]:
        """Remove an entry, whichever, and return its key and value. KeyError when there is none."""
        return finish(self._map.popitem())

    def __repr__(self) -> str:
        return repr(self._map)

    def _repr_html_(self) -> str:
        """For notebooks: some entries."""
        rows = [
            f"<tr><td>{html.escape(repr(key))}</td><td>{html.escape(repr(value))}</td></tr>"
            for key, value in islice(self.entries(), _SHOWN)
        ]
        head = html.escape(repr(self))
        return f"<pre>{head}</pre><table><tr><th>key</th><th>value</th></tr>{''.join(rows)}</table>"


MutableMapping.register(Map)
