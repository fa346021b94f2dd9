"""Keys and values as objects of the application: to rows of the engine and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

import pyarrow as pa

from remuda.client.values.convert import Encoder, encoded_column, encoder, mismatch, shown
from remuda.client.values.decoding import decoder
from remuda.client.values.defaults import Defaults
from remuda.client.values.fields import Shape, class_shape, object_hint, shape_of
from remuda.client.values.row import Row, row_class
from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import KEY_COLUMN, ROW_ID, VALUE_COLUMN, MapSchema, ValueShape
from remuda.datatypes.values import PhysicalValue, array_to_values
from remuda.errors import ObjectMismatch

PhysicalRow: TypeAlias = tuple[PhysicalValue, ...]
_Build: TypeAlias = Callable[[Sequence[Any]], Any]

_FROM_KEY, _NULL, _FROM_VALUE = 0, 1, 2
_Step: TypeAlias = tuple[int, int, Encoder]
"""Source, position in the source, encoder."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Plan:
    """Where each column of a row comes from, for values of one shape."""

    shape: Shape
    steps: tuple[_Step, ...]
    repeated: tuple[tuple[int, int, Encoder], ...]  # key columns the value holds as well
    defaults: tuple[int, ...] = ()  # columns without a field, which get their default


class ObjectCodec:
    """Turns objects into rows of one map and back. Immutable apart from caches; thread-safe.

    ``value_type`` and ``key_type`` are the classes that come back; None gives ``Row`` (or the bare
    scalar). Every refusal is an ``ObjectMismatch`` that names the map, the field, the expected and
    the found type.
    """

    def __init__(
        self, schema: MapSchema, value_type: type | None = None, key_type: type | None = None
    ) -> None:
        self.schema = schema
        self.key_types = tuple(schema.columns[i].type for i in schema.key_positions)
        self._encoders = tuple(encoder(schema.name, column) for column in schema.given.columns)
        self._arrow = engine_schema(schema)
        self._decoders = tuple(
            (i, d) for i, column in enumerate(schema.columns) if (d := decoder(column)) is not None
        )
        self._scalar_key = len(schema.key) == 1
        self._key_encoders = tuple(self._encoders[i] for i in schema.key_positions)
        self._defaults = Defaults(schema)
        self._plans: dict[object, _Plan] = {}
        self._plans_by_class: dict[type, _Plan] = {}
        """Of classes whose objects all have the same fields, unlike mappings."""
        self.build_value = self._value_builder(value_type)
        self._build_values = self._values_builder(value_type)
        self.value = self._decoded_value if self._decoders else self.build_value
        """The value object of a physical row."""
        self.build_key = self._key_builder(key_type)

    # --- objects to rows ---

    def key(self, key: object) -> PhysicalRow:
        """The key's physical values in the order of the key columns."""
        if self._scalar_key:
            cls = type(key)
            if cls is int or cls is str:
                return (self._key_encoders[0](key),)
            parts = self._key_parts(key) if self._is_composite(key) else (key,)
        else:
            parts = self._key_parts(key)
        return tuple(encode(part) for encode, part in zip(self._key_encoders, parts, strict=True))

    def row(self, key: object, value: object) -> PhysicalRow:
        """The whole row, in schema column order, of an entry."""
        physical_key = self.key(key)
        schema = self.schema
        if schema.value_shape is ValueShape.SCALAR:
            position = schema.position[VALUE_COLUMN]
            if value is None:
                raise mismatch(schema.name, schema.columns[position], "None")
            row: list[PhysicalValue] = [None] * len(schema.columns)
            row[position] = self._encoders[position](value)
            for i, item in zip(schema.key_positions, physical_key, strict=True):
                row[i] = item
            return tuple(row)
        plan = self._plans_by_class.get(type(value)) or self._plan_of(value)
        items = plan.shape.take(value)
        for position, index, encode in plan.repeated:
            if physical_key[index] != encode(items[position]):
                raise mismatch(
                    schema.name,
                    schema.columns[schema.key_positions[index]],
                    f"{shown(items[position])} in the value of an entry with another key",
                    "A key column inside the value must equal the key.",
                )
        sources: tuple[Sequence[Any], Sequence[Any], Sequence[Any]] = (physical_key, _NONE, items)
        values = []
        for source, index, encode in plan.steps:
            item = sources[source][index]
            values.append(encode(item) if source == _FROM_VALUE else item)
        for position in plan.defaults:
            values[position] = self._defaults.value(position)
        return tuple(values)

    # --- many objects to columns ---

    def key_columns(self, keys: Sequence[object]) -> list[pa.Array] | None:
        """The columns of many keys in engine form, if they are plain values of a single column;
        None otherwise (``key`` then takes each apart, and tells what is wrong with it)."""
        if not self._scalar_key or set(map(type, keys)) not in _PLAIN_KEYS:
            return None
        column = self.schema.columns[self.schema.key_positions[0]]
        try:
            return [encoded_column(column, self._key_encoders[0], keys)]
        except ObjectMismatch:
            return None

    def batch(self, pairs: Sequence[tuple[Any, Any]]) -> pa.RecordBatch | None:
        """The rows of many entries in engine form, made column by column; of pairs with the same
        key the last one counts. None where ``row`` must look at each: the values are taken apart in
        several ways, a key column is in the value as well, a column has a default, keys are of
        several columns, or something does not fit, which ``row`` then says better."""
        keys, values = zip(*pairs, strict=True)
        key_columns = self.key_columns(keys)
        if key_columns is None:
            return None
        last = dict(pairs)
        if len(last) < len(pairs):
            keys, values = tuple(last), tuple(last.values())
            key_columns = self.key_columns(keys)
            assert key_columns is not None
        arrays: list[pa.Array] = []
        try:
            found = self._fields(values)
            if found is None:
                return None
            steps, fields = found
            for source, index, encode in steps:
                position = len(arrays)
                if source == _FROM_VALUE:
                    column = self.schema.columns[position]
                    arrays.append(encoded_column(column, encode, fields[index]))
                elif source == _FROM_KEY:
                    arrays.append(key_columns[index])
                else:
                    arrays.append(pa.nulls(len(values), self._arrow.field(position).type))
        except ObjectMismatch:
            return None
        return pa.RecordBatch.from_arrays(arrays, schema=self._arrow)

    def _fields(
        self, values: Sequence[object]
    ) -> tuple[Sequence[_Step], Sequence[Sequence[object]]] | None:
        """Where each column comes from, and the fields of all values, if the values are taken apart
        in one way, and each column by itself. Raises ObjectMismatch."""
        if self.schema.value_shape is ValueShape.SCALAR:
            return None if None in values else (self._scalar_steps(), [values])
        if len(set(map(type, values))) != 1:
            return None
        first = values[0]
        if isinstance(first, Mapping) and len(set(map(tuple, values))) != 1:  # type: ignore[arg-type]
            return None
        plan = self._plan_of(first)
        if plan.repeated or plan.defaults:
            return None
        return plan.steps, list(zip(*map(plan.shape.take, values), strict=True))

    def _scalar_steps(self) -> list[_Step]:
        schema = self.schema
        value, keys = schema.position[VALUE_COLUMN], schema.key_positions
        return [
            (_FROM_VALUE, 0, encode)
            if position == value
            else (_FROM_KEY, keys.index(position), encode)
            if position in keys
            else (_NULL, 0, encode)
            for position, encode in enumerate(self._encoders)
        ]

    # --- rows to objects ---

    def values(self, batch: pa.RecordBatch) -> list[Any]:
        """The value objects of rows in engine form."""
        columns: list[Sequence[Any]] = [
            array_to_values(array, column.type)
            for array, column in zip(batch.columns, self.schema.columns, strict=True)
        ]
        for position, decode in self._decoders:
            columns[position] = list(map(decode, columns[position]))
        return self._build_values(columns)

    def python_row(self, row: Sequence[PhysicalValue]) -> Sequence[Any]:
        """Python values of a physical row."""
        if not self._decoders:
            return row
        values: list[Any] = list(row)
        for position, decode in self._decoders:
            values[position] = decode(values[position])
        return values

    def _decoded_value(self, row: Sequence[PhysicalValue]) -> Any:
        return self.build_value(self.python_row(row))

    # --- how a row becomes an object ---

    def _value_builder(self, value_type: type | None) -> _Build:
        schema = self.schema
        if schema.value_shape is ValueShape.SCALAR:
            position = schema.position[VALUE_COLUMN]
            return lambda values: values[position]
        shape = class_shape(value_type) if value_type is not None else None
        if value_type is None or shape is None or issubclass(value_type, Row):
            names = [name for name in schema.position if not _anonymous(schema, name)]
            return _picker(row_class(tuple(names))._make, [schema.position[n] for n in names])
        return _constructor(schema, value_type, shape)

    def _values_builder(
        self, value_type: type | None
    ) -> Callable[[Sequence[Sequence[Any]]], list[Any]]:
        """``build_value`` for all rows, given their columns. No step in between for those classes
        that take their fields by position."""
        schema, build = self.schema, self.build_value
        shape = None if value_type is None else class_shape(value_type)
        scalar = schema.value_shape is ValueShape.SCALAR
        if shape is None or value_type is None or scalar or not _takes_all(value_type):
            return lambda columns: list(map(build, zip(*columns, strict=True)))
        positions = [schema.position[name] for name in shape.names]
        return lambda columns: list(map(value_type, *[columns[i] for i in positions]))

    def _key_builder(self, key_type: type | None) -> _Build:
        schema = self.schema
        if self._scalar_key and key_type is None:
            position = schema.key_positions[0]
            return lambda values: values[position]
        shape = class_shape(key_type) if key_type is not None else None
        if key_type is None or shape is None or issubclass(key_type, Row):
            return _picker(row_class(schema.key)._make, list(schema.key_positions))
        return _constructor(schema, key_type, shape)

    # --- keys in parts ---

    def _is_composite(self, key: Any) -> bool:
        return isinstance(key, tuple | Mapping) or class_shape(type(key)) is not None

    def _key_parts(self, key: object) -> Sequence[Any]:
        schema = self.schema
        shape = shape_of(key)
        if shape is not None and set(shape.names) == set(schema.key):
            items = dict(zip(shape.names, shape.take(key), strict=True))
            return [items[name] for name in schema.key]
        if isinstance(key, tuple) and len(key) == len(schema.key):
            return key
        found = f"the fields {', '.join(map(str, shape.names))}" if shape else repr(key)
        raise ObjectMismatch(
            f'map "{schema.name}": expected a key of '
            + ", ".join(f"{name} {schema.column(name).type}" for name in schema.key)
            + f", found {type(key).__name__} ({found})"
        )

    # --- plans ---

    def _plan_of(self, value: object) -> _Plan:
        """Raises ObjectMismatch for what is no object with fields, or has not those of the map."""
        schema, cls = self.schema, type(value)
        shape = shape_of(value)
        if shape is None:
            raise ObjectMismatch(
                f'map "{schema.name}": expected an object with the fields '
                f"{', '.join(schema.columns[i].name for i in schema.value_positions)}, "
                f"found {cls.__name__}",
                hint=object_hint(value),
            )
        plan = self._plans.get(shape) or self._plan(shape)
        if not isinstance(value, Mapping) and len(self._plans_by_class) < _PLANS_KEPT:
            self._plans_by_class[cls] = plan
        return plan

    def _plan(self, shape: Shape) -> _Plan:
        schema = self.schema
        index_in_value = {name: i for i, name in enumerate(shape.names)}
        unknown = [str(name) for name in shape.names if name not in schema.position]
        if unknown:
            raise ObjectMismatch(
                f'map "{schema.name}" has no column for the field "{unknown[0]}"',
                detail="columns: " + ", ".join(str(column) for column in schema.columns),
            )
        steps, repeated, defaults = [], [], []
        for position, column in enumerate(schema.columns):
            encode = self._encoders[position]
            if column.name in schema.key:
                in_key = schema.key.index(column.name)
                steps.append((_FROM_KEY, in_key, encode))
                if column.name in index_in_value:
                    repeated.append((index_in_value[column.name], in_key, encode))
            elif column.name in index_in_value:
                steps.append((_FROM_VALUE, index_in_value[column.name], encode))
            elif column.nullable or column.default is not None or column.generated:
                steps.append((_NULL, 0, encode))
                if column.default is not None:
                    defaults.append(position)
            else:
                raise mismatch(schema.name, column, "no such field in the object")
        plan = _Plan(shape, tuple(steps), tuple(repeated), tuple(defaults))
        if len(self._plans) < _PLANS_KEPT:
            self._plans[shape] = plan
        return plan


_NONE = (None,)
_PLAIN_KEYS = ({int}, {str})
_PLANS_KEPT = 1000


def _anonymous(schema: MapSchema, name: str) -> bool:
    """Key columns that the user never named: no part of the value that comes back."""
    return name in schema.key and (
        name in (KEY_COLUMN, ROW_ID) or name.startswith(f"{KEY_COLUMN}_")
    )


def _picker(make: Callable[[Sequence[Any]], Any], positions: list[int]) -> _Build:
    if positions == list(range(len(positions))):
        count = len(positions)
        return lambda values: make(values[:count])
    return lambda values: make([values[i] for i in positions])


def _constructor(schema: MapSchema, cls: type, shape: Shape) -> _Build:
    missing = [name for name in shape.names if name not in schema.position]
    if missing:
        raise ObjectMismatch(
            f'map "{schema.name}" has no column for the field "{missing[0]}" of {cls.__name__}',
            detail="columns: " + ", ".join(str(column) for column in schema.columns),
        )
    positions = [schema.position[name] for name in shape.names]
    if dataclasses.is_dataclass(cls) and not all(field.init for field in dataclasses.fields(cls)):
        return _field_by_field(cls, {f.name: f.init for f in dataclasses.fields(cls)}, positions)
    if _keyword_only(cls):
        pairs = list(zip(shape.names, positions, strict=True))
        return lambda values: cls(**{name: values[i] for name, i in pairs})
    if positions == list(range(len(positions))) and len(positions) == len(schema.columns):
        return lambda values: cls(*values)
    if len(positions) == 1:
        (only,) = positions
        return lambda values: cls(values[only])
    take = itemgetter(*positions)
    return lambda values: cls(*take(values))


def _takes_all(cls: type) -> bool:
    """Whether an object of the class is made of all of its fields, by position."""
    if not dataclasses.is_dataclass(cls):
        return not issubclass(cls, Row)
    return all(field.init and not field.kw_only for field in dataclasses.fields(cls))


def _keyword_only(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) and any(f.kw_only for f in dataclasses.fields(cls))


def _field_by_field(cls: type, init: Mapping[str, bool], positions: list[int]) -> _Build:
    """For dataclasses with computed fields: pass the others, let the class compute the rest."""
    pairs = [(name, i) for (name, given), i in zip(init.items(), positions, strict=True) if given]
    return lambda values: cls(**{name: values[i] for name, i in pairs})
