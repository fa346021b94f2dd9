"""SQLAlchemy 2 (core and inspection) on four drivers, and pandas over it."""

from __future__ import annotations

import asyncio
import datetime as dt
from decimal import Decimal

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

DRIVERS = ["psycopg", "psycopg2", "asyncpg", "pg8000"]
WHEN = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def books(driver: str) -> sa.Table:
    return sa.Table(
        f"books_{driver}",
        sa.MetaData(),
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("title", sa.String(40), nullable=False, index=True),
        sa.Column("price", sa.Numeric(10, 2)),
        sa.Column("sold", sa.DateTime(timezone=True)),
        sa.Column("document", sa.JSON),
    )


@pytest.fixture
def with_connection(door):
    """Runs a function with a connection of an engine on a driver."""

    def run(driver, work, **options):
        url = f"postgresql+{driver}://bob@{door['host']}:{door['port']}/shop"
        if driver == "asyncpg":
            return asyncio.run(asyncio.wait_for(_asynchronous(url, work, options), 60))
        engine = sa.create_engine(url, **options)
        try:
            with engine.begin() as connection:
                return work(connection)
        finally:
            engine.dispose()

    return run


async def _asynchronous(url, work, options):
    engine = create_async_engine(url, **options)
    try:
        async with engine.begin() as connection:
            return await connection.run_sync(work)
    finally:
        await engine.dispose()


@pytest.mark.parametrize("driver", DRIVERS)
def test_core(with_connection, driver):
    table = books(driver)

    def create(connection):
        table.metadata.create_all(connection, checkfirst=False)

    def work(connection):
        rows = [
            {"id": n, "title": f"title {n}", "price": Decimal("1.50"), "sold": WHEN,
             "document": {"a": [n]}}
            for n in range(3)
        ]  # fmt: skip
        connection.execute(table.insert(), rows)
        row = connection.execute(sa.select(table).where(table.c.id == 1)).one()
        assert tuple(row) == (1, "title 1", Decimal("1.50"), WHEN, {"a": [1]})
        totals = sa.select(sa.func.count(), sa.func.sum(table.c.price))
        found = connection.execute(totals.where(table.c.title.like("title%"))).one()
        assert tuple(found) == (3, Decimal("4.50"))
        change = table.update().where(table.c.id == 2).values(price=3)
        returned = connection.execute(change.returning(table.c.id, table.c.price)).one()
        assert tuple(returned) == (2, Decimal("3.00"))
        inside = connection.begin_nested()
        connection.execute(table.delete())
        inside.rollback()
        chosen = sa.select(table.c.id).where(table.c.id.in_([0, 2, 9])).order_by(table.c.id)
        assert connection.execute(chosen).scalars().all() == [0, 2]

    with_connection(driver, create, isolation_level="AUTOCOMMIT")
    with_connection(driver, work)


@pytest.mark.parametrize(
    "driver", ["psycopg", *(pytest.param(d, marks=pytest.mark.soak) for d in DRIVERS[1:])]
)
def test_inspection(with_connection, items, driver):
    def work(connection):
        seen = sa.inspect(connection)
        assert "items" in seen.get_table_names()
        assert seen.get_view_names() == ["cheap"]
        assert seen.get_view_definition("cheap").startswith("SELECT * FROM items")
        assert seen.has_table("items")
        assert not seen.has_table("nosuch")
        assert "sys" not in seen.get_schema_names()
        key = seen.get_pk_constraint("items")
        assert (key["name"], key["constrained_columns"]) == ("items_pkey", ["id"])
        columns = [(c["name"], str(c["type"]), c["nullable"]) for c in seen.get_columns("items")]
        assert columns == [
            ("id", "BIGINT", False),
            ("name", "VARCHAR(20)", False),
            ("price", "NUMERIC(10, 2)", True),
            ("born", "TIMESTAMP", True),
        ]
        (index,) = seen.get_indexes("items")
        assert (index["name"], index["column_names"]) == ("items_name", ["name"])
        assert (index["unique"], "column_sorting" in index) == (False, False)
        assert seen.get_foreign_keys("items") == []
        assert seen.get_unique_constraints("items") == []
        assert seen.get_check_constraints("items") == []
        reflected = sa.MetaData()
        reflected.reflect(connection, only=["items"])
        assert list(reflected.tables["items"].primary_key.columns.keys()) == ["id"]

    with_connection(driver, work)


def test_pandas_reads_queries_and_tables(with_connection, items):
    def work(connection):
        frame = pd.read_sql("SELECT id, name, price FROM items ORDER BY id", connection)
        assert frame.to_dict("list") == {
            "id": [1, 2],
            "name": ["saw", "nail"],
            "price": [19.5, 0.1],
        }
        table = pd.read_sql_table("items", connection, index_col="id")
        assert str(table.dtypes["born"]) == "datetime64[ns, UTC]"
        series = "SELECT x FROM generate_series(1, 1000) t(x)"
        portions = list(pd.read_sql(series, connection, chunksize=300))
        assert [len(portion) for portion in portions] == [300, 300, 300, 100]

    with_connection("psycopg", work)
