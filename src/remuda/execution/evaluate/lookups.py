"""``lookup(key, keys, values)``: the value that stands beside the key in two constant lists."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import values_to_array
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


LOOKUPS: dict[str, Callable[[Call], Kernel]] = {"lookup": _lookup, "lookup_each": _lookup_each}
