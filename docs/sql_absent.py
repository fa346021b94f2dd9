"""What users of other databases may look for: those that are refused are listed in docs/sql.md."""

from __future__ import annotations

from typing import Final

FURTHER: Final = (
    ("indexes on expressions", "CREATE INDEX i ON flights (abs(delay))"),
    ("partial indexes", "CREATE INDEX i ON flights (delay) WHERE delay > 0"),
    ("materialized views", "CREATE MATERIALIZED VIEW v AS SELECT 1 AS a"),
    ("ALTER COLUMN TYPE with USING", "ALTER TABLE flights ALTER delay TYPE BIGINT USING delay + 1"),
    ("WHERE CURRENT OF", "DELETE FROM flights WHERE CURRENT OF c"),
    ("privileges on columns", "GRANT SELECT (carrier) ON flights TO somebody"),
    ("roles that have members", "GRANT staff TO somebody"),
    ("CREATE FUNCTION", "CREATE FUNCTION f() RETURNS INTEGER LANGUAGE SQL AS 'SELECT 1'"),
    ("arrays of several dimensions", "SELECT ARRAY[ARRAY[1], ARRAY[2]]"),
    ("a result without columns", "SELECT FROM flights"),
    ("bit strings", "SELECT B'101'"),
    ("infinite dates and timestamps", "SELECT DATE 'infinity'"),
    (
        "several changes in one statement",
        """WITH gone AS (DELETE FROM flights RETURNING id, carrier)
INSERT INTO airlines SELECT id, carrier FROM gone""",
    ),
)
"""(what, a statement that needs it)."""
