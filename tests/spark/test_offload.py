"""The same statement on the grid and on Spark: equal answers, equal types, equal errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from offload_service import both, loaded, offloading, same, tpc_data

import remuda.aio
from remuda.errors import (
    CardinalityViolation,
    DivisionByZero,
    NotOnSpark,
    NumericOverflow,
    QueryTimeout,
)

pytestmark = pytest.mark.timeout(900)
"""Starting Spark and compiling a hundred expressions take minutes where others work, too."""


@pytest.fixture(scope="module")
def offload(spark: Any, grid: Any) -> Iterator[Any]:
    """A client of a cluster with a service, and a few maps."""
    with offloading(spark, grid) as client:
        _fill(client)
        yield client


def _fill(client: Any) -> None:
    client.sql(
        "CREATE TABLE offload_v (id BIGINT PRIMARY KEY, i INTEGER, j INTEGER, s SMALLINT, "
        "d DECIMAL(12,3), e DECIMAL(38,10), f DOUBLE PRECISION, r REAL, t VARCHAR, c CHAR(4), "
        "b BOOLEAN, day DATE, at TIMESTAMP, tz TIMESTAMPTZ, u UUID, x BYTEA)"
    ).fetchall()
    client.sql(
        "INSERT INTO offload_v VALUES "
        "(1, 7, 2, 3, 10.125, 12345678901234567890.0123456789, 1.5, 0.1, 'Zürich', 'ab  ', true, "
        " '2024-02-29', '2024-02-29 23:59:59.123456', '2024-02-29 23:59:59.5+00', "
        " '00000000-0000-0000-0000-00000000000a', '\\x00ff'), "
        "(2, -7, 2, -3, -10.125, -0.0000000001, 'NaN', 2.5, '50%_!x', 'abcd', false, "
        " '0800-03-15', '1969-12-31 23:59:59', '1883-01-01 00:00:00+00', "
        " 'ffffffff-0000-0000-0000-000000000000', ''), "
        "(3, 7, -2, 32767, 0.005, 0, 'Infinity', -2.5, '', '', NULL, '1582-10-10', "
        " '9990-12-31 00:00:00', '2024-06-30 12:00:00+00', NULL, NULL), "
        "(4, 2147483647, 1, 0, 999999999.999, NULL, -0.0, 0.0, 'a''b\\c$d{e}', 'A', true, "
        " '2024-12-31', '2024-01-01 00:00:00', '2024-01-01 00:00:00+00', "
        " '00000000-0000-0000-0000-00000000000b', '\\x01'), "
        "(5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
        " NULL)"
    ).fetchall()


EXPRESSIONS = (
    "i / j", "i % j", "i - j", "s + j", "i - s", "s * j", "-i", "abs(i)", "d + e", "d * d", "d / 3",
    "d * e", "e / d", "round(d, 2)", "round(d)", "trunc(d, 1)", "CAST(d AS INTEGER)",
    "CAST(f AS VARCHAR)", "CAST(r AS DOUBLE PRECISION)", "CAST(d AS DOUBLE PRECISION)",
    "CAST(d AS DECIMAL(12,1))", "CAST(i AS DECIMAL(20,2))", "CAST(d AS VARCHAR)",
    "CAST(i AS VARCHAR)", "f * 2", "f + r", "f = f", "f > 1e308", "coalesce(i, j, 0)",
    "nullif(j, 2)", "greatest(i, j)", "least(d, 1.5)", "CASE WHEN j = 2 THEN i / j ELSE 0 END",
    "CASE WHEN j > 0 THEN sqrt(j) END", "t || c", "t || i", "upper(t)", "lower(t)", "length(t)",
    "length(c)", "substring(t, 2, 3)", "substring(t, -1, 4)", "t LIKE '50\\%\\_%'", "t LIKE '%!x'",
    "t LIKE 'Z_rich'", "t LIKE '%\\\\%'", "t NOT LIKE '%a%'", "t ILIKE 'z%'", "t ~ '^[A-Z]'",
    "regexp_replace(t, '[a-z]', '<\\&>', 'g')", "position('r' in t)", "t < 'a'", "c = 'ab'",
    "c || '|'", "trim(t)", "b AND i > 0", "b OR NULL", "NOT b", "b IS NOT TRUE", "b IS NULL",
    "i IS DISTINCT FROM j", "i IN (7, NULL)", "i NOT IN (1, 2)", "id IN (1, 3)",
    "extract(year FROM day)", "extract(month FROM day)", "extract(dow FROM day)",
    "extract(week FROM day)", "extract(doy FROM at)", "extract(hour FROM at)",
    "extract(second FROM at)", "extract(epoch FROM tz)", "extract(year FROM tz)",
    "date_trunc('month', at)", "day + 1", "day - 40", "day - DATE '2000-01-01'",
    "day + INTERVAL '1 month'", "at + INTERVAL '1 month 3 days'", "CAST(at AS DATE)",
    "CAST(day AS TIMESTAMP)", "CAST(day AS VARCHAR)", "to_char(at, 'YYYY-MM-DD HH24:MI')",
    "day < DATE '2000-01-01'", "tz > TIMESTAMPTZ '2000-01-01 00:00:00+00'", "u", "x",
    "u = '00000000-0000-0000-0000-00000000000a'", "CAST(u AS VARCHAR)", "length(x)",
    "'a''b\\c$d{e}'", "NULL", "1.50", "CAST(1 AS SMALLINT)", "DATE '2024-02-29'",
)  # fmt: skip
"""Where the dialects differ, or where one would think so."""


def test_expressions(offload: Any) -> None:
    selected = ", ".join(f"{text} AS x{place}" for place, text in enumerate(EXPRESSIONS))
    grid, spark = both(offload, f"SELECT id, {selected} FROM offload_v ORDER BY id")
    assert spark.schema.equals(grid.schema)
    for place, text in enumerate(("id", *EXPRESSIONS)):
        expected, found = grid.column(place).to_pylist(), spark.column(place).to_pylist()
        assert list(map(repr, found)) == list(map(repr, expected)), text


QUERIES = (
    (
        "SELECT count(*), count(i), sum(i), sum(id), sum(d), avg(i), avg(d), avg(f), min(t), "
        "max(t), min(day), max(at), bool_and(b), bool_or(b), count(DISTINCT j), sum(DISTINCT i), "
        "stddev_samp(d), sum(i) FILTER (WHERE j > 0) FROM offload_v"
    ),
    "SELECT sum(i), count(*) FROM offload_v WHERE false",
    "SELECT b, j, count(*), sum(s) FROM offload_v GROUP BY GROUPING SETS ((b, j), (b), ())",
    "SELECT j, count(*), grouping(j) FROM offload_v WHERE id > 100 GROUP BY ROLLUP (j)",
    "SELECT id, t FROM offload_v ORDER BY t DESC NULLS LAST, id LIMIT 3 OFFSET 1",
    (
        "SELECT id, row_number() OVER w, rank() OVER w, lag(i) OVER w, sum(d) OVER w, "
        "first_value(t) OVER w, avg(i) OVER (PARTITION BY j), ntile(2) OVER w "
        "FROM offload_v WINDOW w AS (PARTITION BY b ORDER BY id) ORDER BY id"
    ),
    (
        "SELECT id, sum(i) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) "
        "FROM offload_v ORDER BY id"
    ),
    "SELECT a.id, b.id FROM offload_v a FULL JOIN offload_v b ON a.i = b.j ORDER BY 1, 2",
    (
        "SELECT id FROM offload_v a WHERE EXISTS (SELECT 1 FROM offload_v b WHERE b.j = a.s - 1) "
        "OR a.id = 2"
    ),
    "SELECT id, i IN (SELECT j FROM offload_v) FROM offload_v ORDER BY id",
    "SELECT id FROM offload_v WHERE i NOT IN (SELECT j FROM offload_v WHERE j IS NOT NULL)",
    "SELECT id, (SELECT max(b.d) FROM offload_v b WHERE b.j = a.j) FROM offload_v a ORDER BY id",
    "SELECT j FROM offload_v INTERSECT ALL SELECT s FROM offload_v",
    "SELECT j FROM offload_v EXCEPT SELECT i FROM offload_v",
    "SELECT i FROM offload_v UNION SELECT j FROM offload_v",
    "SELECT string_agg(t, '-' ORDER BY id) FROM offload_v",
    "SELECT f, count(*) FROM offload_v GROUP BY f",
    "SELECT DISTINCT i, j FROM offload_v WHERE t LIKE '%' OR i / j > 1",
    "VALUES (1, 'a'), (2, NULL)",
    # Each task of Spark reads some partitions, and a key lies in one of them.
    (
        "SELECT a.id, b.t FROM offload_v a JOIN offload_v b ON a.i = b.i "
        "WHERE a.id = 1 AND b.id IN (1, 3, 9) ORDER BY 1, 2"
    ),
)


QUICK = (0, 2, 5, 9, 19)
"""Aggregates, grouping sets, windows, marks, keys; the others take too long for every run."""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, marks=() if place in QUICK else pytest.mark.soak, id=f"query-{place}")
        for place, text in enumerate(QUERIES)
    ],
)
def test_queries(offload: Any, text: str) -> None:
    same(offload, text)


@pytest.mark.soak
def test_parameters_and_the_moment(offload: Any) -> None:
    same(
        offload,
        "SELECT id, ? FROM offload_v WHERE i = ? OR t = ? ORDER BY id",
        1.5,
        7,
        "a'b\\c$d{e}",
    )
    grid, spark = both(offload, "SELECT current_date = CAST(now() AS DATE), current_user")
    assert spark.to_pylist() == grid.to_pylist()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT CAST(i AS SMALLINT) FROM offload_v", NumericOverflow),
        pytest.param(
            "SELECT (SELECT i FROM offload_v)", CardinalityViolation, marks=pytest.mark.soak
        ),
        pytest.param("SELECT i / (j - j) FROM offload_v", DivisionByZero, marks=pytest.mark.soak),
        pytest.param("SELECT d / (j - j) FROM offload_v", DivisionByZero, marks=pytest.mark.soak),
        pytest.param("SELECT i + i FROM offload_v", NumericOverflow, marks=pytest.mark.soak),
    ],
)
def test_errors(offload: Any, text: str, kind: type[Exception]) -> None:
    for engine in ("grid", "spark"):
        with pytest.raises(kind):
            offload.sql(f"/*+ ENGINE({engine}) */ {text}").fetchall()


def test_moments_by_the_clocks_of_the_session(offload: Any) -> None:
    """Functions and casts that look at the zone of the session."""
    offload.sql("SET TIME ZONE 'Asia/Tokyo'").fetchall()
    try:
        same(
            offload,
            "SELECT id, tz, CAST(tz AS VARCHAR), CAST(tz AS DATE), CAST(tz AS TIMESTAMP),"
            " CAST(at AS TIMESTAMPTZ), date_trunc('day', tz), extract(hour FROM tz),"
            " tz + INTERVAL '1 month', to_char(tz, 'HH24:MI TZ'),"
            " TIMESTAMPTZ '2024-01-31 12:00:00' > tz"
            " FROM offload_v WHERE id IN (1, 3, 4) ORDER BY id",
        )
        text = "SELECT CAST(tz AS VARCHAR) FROM offload_v WHERE id = 4"
        for answer in both(offload, text):
            assert not answer.column(0)[0].as_py().endswith("+00")
    finally:
        offload.sql("SET TIME ZONE 'UTC'").fetchall()


def _long() -> str:
    """Seconds, and not hours: Spark ends a task at a row that it takes from Python or from storage,
    and not within loops of its own, in which it keeps its core."""
    digits = ", ".join(f"({digit})" for digit in range(10))
    maps = ", ".join(f"v v{n}" for n in range(7))
    total = " + ".join(f"v{n}.x" for n in range(7))
    text = f"WITH v(x) AS (VALUES {digits}) SELECT count(*) FROM {maps} WHERE sqrt({total}) >= 0"
    return f"/*+ ENGINE(spark) */ {text}"


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        threading.Event().wait(0.02)


@pytest.mark.soak
def test_a_statement_out_of_time_ends_its_job(offload: Any, spark: Any) -> None:
    with pytest.raises(QueryTimeout):
        offload.sql(_long(), timeout=3.0).fetchall()
    tracker = spark.sparkContext.statusTracker()
    _until(lambda: not tracker.getActiveJobsIds())
    same(offload, "VALUES (1, 'a', DATE '2024-02-29'), (2, NULL, NULL)")


@pytest.mark.soak
@pytest.mark.parametrize("how", ["its task is cancelled", "its client is closed"])
@pytest.mark.parametrize("begun", [False, True])
def test_a_statement_that_is_given_up_ends_its_job(
    offload: Any, grid: Any, spark: Any, how: str, begun: bool
) -> None:
    """As soon as a member has it, and when Spark computes."""
    tracker = spark.sparkContext.statusTracker()
    running = "SELECT count(*) FROM sys.queries WHERE state = 'on spark'"

    async def give_up() -> None:
        client = await remuda.aio.connect(",".join(grid.addresses))
        task = asyncio.create_task(client.sql(_long()))
        while not (tracker.getActiveJobsIds() if begun else offload.sql(running).fetchone()[0]):
            await asyncio.sleep(0.02)
        if how == "its task is cancelled":
            task.cancel()
            assert await client.sql(running), "the client goes on"
        await client.close()
        await asyncio.wait([task])

    asyncio.run(give_up())
    _until(lambda: not tracker.getActiveJobsIds())
    _until(lambda: offload.sql(running).fetchall() == [(0,)])
    same(offload, "VALUES (1, 'a', DATE '2024-02-29'), (2, NULL, NULL)")


@pytest.mark.soak
def test_writers_go_on(offload: Any) -> None:
    """What is read is one state: both scans of the map see the same."""
    text = (
        "SELECT count(*) FROM offload_v a FULL JOIN offload_v b ON a.id = b.id WHERE a.id IS NULL"
    )
    stop = threading.Event()

    def write() -> None:
        number = 1000
        while not stop.is_set():
            offload.sql("INSERT INTO offload_v (id) VALUES (?)", number).fetchall()
            offload.sql("DELETE FROM offload_v WHERE id = ?", number).fetchall()
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert offload.sql(f"/*+ ENGINE(spark) */ {text}").fetchall() == [(0,)]
    finally:
        stop.set()
        thread.join()


def test_what_cannot_be_said_in_spark(offload: Any) -> None:
    with pytest.raises(NotOnSpark, match="percentile_cont"):
        offload.sql(
            "/*+ ENGINE(spark) */ SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f) "
            "FROM offload_v"
        ).fetchall()


FEW = ("lineitem", "orders")


@pytest.fixture(scope="module")
def few_tables(offload: Any) -> Iterator[Any]:
    yield from _tpch(offload, FEW)


@pytest.fixture(scope="module")
def all_tables(few_tables: Any) -> Iterator[Any]:
    rest = [table for table, _ in tpc_data.definitions("tpch") if table not in FEW]
    yield from _tpch(few_tables, tuple(rest))


def _tpch(client: Any, tables: tuple[str, ...]) -> Iterator[Any]:
    with loaded(client, "tpch", tables):
        yield client


@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.soak), 12])
def test_some_queries_of_tpch(few_tables: Any, number: int) -> None:
    same(few_tables, tpc_data.query("tpch", number))


@pytest.mark.soak
@pytest.mark.parametrize("number", range(1, 23))
def test_every_query_of_tpch(all_tables: Any, number: int) -> None:
    same(all_tables, tpc_data.query("tpch", number))
