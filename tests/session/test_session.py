"""Planning with a cache, parameters, and the form of results."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.statistics import FixedStatistics
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    VARCHAR,
    SqlType,
    decimal,
)
from remuda.datatypes.values import PhysicalValue
from remuda.errors import SqlSyntaxError, UndefinedColumn, UndefinedSetting, WrongParameters
from remuda.session.client_session import ClientSession
from remuda.session.parameters import Moment, check_count, clock_values, fitted
from remuda.session.planning import (
    CACHED_TEXT_MAX,
    Environment,
    PlanCache,
    Planned,
    PlannedQuery,
    bound,
    maps_of,
    planned,
)
from remuda.session.routes import route_of
from remuda.session.settings import SETTINGS
from remuda.session.shape import ResultShape
from remuda.sql.expressions.functions.system import SETTING_NAMES

SCHEMA = MapSchema(
    "m", (Column("a", INTEGER), Column("b", VARCHAR), Column("v", BIGINT)), ("a", "b"), ("b",)
)
NO_VERSIONS: Mapping[int, int] = {}
CATALOG, MADE = Catalog().with_map(SCHEMA, if_not_exists=False)


def environment(
    catalog: Catalog = CATALOG, view: int = 1, versions: Mapping[int, int] = NO_VERSIONS
) -> Environment:
    return Environment(catalog, view, 3, FixedStatistics(), versions)


def query(text: str) -> PlannedQuery:
    found = planned(bound(text, None, CATALOG), environment())
    assert isinstance(found, PlannedQuery)
    return found


@pytest.mark.parametrize(
    ("value", "given", "wanted", "result"),
    [
        (5, BIGINT, INTEGER, 5),
        (2**40, BIGINT, INTEGER, None),
        (1.5, DOUBLE, INTEGER, None),
        (5, BIGINT, decimal(10, 2), 500),
        (150, decimal(3, 2), decimal(10, 4), 15000),
        ("x", VARCHAR, VARCHAR, "x"),
        ("x", VARCHAR, INTEGER, None),
    ],
)
def test_values_fit_exactly_or_not_at_all(
    value: PhysicalValue, given: SqlType, wanted: SqlType, result: PhysicalValue
) -> None:
    assert fitted([value], [given], [wanted]) == (None if result is None else (result,))
    assert fitted([None], [given], [wanted]) == (None,)


def test_parameter_counts() -> None:
    check_count(2, 2)
    with pytest.raises(WrongParameters, match="2 parameters, 1 were given"):
        check_count(2, 1)
    for types in ((), (BIGINT, BIGINT)):
        with pytest.raises(WrongParameters, match="1 parameters"):
            bound("SELECT v FROM m WHERE v = ?", types, Catalog())


def test_the_moment_of_a_statement_is_a_parameter_of_its_plan() -> None:
    found = query("SELECT current_date, v FROM m WHERE v > ? AND current_date > DATE '2000-01-01'")
    assert found.clock_parameters == ("current_date",)
    assert len(found.parameter_types) == 1
    assert clock_values(("current_date", "current_timestamp"), Moment.of_one(86_400_000_001)) == (
        1,
        86_400_000_001,
    )


def test_settings_of_the_client_are_parameters_of_a_plan() -> None:
    found = query("SELECT current_setting('TimeZone'), current_setting('a.b', true), v FROM m")
    assert len(found.clock_parameters) == 2
    assert clock_values(found.clock_parameters, Moment.of_one(0)) == ("UTC", None)
    session = ClientSession({"a.b": "x"})
    assert clock_values(found.clock_parameters, Moment.of_one(0), session) == ("UTC", "x")
    strict = query("SELECT current_setting('a.b') FROM m").clock_parameters
    with pytest.raises(UndefinedSetting):
        clock_values(strict, Moment.of_one(0))


def test_the_binder_knows_every_setting() -> None:
    assert set(SETTING_NAMES) == set(SETTINGS)


def test_point_reads_know_their_route() -> None:
    found = query("SELECT v FROM m WHERE a = ? AND b = ?")
    assert found.point is not None
    assert route_of(found.point, MADE) == (1,)
    assert query("SELECT v FROM m WHERE a = ?").point is None
    constant = query("SELECT v FROM m WHERE a = 1 AND b = 'x'").point
    assert constant is not None
    assert route_of(constant, MADE) is None


def test_errors_carry_the_statement() -> None:
    for text, kind in (("SELEC 1", SqlSyntaxError), ("SELECT missing FROM m", UndefinedColumn)):
        with pytest.raises(kind) as caught:
            bound(text, None, CATALOG)
        assert caught.value.statement == text
        assert "^" in str(caught.value)


def test_maps_of_a_statement() -> None:
    statement = bound("SELECT count(*) FROM m x JOIN m y ON x.a = y.a", None, CATALOG)
    assert maps_of(statement) == (MADE,)


def test_cached_plans_are_dropped_when_their_world_has_changed() -> None:
    stale: list[bool] = []
    cache = PlanCache(lambda _maps: bool(stale))
    scan, point = query("SELECT sum(v) FROM m"), query("SELECT v FROM m WHERE a = 1 AND b = 'x'")
    newer = CATALOG.with_map(MapSchema("n", (Column("k", BIGINT),), ("k",), ()),
                             if_not_exists=False)[0]  # fmt: skip
    changes: list[tuple[Environment, bool]] = [
        (environment(), True),
        (environment(versions={MADE.map_id: 1}), False),
        (environment(versions={MADE.map_id + 1: 1}), True),
        (environment(view=2), False),
        (environment(newer), False),
    ]
    for other, kept in changes:
        cache.keep(("s", None, False), scan, environment())
        assert (cache.find(("s", None, False), other) is scan) is kept
    cache.keep(("p", None, False), point, environment())
    assert cache.find(("p", None, False), environment(versions={MADE.map_id: 1})) is point
    cache.keep(("s", None, False), scan, environment())
    stale.append(True)
    assert cache.find(("s", None, False), environment()) is None
    assert cache.find(("p", None, False), environment()) is point


TYPES: list[tuple[SqlType, Any]] = [
    (BOOLEAN, True), (TINYINT, -1), (SMALLINT, 300), (INTEGER, -70000), (BIGINT, 2**60),
    (REAL, 0.5), (DOUBLE, -1.25), (decimal(9, 2), -12345), (decimal(30, 4), 10**25),
    (VARCHAR, "grüße"), (VARCHAR, ""), (BYTEA, b"\x00\xff"), (DATE, -1), (TIME, 1),
    (TIMESTAMP, -5), (TIMESTAMPTZ, 5),
]  # fmt: skip


def test_one_row_is_built_like_many() -> None:
    shape = ResultShape([Column(f"c{i}", t) for i, (t, _) in enumerate(TYPES)])
    row = [value for _, value in TYPES]
    nulls: list[Any] = [None] * len(TYPES)
    both = shape.rows([row, nulls])
    assert shape.rows([row]).equals(both.slice(0, 1))
    assert shape.rows([nulls]).equals(both.slice(1, 1))
    assert shape.rows([]).num_rows == 0
    shape.rows([row]).validate(full=True)


def test_pages_are_arrow_streams() -> None:
    shape = ResultShape([Column("a", BIGINT), Column("a", VARCHAR)])
    page = shape.rows([[1, "x"], [2, None]])
    data = io.BytesIO(b"".join(bytes(part) for part in shape.stream(page)))
    table = pa.ipc.open_stream(data).read_all()
    assert table.to_batches()[0].equals(page)
    assert table.schema.names == ["a", "a"]


def plan_of(text: str) -> Planned:
    return planned(bound(text, None, CATALOG), environment())


def test_statements_that_hardly_come_again_are_not_cached() -> None:
    cache = PlanCache(lambda _plan: False)
    long = "SELECT v FROM m WHERE a = 1" + " " * CACHED_TEXT_MAX
    for text in ("INSERT INTO m VALUES (1, 'x', 2)", "SINK INTO m VALUES (1, 'x', 2)", long):
        cache.keep((text, None, False), plan_of(text), environment())
        assert len(cache) == 0, text
    for text in ("INSERT INTO m VALUES (?, ?, ?)", "INSERT INTO m SELECT a + 1, b, v FROM m"):
        found = plan_of(text)
        cache.keep((text, None, False), found, environment())
        assert cache.find((text, None, False), environment()) is found


def test_cached_plans_are_bounded_in_memory() -> None:
    texts = [f"SELECT v FROM m WHERE a = {number}" for number in range(20)]
    plans = {text: plan_of(text) for text in texts}
    single = PlanCache(lambda _plan: False)
    single.keep((texts[0], None, False), plans[texts[0]], environment())
    cache = PlanCache(lambda _plan: False, size_max=3 * single.size + 100)
    for text in texts:
        for _ in range(2):  # the second replaces the first: it is counted once
            cache.keep((text, None, False), plans[text], environment())
        assert cache.size <= 3 * single.size + 100
    kept = [text for text in texts if cache.find((text, None, False), environment()) is not None]
    assert kept == texts[-3:]
    for text in kept:
        cache.find((text, None, False), environment(view=2))
    assert (len(cache), cache.size) == (0, 0)
