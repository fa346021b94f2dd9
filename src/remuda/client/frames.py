"""Arrow tables as pandas DataFrames, lists of Arrow's extension types included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """``table.to_pandas()``; lists of UUID or JSON, which it does not take, become lists of
    objects."""
    wanting = [
        place
        for place, field in enumerate(table.schema)
        if pa.types.is_list(field.type) and isinstance(field.type.value_type, pa.BaseExtensionType)
    ]
    plain = table
    for place in wanting:
        plain = plain.set_column(place, table.schema.names[place], pa.nulls(table.num_rows))
    frame: pd.DataFrame = plain.to_pandas()
    for place in wanting:
        values = frame.iloc[:, place].astype(object)
        values[:] = table.column(place).to_pylist()
        frame.isetitem(place, values.array)
    return frame
