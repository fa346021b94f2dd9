"""The result of SHOW INDEXES."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.datatypes.arrow import external_schema
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import BIGINT, VARCHAR
from remuda.session.answers import Answer

COLUMNS = (
    Column("name", VARCHAR, nullable=False),
    Column("map", VARCHAR, nullable=False),
    Column("kind", VARCHAR, nullable=False),
    Column("columns", VARCHAR, nullable=False),
    Column("state", VARCHAR, nullable=False),
    Column("bytes", BIGINT, nullable=False),
    Column("no_answer", VARCHAR),
)


def shown_indexes(
    catalog: Catalog, map_id: int | None, sizes: Mapping[int, int], silent: str | None
) -> Answer:
    """All indexes, or those of one map. ``sizes``: index id -> bytes on the members that answered;
    ``silent``: the others, as text."""
    rows = [
        (
            index.name,
            schema.name,
            ("UNIQUE " if index.unique else "") + index.kind.value.upper(),
            ", ".join(map(str, index.columns)),
            "ready" if index.ready else "building",
            sizes.get(index.index_id, 0),
            silent,
        )
        for schema in catalog.maps
        if map_id in (None, schema.map_id)
        for index in schema.indexes
    ]
    values = list(zip(*sorted(rows, key=itemgetter(0, 1)), strict=True)) or [() for _ in COLUMNS]
    schema = external_schema(COLUMNS)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return COLUMNS, pa.record_batch(arrays, schema=schema)
