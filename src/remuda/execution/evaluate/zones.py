"""``timestamp AT TIME ZONE zone``: the clock there, or the moment of a clock there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.sql import INTERVAL, TIMESTAMP
from remuda.datatypes.times.intervals import unpack
from remuda.datatypes.times.zone_columns import offsets
from remuda.datatypes.times.zones import Zone, zone
from remuda.errors import DatetimeOverflow, InvalidParameterValue
from remuda.execution.arrays import Data, array_from, data_of
from remuda.execution.evaluate.kernel import Kernel, column
from remuda.execution.evaluate.numbers import Value, invalid_mask, validity
from remuda.plan.expression import Call

_LIMIT = 2**62


def _timezone(call: Call) -> Kernel:
    by_interval = call.arguments[0].type == INTERVAL
    to_utc = call.arguments[1].type == TIMESTAMP
    arrow = engine_type(call.type)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        points = column(values[1], rows)
        invalid = invalid_mask(*values)
        data = data_of(points)
        if invalid is not None:
            data = np.where(invalid, 0, data)
        if len(data) and max(-int(data.min()), int(data.max())) > _LIMIT:
            raise DatetimeOverflow("timestamp out of range")
        east = np.zeros(rows, np.int64)
        for name, places in _by_zone(values[0], rows):
            found = _zone(name, by_interval)
            east[places] = offsets(found, data[places], to_utc)
        moved = data - east if to_utc else data + east
        return array_from(moved, arrow, validity(*values))

    return kernel


def _by_zone(value: Value, rows: int) -> list[tuple[str | bytes, Data]]:
    """Each zone with the rows that name it."""
    if isinstance(value, pa.Scalar):
        return [(value.as_py(), np.arange(rows))]
    encoded = value.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    names = encoded.dictionary.to_pylist()
    return [(name, np.flatnonzero(codes == code)) for code, name in enumerate(names)]


def _zone(name: str | bytes, by_interval: bool) -> Zone:
    if not by_interval:
        return zone(str(name))
    assert isinstance(name, bytes)
    months, days, micros = unpack(name)
    if months or days:
        raise InvalidParameterValue("interval time zone must not include months or days")
    return Zone("", micros, None)


ZONE_FUNCTIONS: dict[str, Callable[[Call], Kernel]] = {"timezone": _timezone}
