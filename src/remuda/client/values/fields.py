"""The parts of Python objects: the named fields of dataclasses, named tuples and mappings."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID
from weakref import WeakKeyDictionary

import numpy as np

from remuda.client.values.row import Row
from remuda.datatypes import sql
from remuda.datatypes.sql import Kind, SqlType
from remuda.datatypes.times.intervals import Interval
from remuda.errors import InputError

INFERRED_DECIMAL = sql.decimal(38, 10)
"""The type of a column that is inferred from ``Decimal``: the digits of one object say little about
the next one's. CREATE TABLE, or ``Annotated[Decimal, remuda.decimal(12, 2)]``, says it exactly."""

_ANNOTATIONS: dict[type, SqlType] = {
    bool: sql.BOOLEAN,
    int: sql.BIGINT,
    float: sql.DOUBLE,
    str: sql.VARCHAR,
    bytes: sql.BYTEA,
    Decimal: INFERRED_DECIMAL,
    date: sql.DATE,
    time: sql.TIME,
    datetime: sql.TIMESTAMP,
    timedelta: sql.INTERVAL,
    Interval: sql.INTERVAL,
    UUID: sql.UUID,
    dict: sql.JSON,
}

_SCALARS = (*_ANNOTATIONS, Mapping, list, tuple, type(None), np.generic, np.ndarray)
"""Classes of values, and of those that are parts of them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """How objects of one class are taken apart: ``take(object)`` gives values as ``names`` go."""

    names: tuple[str, ...]
    take: Callable[[Any], Sequence[Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """The SQL type that an annotation stands for; ``type`` is None when it does not say a SQL
    type."""

    type: SqlType | None
    nullable: bool


_SHAPES: WeakKeyDictionary[type, Shape | None] = WeakKeyDictionary()


def shape_of(value: Any) -> Shape | None:
    """How to take ``value`` apart, or None when it is no object with named fields."""
    cls = type(value)
    if isinstance(value, Mapping):
        return _mapping_shape(tuple(value))
    return class_shape(cls)


def class_shape(cls: type) -> Shape | None:
    """The shape of a dataclass, a named tuple or a row class; None for everything else."""
    try:
        return _SHAPES[cls]
    except KeyError:
        return _SHAPES.setdefault(cls, _class_shape(cls))


def _class_shape(cls: type) -> Shape | None:
    if dataclasses.is_dataclass(cls):
        names = tuple(field.name for field in dataclasses.fields(cls))
        return Shape(names, _attributes(names))
    if issubclass(cls, tuple) and (issubclass(cls, Row) or hasattr(cls, "_fields")):
        return Shape(tuple(cls._fields), tuple)
    return None


def object_hint(value: object) -> str:
    """A hint for errors about an object that is no value of a map or of a field; ""
    where its class is one of values."""
    cls = type(value)
    name = cls.__name__
    if class_shape(cls) is not None:
        return (
            f"An object within an object is no column: give its fields in place of {name}, or a "
            "dict of them, which is JSON."
        )
    return "" if cls.__module__ == "builtins" or _is_scalar(cls) else plain_hint(cls)


def plain_hint(cls: type) -> str:
    """A hint for errors about a class whose fields are not known."""
    return (
        f"Make {cls.__name__} a dataclass (@dataclasses.dataclass) or a typing.NamedTuple, or give "
        "a dict of its fields."
    )


def check_type(what: str, cls: object) -> None:
    """Raises InputError when no value of a map can be of ``cls``. ``what`` is its name."""
    if cls is None or cls is Any or cls is object:
        return
    if isinstance(cls, type) and _SHAPES.get(cls) is not None:  # met before
        return
    cls = get_origin(cls) or cls
    if cls is object:
        return
    if not isinstance(cls, type):
        raise InputError(f"{what} is a class, found {cls!r}")
    if class_shape(cls) is None and not _is_scalar(cls):
        raise InputError(
            f"{what} is a dataclass, a named tuple or the class of a scalar, found the class "
            f"{cls.__name__}",
            hint=plain_hint(cls),
        )


def _is_scalar(cls: type) -> bool:
    """Whether the objects of a class can be values without fields of their own."""
    return issubclass(cls, _SCALARS)


def declared_fields(cls: type) -> dict[str, Declared]:
    """Field name -> what its annotation declares; {} when there are no usable annotations."""
    if not (dataclasses.is_dataclass(cls) or issubclass(cls, tuple)) or issubclass(cls, Row):
        return {}
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (NameError, TypeError):  # a forward reference that cannot be resolved from here
        return {}
    shape = class_shape(cls)
    names = shape.names if shape else ()
    return {name: declared(hints[name]) for name in names if name in hints}


def declared(annotation: object) -> Declared:
    """``int``: BIGINT NOT NULL; ``int | None``: BIGINT; ``Annotated[..., SqlType]``: that type;
    ``list[int]``: BIGINT[]; ``dict``: JSON."""
    origin = get_origin(annotation)
    if origin is Annotated:
        base, *extras = get_args(annotation)
        inner = declared(base)
        for extra in extras:
            if isinstance(extra, SqlType):
                return Declared(extra, inner.nullable)
        return inner
    if origin in (Union, types.UnionType):
        arms = [arm for arm in get_args(annotation) if arm is not type(None)]
        nullable = len(arms) < len(get_args(annotation))
        inner = declared(arms[0]) if len(arms) == 1 else Declared(None, True)
        return Declared(inner.type, nullable or inner.nullable)
    if origin is typing.Literal:
        kinds = {type(arm) for arm in get_args(annotation)}
        return declared(kinds.pop()) if len(kinds) == 1 else Declared(None, True)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Declared(sql.JSON, False)
    if origin in (list, Sequence):
        return Declared(_array_of(declared(get_args(annotation)[0]).type), False)
    if annotation is Any or annotation is object:
        return Declared(None, True)
    known = _ANNOTATIONS.get(annotation) if isinstance(annotation, type) else None
    return Declared(known, False)


def _array_of(element: SqlType | None) -> SqlType | None:
    """Lists of lists or mappings are JSON."""
    if element is None:
        return None
    nested = element.kind in (Kind.ARRAY, Kind.JSON)
    return sql.JSON if nested else sql.array(element)


@lru_cache(maxsize=4096)
def _mapping_shape(names: tuple[str, ...]) -> Shape:
    def take(value: Mapping[str, Any]) -> Sequence[Any]:
        return [value[name] for name in names]

    return Shape(names, take)


def _attributes(names: tuple[str, ...]) -> Callable[[Any], Sequence[Any]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)
