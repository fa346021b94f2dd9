"""The programs in examples/ run, at a small size, and what they make is right."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def client(grid: Any) -> Iterator[Any]:
    """All maps that an example has made go again."""
    with grid.connect() as made:
        before = {name for (name,) in made.sql("SELECT name FROM sys.maps")}
        yield made
        for (name,) in made.sql("SELECT name FROM sys.maps").fetchall():
            if name not in before:
                made.drop_map(name)


def program(name: str) -> Any:
    file = EXAMPLES / name / "run.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_feature_serving(spark: Any, client: Any, address: str, tmp_path: Path) -> None:
    said: list[str] = []
    example = program("feature_serving")
    answers = example.main(spark, address, tmp_path, days=3, reads=200, say=said.append)
    assert answers.reads == 200
    assert any(f"{answers.median * 1e3:.3f} ms each" in line for line in said)
    tables = example.flights_of_days(3)
    oracle = duckdb.connect()
    oracle.register("two_days", pa.concat_tables(tables[:2]))
    oracle.register("all_days", pa.concat_tables(tables))
    expected = oracle.execute(
        "SELECT carrier, origin, count(*), round(avg(dep_delay), 6) FROM two_days "
        "WHERE dep_delay IS NOT NULL GROUP BY ALL ORDER BY 1, 2"
    ).fetchall()
    found = client.sql(
        "SELECT carrier, origin, flights, mean_delay FROM route_features ORDER BY 1, 2"
    ).fetchall()
    assert [(c, o, n, round(mean, 6)) for c, o, n, mean in found] == expected
    expected = oracle.execute(
        "SELECT tailnum, count(*), sum(air_time)::BIGINT FROM all_days WHERE tailnum IS NOT NULL "
        "GROUP BY ALL ORDER BY 1"
    ).fetchall()
    found = client.sql("SELECT tailnum, flights, minutes_in_air FROM planes ORDER BY 1").fetchall()
    assert [tuple(row) for row in found] == expected
    busiest = sorted((row for row in expected if row[2]), key=lambda row: (-row[2], row[0]))[:3]
    booked = client.sql("SELECT tailnum FROM hangar ORDER BY place").fetchall()
    assert [name for (name,) in booked] == [row[0] for row in busiest]


def test_star_mart(spark: Any, client: Any, address: str, tmp_path: Path) -> None:
    example = program("star_mart")
    example.generate(tmp_path, 0.01)
    said: list[str] = []
    reports = example.main(spark, address, tmp_path, tmp_path / "out", runs=1, say=said.append)
    oracle = duckdb.connect()
    for table in example.TABLES:
        oracle.execute(f"CREATE VIEW {table} AS FROM '{tmp_path}/{table}.parquet'")
    expected = oracle.execute(
        "SELECT d_year, i_category, sum(ss_ext_sales_price) AS amount, count(*) "
        "FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk "
        "JOIN item ON i_item_sk = ss_item_sk WHERE d_year IN (2001, 2002) "
        "AND ss_ext_sales_price >= 0 AND i_category IS NOT NULL "
        "GROUP BY ALL ORDER BY amount DESC, d_year, i_category"
    ).fetchall()
    assert [tuple(row) for row in client.sql(example.QUESTION)] == expected
    monthly = client.sql(
        "SELECT year, category, sum(amount) AS amount, sum(sales) FROM mart_monthly "
        "GROUP BY year, category ORDER BY amount DESC, year, category"
    ).fetchall()
    assert [tuple(row) for row in monthly] == expected
    aside = oracle.execute(
        "SELECT count(*) FROM store_sales WHERE ss_sold_date_sk IS NULL OR (ss_ext_sales_price "
        "IS NULL AND ss_sold_date_sk IN (SELECT d_date_sk FROM date_dim WHERE d_year IN "
        "(2001, 2002)))"
    ).fetchall()[0][0]
    files = f"'{tmp_path}/out/rejected/facts/*/*.parquet', hive_partitioning = true"
    kept = oracle.execute(f"SELECT run, count(*) FROM read_parquet({files}) GROUP BY 1 ORDER BY 1")
    assert kept.fetchall() == [("run-1", aside)]
    assert [report.view("facts").quarantined for report in reports] == [aside]
    sales = oracle.execute(f"SELECT sum(sales) FROM '{tmp_path}/out/monthly/*/*.parquet'")
    assert sales.fetchall()[0][0] == sum(row[3] for row in expected)
    assert client.describe("dim_item").replicated
    assert len(said) == 1 + len(reports[0].targets) + 5
