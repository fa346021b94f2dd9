"""Statements that random ones have found to end with an internal error: how they must end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import remuda
from remuda.errors import RemudaError

pytestmark = pytest.mark.cluster

NESTED = "42803: aggregate function calls cannot be nested"


@pytest.fixture(scope="module")
def client() -> Iterator[remuda.Client]:
    with remuda.start(members=1) as cluster, cluster.connect() as found:
        found.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, i INTEGER, d DOUBLE PRECISION)")
        found.sql("INSERT INTO t VALUES (1, 5, -1.7e308), (2, 6, 1.7e308)")
        yield found


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("SELECT id FROM t ORDER BY id LIMIT -3", "2201W: LIMIT must not be negative"),
        ("SELECT id FROM t ORDER BY id LIMIT (-9223372036854775807 - 1)",
         "2201W: LIMIT must not be negative"),
        # An aggregate over columns of an outer query alone belongs to that query.
        ("SELECT max((SELECT max(a.i) FROM t)) FROM t a", NESTED),
        ("SELECT max((SELECT x FROM (SELECT (SELECT min(a.i)) AS x FROM t) q LIMIT 1)) FROM t a",
         NESTED),
        ("SELECT max((SELECT max(a.i + t.i) FROM t)) FROM t a", [(12,)]),
        ("SELECT (SELECT max(a.i)) FROM t a", [(6,)]),
        ("DELETE FROM t WHERE id = -1 RETURNING (SELECT max(t.i) FROM t x)",
         "42803: aggregate functions are not allowed in RETURNING"),
        ("UPDATE t SET i = 1 RETURNING (SELECT x FROM (SELECT max(t.i) x FROM t y) q)",
         "42803: aggregate functions are not allowed in RETURNING"),
        ("DELETE FROM t WHERE id = -1 RETURNING (SELECT max(x.i + t.i) FROM t x)", []),
        (("MERGE INTO t USING (VALUES (9)) v(n) ON id = n WHEN MATCHED THEN UPDATE SET i = "
         "(SELECT max(t.i) FROM t x)"), "42803: aggregate functions are not allowed in MERGE"),
        ("SELECT ROW(GROUPING(i)) FROM t GROUP BY 1",
         "42803: grouping operations are not allowed in GROUP BY"),
        ("SELECT GROUPING(i) AS x FROM t GROUP BY x",
         "42803: grouping operations are not allowed in GROUP BY"),
        ("SELECT GROUPING(i) FROM t GROUP BY i ORDER BY 1", [(0,), (0,)]),
        ("SELECT width_bucket(d, 1e308, 2, 100) FROM t ORDER BY id", [(101,), (0,)]),
        ("SELECT width_bucket(d, -1.7e308, 1.7e308, 4) FROM t ORDER BY id", [(1,), (5,)]),
        # Rows of different widths have one name.
        ("SELECT ARRAY[ROW(1, 2), ROW(1)]",
         "42804: ARRAY types record and record cannot be matched"),
        ("VALUES (ROW(1)), (ROW(1, 2))", "42804: VALUES types record and record cannot be matched"),
        ("SELECT CASE WHEN true THEN ROW(1) ELSE ROW(1, 2) END",
         "42804: CASE types record and record cannot be matched"),
        ("SELECT CASE id WHEN 1 THEN 1 WHEN 2 THEN 2::bigint ELSE true END FROM t",
         "42804: CASE types bigint and boolean cannot be matched"),
        # The magnitude of the lowest 64-bit integer does not fit into 64 bits.
        ("SELECT i % (-9223372036854775808)::numeric FROM t ORDER BY id", [(5,), (6,)]),
        (("SELECT 7::numeric % n, n % 10::numeric, n % n FROM (SELECT "
         "(-9223372036854775807 - 1 + id - id)::numeric n FROM t WHERE id = 1) q"), [(7, -8, 0)]),
        ("SELECT 'ab' SIMILAR TO repeat('ab', i * 10000) FROM t",
         "2201B: invalid regular expression: regular expression is too complex"),
        ("SELECT width_bucket(0.5e308, -1.7e308, 1.7e308::double precision, 4)", [(3,)]),
        # Two regions of joins hold the same relations, and reach their joins by different pairs.
        (("SELECT (SELECT a.i FROM t a ORDER BY id LIMIT 1) <> (SELECT x.i FROM t LIMIT 1) "
         "FROM t x CROSS JOIN (SELECT FROM t WHERE id = 1) y, (SELECT (SELECT a.d FROM t a "
         "FULL JOIN generate_series(3, 1, -1) AS c(n) ON true = (a.i > 5) LIMIT 1), "
         "ARRAY(SELECT 0 FROM t LIMIT 1)) z ORDER BY 1"), [(False,), (True,)]),
    ],
)  # fmt: skip
def test_it_ends_as_it_should(
    client: remuda.Client, text: str, end: str | list[tuple[object, ...]]
) -> None:
    try:
        found: object = client.sql(text).fetchall()
    except RemudaError as error:
        found = f"{error.sqlstate}: {error.message}"
    assert found == end
