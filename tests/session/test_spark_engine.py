"""Statements in Spark's SQL, hints, and the choice of the engine; without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.statistics import FixedStatistics, MapStatistics
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, DATE, DOUBLE, INTEGER, JSON, VARCHAR, decimal
from remuda.errors import InputError, NotOnSpark
from remuda.plan.codec import decode
from remuda.plan.expression import Call
from remuda.session.planning import Environment
from remuda.session.spark_engine import GRID, SPARK, choose, cost_on_spark, on_spark
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import BoundQuery
from remuda.sql.spark_sql.relations import SparkQuery
from remuda.sql.text.engine_hints import engine_hint

COLUMNS = (
    Column("id", BIGINT, nullable=False),
    Column("n", INTEGER),
    Column("t", VARCHAR),
    Column("odd `name`", VARCHAR),
    Column("d", decimal(12, 2)),
    Column("f", DOUBLE),
    Column("day", DATE),
    Column("j", JSON),
)
MAP = MapSchema("m", COLUMNS, ("id",), ("id",), map_id=1)


class Maps:
    version = 1
    namespaces = ()
    types = ()

    def find(self, name: str) -> MapSchema | None:
        return MAP if name == "m" else None

    def find_view(self, name: str) -> None:
        return None

    def names(self) -> list[str]:
        return ["m"]

    def view_names(self) -> list[str]:
        return []


def bound(text: str) -> BoundQuery:
    catalog: Any = Maps()
    found = bind(parse(text), catalog, None)
    assert isinstance(found, BoundQuery)
    return found


def environment(rows: float = 1000.0) -> Environment:
    statistics = FixedStatistics({"m": MapStatistics(rows)})
    return Environment(Catalog(1), 1, 2, statistics, {})


def asked(text: str, *values: Any) -> SparkQuery:
    return on_spark(bound(text), values, environment=environment(), prefix="v")


def test_names_and_types_are_written_out() -> None:
    found = asked('SELECT "odd `name`", d + 1 AS x FROM m WHERE n = 3 ORDER BY 2 DESC LIMIT 5')
    assert "`odd ``name```" in found.text
    assert "DESC NULLS FIRST LIMIT 5" in found.text
    assert "CAST('3' AS INT)" in found.text
    (scan,) = found.scans
    assert (scan.view, scan.map) == ("v_0", "m")
    assert set(scan.columns) == {"odd `name`", "d", "n"}
    assert found.types == (VARCHAR, decimal(13, 2))
    assert found.functions == ()


def test_constants_cannot_leave_their_quotes() -> None:
    for value in ("it's", "back\\slash", "${x}", "{y}", "\x00", "Zürich"):
        text = asked("SELECT id FROM m WHERE t = ?", value).text
        assert value not in text
        assert f"X'{value.encode().hex().upper()}'" in text


def test_what_spark_does_differently_is_the_grids() -> None:
    found = asked("SELECT CASE WHEN n > 0 THEN d / n ELSE f + 1 END, n / 2 FROM m")
    (function,) = found.functions
    assert function.name in found.text
    assert "DIV CAST('2' AS INT)" in found.text
    whole = decode(function.expression)
    assert type(whole).__name__ == "Case", "the arm that is not taken must not be computed"
    again = asked("SELECT CASE WHEN n > 0 THEN d / n ELSE f + 1 END, n / 2 FROM m")
    assert again.functions == found.functions
    assert not isinstance(whole, Call)


def test_patterns_are_written_anew() -> None:
    for pattern, written in (("a%", "a%"), ("50\\%", "50!%"), ("a!b_", "a!!b_"), ("\\a", "a")):
        assert (
            f"LIKE '{written}' ESCAPE '!'" in asked("SELECT id FROM m WHERE t LIKE ?", pattern).text
        )
    assert asked("SELECT id FROM m WHERE t LIKE ?", "a\\").functions, "the grid raises"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT j FROM m GROUP BY j", "JSON"),
        ("SELECT count(DISTINCT j) FROM m", "JSON"),
        ("SELECT day - INTERVAL '1 day', INTERVAL '1 day' FROM m", "INTERVAL"),
        ("SELECT mode() WITHIN GROUP (ORDER BY n) FROM m", "mode"),
        ("SELECT unnest(ARRAY[1, n]) FROM m", "gives rows"),
        ("SELECT sum(n) OVER (ORDER BY id GROUPS 1 PRECEDING) FROM m", "GROUPS"),
        ("SELECT id FROM m WHERE random() < 0.5", "different each time"),
    ],
)
def test_refusals_name_the_construct(text: str, named: str) -> None:
    with pytest.raises(NotOnSpark, match=named):
        asked(text)


def test_hints() -> None:
    assert engine_hint("SELECT 1") is None
    assert engine_hint("SELECT /*+ Engine( SPARK ) */ 1") == "spark"
    assert engine_hint("SELECT /*+ parallel(4) */ 1") is None
    for left, right in (("'", "'"), ('"', '"'), ("-- ", "\n1"), ("$$", "$$"), ("$a$", "$a$")):
        assert engine_hint(f"SELECT {left}/*+ ENGINE(x) */{right}") is None
    with pytest.raises(InputError, match="no engine"):
        engine_hint("SELECT /*+ ENGINE(duck) */ 1")
    with pytest.raises(InputError, match="two engines"):
        engine_hint("SELECT /*+ ENGINE(grid) */ 1 /*+ ENGINE(spark) */")


def test_more_cores_and_less_memory_make_it_spark() -> None:
    query = bound("SELECT sum(d) FROM m GROUP BY n")
    large = environment(1e9)
    grid = 1e10
    few, many = (cost_on_spark(query, grid, large, cores) for cores in (2, 512))
    assert many < grid < few
    assert choose(grid, few, 0, 1 << 30)[0] == GRID
    assert choose(grid, many, 0, 1 << 30)[0] == SPARK
    engine, why = choose(grid, few, 1 << 40, 1 << 30)
    assert engine == SPARK
    assert "would hold" in why
