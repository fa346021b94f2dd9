"""The part of docs/sql.md about secondary indexes."""

from __future__ import annotations

from typing import Final

INDEXES: Final = (
    ("SORTED, the default: equality, ranges, LIKE 'x%', IS NULL, order; btree is the same",
     "CREATE INDEX [IF NOT EXISTS] by_delay ON flights (delay)"),
    ("several columns: equalities on the first ones, then one range; also serves their order",
     "CREATE INDEX by_carrier ON flights USING sorted (carrier, delay DESC)"),
    ("HASH: equality of all columns; 16 bytes for each row, whatever the types",
     "CREATE INDEX by_origin ON flights USING hash (origin)"),
    ("BITMAP: one column with few values; <> and NOT IN, too; the clause TYPE is the same as USING",
     "CREATE INDEX carriers ON flights (carrier) TYPE BITMAP"),
    ("unique values, as UNIQUE in the definition of the map; [NULLS NOT DISTINCT]",
     "CREATE UNIQUE INDEX one ON flights (id, delay DESC)"),
    ("DROP INDEX", "DROP INDEX [IF EXISTS] by_delay"),
    ("kind, columns, state and size of each; SHOW INDEXES FROM map", "SHOW INDEXES"),
)  # fmt: skip

NOTES: Final = """\
CREATE INDEX returns when every member has built its part; writes go on meanwhile, and if it is
cancelled, the index goes. Names of indexes are unique in a schema. `EXPLAIN` shows an index scan
with the points and ranges that it asks for, unions (OR over several columns) and intersections of
indexes, scans in the order of an index (for ORDER BY with LIMIT), and lookup joins, which find the
matches of each row by index or by primary key. An index is used where few rows are left; a range of
parameters decides that when the statement runs. `client.map(m).create_index("a", kind="hash")` and
`drop_index` do the same from Python, and conditions (`where=`) use indexes as SQL does.
"""
