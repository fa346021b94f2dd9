"""``Row``, the rows of SQL and of untyped maps. An immutable tuple whose items also have names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, ClassVar, SupportsIndex, overload

_ROW_CLASSES_KEPT = 1024


class Row(tuple[Any, ...]):
    """One row. ``row.delay``, ``row["delay"]`` and ``row[2]`` are the same item.

    A row equals a tuple with the same items and can be unpacked like one. A column whose name is no
    Python identifier, or begins with an underscore, is reached by ``row["..."]``. When two columns
    share a name, the name means the first of them.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    _positions: ClassVar[dict[str, int]] = {}

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Row:
        return tuple.__new__(cls, values)

    def _asdict(self) -> dict[str, Any]:
        """Column name -> value; of columns that share a name, the first."""
        return {name: self[position] for name, position in self._positions.items()}

    @overload
    def __getitem__(self, item: SupportsIndex | str) -> Any: ...
    @overload
    def __getitem__(self, item: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, item: SupportsIndex | slice | str) -> Any:
        if isinstance(item, str):
            try:
                return tuple.__getitem__(self, self._positions[item])
            except KeyError:
                raise KeyError(f"no column {item!r} in {self._fields}") from None
        return tuple.__getitem__(self, item)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no column {name!r} in {self._fields}")

    def __repr__(self) -> str:
        items = zip(self._fields, self, strict=True)
        return "Row(" + ", ".join(f"{name}={value!r}" for name, value in items) + ")"

    def __reduce__(self) -> tuple[Callable[..., Row], tuple[tuple[str, ...], tuple[Any, ...]]]:
        return _rebuild, (self._fields, tuple(self))


@lru_cache(maxsize=_ROW_CLASSES_KEPT)
def row_class(names: tuple[str, ...]) -> type[Row]:
    """The class of rows with these columns; a name shadows a method of tuple (``row.count``)."""
    positions: dict[str, int] = {}
    for index, name in enumerate(names):
        positions.setdefault(name, index)
    members: dict[str, Any] = {"__slots__": (), "_fields": names, "_positions": positions}
    for name, index in positions.items():
        if name.isidentifier() and not name.startswith("_"):
            members[name] = property(itemgetter(index))
    return type("Row", (Row,), members)


def make_rows(names: Sequence[str], columns: Sequence[Sequence[Any]], count: int) -> list[Row]:
    """Rows from columns of equal length; ``count`` matters when there are no columns."""
    cls = row_class(tuple(names))
    new = tuple.__new__
    if not columns:
        return [new(cls, ()) for _ in range(count)]
    return [new(cls, values) for values in zip(*columns, strict=True)]


def _rebuild(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return row_class(names)._make(values)
