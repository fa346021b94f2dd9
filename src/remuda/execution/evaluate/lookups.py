"""Values that stand beside a key, or beside the name of an object, in constant lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.identifiers import relation_parts, written_parts
from remuda.datatypes.sql import BIGINT, SqlType
from remuda.datatypes.values import values_to_array
from remuda.errors import UndefinedMap, UndefinedObject, UndefinedSchema
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.lists import bounds_of, list_array, ranges
from remuda.execution.evaluate.numbers import Value, validity
from remuda.plan.expression import Call, Expression, Literal


def _constants(argument: Expression) -> tuple[pa.Array, SqlType]:
    assert isinstance(argument, Literal)
    assert isinstance(argument.value, tuple)
    assert argument.type.element is not None
    return values_to_array(list(argument.value), argument.type.element), argument.type.element


def _found(call: Call) -> Callable[[pa.Array], pa.Array]:
    """NULL for keys that are not in the list."""
    keys, _ = _constants(call.arguments[1])
    values, type_ = _constants(call.arguments[2])

    def found(wanted: pa.Array) -> pa.Array:
        places = pc.index_in(wanted, value_set=keys, skip_nulls=True)
        return values.take(places).cast(engine_type(type_))

    return found


def _lookup(call: Call) -> Kernel:
    found = _found(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        return found(column(values[0], rows))

    return kernel


def _lookup_each(call: Call) -> Kernel:
    found = _found(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        lists = column(values[0], rows)
        starts, lengths = bounds_of(lists)
        flat = found(lists.values)
        kept = flat.take(pa.array(ranges(starts, lengths)))
        return list_array(kept, lengths, call.type, validity(lists))

    return kernel


def _named_object(call: Call) -> Kernel:
    """``named_object(name, names, oids, missing)``: the OID of the object that a text names, as
    ``regclass`` reads names. ``missing``: the class of the error for a name without an object, and
    the kind of object that its message tells; two empty texts for NULL instead of an error."""
    names, oids, missing = (_constants(argument)[0].to_pylist() for argument in call.arguments[1:])
    known: dict[str, int] = dict(zip(names, oids, strict=True))
    error, kind = missing

    def number(text: str) -> int | None:
        if error and text == "-":
            return 0
        if error and text.isdecimal():
            return int(text)
        parts = relation_parts(text)
        found = known.get(written_parts(parts))
        if found is None and error:
            raise _MISSING[error](f'{kind} "{".".join(parts)}" does not exist')
        return found

    def kernel(values: list[Value], rows: int) -> pa.Array:
        unique = column(values[0], rows).dictionary_encode()
        found = [number(text.strip()) for text in unique.dictionary.to_pylist()]
        return values_to_array(found, BIGINT).take(unique.indices)

    return kernel


_MISSING: Final = {
    error.__name__: error for error in (UndefinedMap, UndefinedSchema, UndefinedObject)
}

LOOKUPS: dict[str, Callable[[Call], Kernel]] = {
    "lookup": _lookup,
    "lookup_each": _lookup_each,
    "named_object": _named_object,
}
