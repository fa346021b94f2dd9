"""``Map``: the entries of one map as a dictionary of the application's own objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.client.asynchronous import map as asynchronous
from remuda.client.core import Core
from remuda.client.driving import finish, items
from remuda.client.predicate import Condition, Operand
from remuda.datatypes.schema import MapSchema

if TYPE_CHECKING:
    import pandas as pd


class Map:
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
        self._map = asynchronous.Map(core, name, value_type, key_type)

    @property
    def name(self) -> str:
        """The name of the map."""
        return self._map.name

    @property
    def schema(self) -> MapSchema:
        """The schema as the cluster has it now."""
        return finish(self._map.schema())

    # --- one entry ---

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        return finish(self._map.get(key, default))

    def put(self, key: Any, value: Any) -> None:
        """Store ``value``, whether the key exists or not; ``get_and_put`` tells the old value."""
        finish(self._map.put(key, value))

    def get_and_put(self, key: Any, value: Any, default: Any = None) -> Any:
        """Store ``value``; the value before, or ``default``."""
        return finish(self._map.get_and_put(key, value, default))

    def put_if_absent(self, key: Any, value: Any) -> bool:
        """Store ``value`` unless the key exists; whether it was stored."""
        return finish(self._map.put_if_absent(key, value))

    def replace(self, key: Any, value: Any) -> bool:
        """Store ``value`` if the key exists; whether it was stored."""
        return finish(self._map.replace(key, value))

    def remove(self, key: Any, default: Any = None) -> Any:
        """Remove the entry; its value, or ``default`` when there was none."""
        return finish(self._map.remove(key, default))

    def delete(self, key: Any) -> bool:
        """Remove the entry; whether there was one."""
        return finish(self._map.delete(key))

    def contains(self, key: Any) -> bool:
        """Whether the key exists; also ``key in map``."""
        return finish(self._map.contains(key))

    # --- many entries ---

    def get_all(self, keys: Iterable[Any]) -> dict[Any, Any]:
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
        return finish(self._map.put_all(entries, key=key, replicated=replicated))

    def entries(self, where: Condition | Operand | None = None) -> Iterator[tuple[Any, Any]]:
        """(key, value) of each entry, streamed; ``where`` is a condition over ``remuda.col``."""
        return chain.from_iterable(items(self._map.entry_lists(where)))

    def values(self, where: Condition | Operand | None = None) -> Iterator[Any]:
        """The value of each entry, streamed."""
        return chain.from_iterable(items(self._map.value_lists(where)))

    def keys(self, where: Condition | Operand | None = None) -> Iterator[Any]:
        """The key of each entry, streamed."""
        return chain.from_iterable(items(self._map.key_lists(where)))

    def size(self) -> int:
        """The number of entries on the whole cluster; also ``len(map)``."""
        return finish(self._map.size())

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

    # --- as a dictionary ---

    def __getitem__(self, key: Any) -> Any:
        found = self.get(key, _ABSENT)
        if found is _ABSENT:
            raise KeyError(key)
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: Any) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def __contains__(self, key: Any) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[Any]:
        return self.keys()

    def __len__(self) -> int:
        return self.size()

    def __bool__(self) -> bool:
        """A handle is always true: asking for its truth does not count entries on the cluster."""
        return True

    def __repr__(self) -> str:
        return f"<Map {self.name}>"


_ABSENT = object()
