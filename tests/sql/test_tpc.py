"""The TPC texts: all parse and bind; their logical plans are golden; DuckDB reads them as well."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from remuda.plan.explain.logical import logical_text
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse

DATA = Path(__file__).parent.parent / "data"
TPCH = sorted((DATA / "tpch").glob("q*.sql"))


def test_there_are_22_queries():
    assert [path.stem for path in TPCH] == [f"q{n:02d}" for n in range(1, 23)]


@pytest.mark.parametrize("path", TPCH, ids=lambda path: path.stem)
def test_tpch(path, tpch, golden):
    bound = bind(parse(path.read_text()), tpch)
    golden.check(f"sql/tpch/{path.stem}.golden", logical_text(bound.plan))


def test_tpcds_query_3(tpcds, golden):
    bound = bind(parse((DATA / "tpcds" / "q03.sql").read_text()), tpcds)
    assert bound.names == ("d_year", "brand_id", "brand", "sum_agg")
    golden.check("sql/tpcds_q03.golden", logical_text(bound.plan))


@pytest.fixture(scope="module")
def oracle(tpch):
    with duckdb.connect() as connection:
        for schema in tpch.maps.values():
            columns = ", ".join(f"{column.name} {column.type}" for column in schema.columns)
            connection.execute(f"create table {schema.name} ({columns})")
        yield connection


# DuckDB divides and averages decimals as DOUBLE and sums integers as HUGEINT.
DIFFERENT = {("DECIMAL(38,20)", "DOUBLE"), ("DECIMAL(38,19)", "DOUBLE"), ("BIGINT", "HUGEINT")}


@pytest.mark.parametrize("path", TPCH, ids=lambda path: path.stem)
def test_result_columns_agree_with_duckdb(path, tpch, oracle):
    text = path.read_text()
    bound = bind(parse(text), tpch)
    described = oracle.execute(text).description
    theirs = [str(column[1]) for column in described]
    ours = [str(c.type).split("(")[0] if c.type.is_text else str(c.type) for c in bound.plan.output]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == other or (mine, other) in DIFFERENT
    for name, column in zip(bound.names, described, strict=True):
        if not column[0].startswith("sum("):
            assert name == column[0]
