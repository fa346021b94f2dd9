"""Numbers of rows in maps that make their own keys."""

from __future__ import annotations

import pyarrow as pa

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import ROW_ID, Column, MapSchema
from remuda.datatypes.sql import BIGINT
from remuda.member.state.constraints import Constraints

WALL = 1_795_000_000_000_000


def test_rows_keep_their_numbers_beside_rows_that_get_one():
    """A page of INSERT ... ON CONFLICT has both. The numbers are above 2 ** 53."""
    schema = MapSchema("loose", (Column("a", BIGINT), Column(ROW_ID, BIGINT, False)), (ROW_ID,), ())
    kept = [15_306_237_135_886_801, 15_306_237_135_886_800, None, 15_306_237_135_886_803, None]
    columns = [pa.array([1, 2, 3, 4, 5]), pa.array(kept)]
    batch = pa.record_batch(columns, schema=engine_schema(schema))
    found = Constraints(lambda: WALL).with_row_ids(batch, schema, 2)
    given = [each for each in found.column(1).to_pylist() if each not in kept]
    assert [each for each in found.column(1).to_pylist() if each in kept] == kept[:2] + kept[3:4]
    assert len(given) == 2
    assert given[1] == given[0] + 1 > WALL
