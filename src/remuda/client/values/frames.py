"""Arrow tables as pandas and polars DataFrames, lists of Arrow's extension types included."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import NotSupported

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


def to_polars(table: pa.Table) -> Any:
    """The table as a polars DataFrame. NotSupported without the package."""
    try:
        polars = import_module("polars")
    except ImportError:
        raise NotSupported(
            "to_polars() needs the package polars", hint="pip install polars"
        ) from None
    return polars.from_arrow(table)
