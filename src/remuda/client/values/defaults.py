"""Values for the columns of a map for which an object or a table has no field.

The client computes defaults by itself, at its own clock: a constant is in the schema, anything else
is an expression that the SQL layers evaluate, which are loaded only then.
"""

from __future__ import annotations

import time

import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue, values_to_array


class Defaults:
    def __init__(self, schema: MapSchema) -> None:
        self._schema = schema

    def value(self, position: int) -> PhysicalValue:
        """For one row. Raises the DataErrors of the expression."""
        column = self._schema.columns[position]
        default = column.default
        if default is None or default.constant:
            return None if default is None else default.value
        from remuda.session.definitions import default_value  # noqa: PLC0415 (the binder is slow to import)

        return default_value(column, _now())

    def array(self, position: int, rows: int) -> pa.Array:
        """For many rows, in engine form."""
        column = self._schema.columns[position]
        default = column.default
        if default is None or default.constant:
            one = values_to_array([None if default is None else default.value], column.type)
            return pa.nulls(rows, one.type) if default is None else pa.repeat(one[0], rows)
        from remuda.session.definitions import default_values  # noqa: PLC0415 (the binder is slow to import)

        return default_values(column, rows, _now())


def _now() -> int:
    return time.time_ns() // 1000
