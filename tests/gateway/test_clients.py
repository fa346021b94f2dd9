"""Drill's Python clients from the package index against the gateway."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
from pydrill.client import PyDrill
from pydrill.exceptions import TransportError
from sqlalchemy import (
    BigInteger,
    Column,
    MetaData,
    String,
    Table,
    create_engine,
    func,
    select,
    text,
)
from sqlalchemy.exc import DatabaseError
from sqlalchemy_drill.drilldbapi import connect

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def drill(face: Any) -> PyDrill:
    return PyDrill(host=face.host, port=face.port)


def test_pydrill_is_active(drill: PyDrill) -> None:
    assert drill.is_active()
    assert not PyDrill(host="127.0.0.1", port=1).is_active()


def test_pydrill_queries(drill: PyDrill) -> None:
    found = drill.query("SELECT id, carrier, price, tags, day FROM flights ORDER BY id")
    assert found.columns == ["id", "carrier", "price", "tags", "day"]
    assert list(found) == [
        {"id": 1, "carrier": "UA", "price": 12.5, "tags": ["a", "b"], "day": 1709164800000},
        {"id": 2, "carrier": "DL", "price": None, "tags": None, "day": None},
    ]
    assert drill.query("SELECT n FROM numbers").to_dataframe()["n"].sum() == 200010000
    assert drill.query("SELECT `ID` FROM `public`.`flights` WHERE `Carrier` = 'DL'").rows == [
        {"id": 2}
    ]
    plan = drill.plan("SELECT count(*) FROM flights").rows
    assert plan[0]["plan"].startswith("Fragment 0")


def test_pydrill_errors(drill: PyDrill) -> None:
    with pytest.raises(TransportError) as caught:
        drill.query("SELECT nope FROM flights")
    assert caught.value.status_code == 400
    assert 'column \\"nope\\" does not exist' in caught.value.error
    assert drill.query("SELECT 1 AS x").rows == [{"x": 1}]


def test_pydrill_about_the_server(face: Any, drill: PyDrill) -> None:
    stats = drill.stats()
    assert stats.drillbits_number == 1
    (bit,) = stats.drillbits
    assert (bit.id, bit.address, bit.status) == ("1", face.user, "alive")
    assert stats.user_port_address == face.user
    assert drill.metrics().data["gauges"]["member.1.partitions"] == {"value": 271}
    options = {option["name"]: option["value"] for option in drill.options().data}
    assert options["statement_memory"]
    assert drill.storage().data == [drill.storage_detail("remuda").data]
    profiles = drill.profiles()
    assert any("sys.queries" in q["query"] for q in profiles.running_queries)
    for refused in (
        drill.threads,
        lambda: drill.storage_detail("dfs"),
        lambda: drill.storage_delete("remuda"),
        lambda: drill.storage_update("remuda", {}),
        lambda: drill.storage_enable("remuda", False),
        lambda: drill.profile("00000000-0000-0000-0000-000000000000"),
        lambda: drill.profile_cancel("00000000-0000-0000-0000-000000000000"),
    ):
        with pytest.raises(TransportError) as caught:
            refused()
        assert caught.value.status_code in (403, 404)


# --- sqlalchemy-drill -------------------------------------------------------------------------


@pytest.fixture
def engine(face: Any) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = create_engine(f"drill+sadrill://{face.host}:{face.port}/public")
        yield made
        made.dispose()


class Texts:
    """sqlalchemy-drill's inspector hands texts to ``execute``, which SQLAlchemy 2 refuses."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.engine = connection.engine

    def execute(self, statement: str) -> Any:
        return self._connection.exec_driver_sql(statement)


def test_dbapi_types(face: Any) -> None:
    connection = connect(face.host, face.port, "public")
    assert connection.drill_version >= "1.19"
    cursor = connection.cursor()
    cursor.execute("SELECT id, ok, price, day, at, moment, tags, raw FROM flights ORDER BY id")
    assert [d[0] for d in cursor.description] == [
        "id", "ok", "price", "day", "at", "moment", "tags", "raw",
    ]  # fmt: skip
    first, second = cursor.fetchall()
    assert first == (
        1, True, Decimal("12.50"), date(2024, 2, 29), time(10, 11, 12),
        datetime.fromisoformat("2024-02-29T10:11:12"), ["a", "b"], "AP8=",
    )  # fmt: skip
    assert second == (2, *[None] * 7)
    cursor.execute("SELECT id FROM flights WHERE id < 0")
    assert cursor.fetchall() == []
    cursor.execute("SELECT carrier FROM flights WHERE id = ?", (2,))
    assert cursor.fetchone() == ("DL",)
    cursor.execute("SELECT n, t FROM numbers ORDER BY n")
    assert len(cursor.fetchall()) == 20000


def test_queries_of_sqlalchemy(engine: Any) -> None:
    flights = Table(
        "flights", MetaData(schema="public"), Column("id", BigInteger), Column("carrier", String)
    )
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT carrier, count(*) FROM flights GROUP BY carrier"))
        assert sorted(rows.fetchall()) == [("DL", 1), ("UA", 1)]
        query = select(flights.c.carrier, func.max(flights.c.id).label("Top"))
        query = query.where(flights.c.carrier == "UA").group_by(flights.c.carrier)
        assert connection.execute(query).mappings().all() == [{"carrier": "UA", "Top": 1}]
        assert connection.execute(select(text("1"))).scalar() == 1
        with pytest.raises(DatabaseError, match="does not exist"):
            connection.execute(text("SELECT nope FROM flights"))
        assert connection.execute(text("SELECT 1")).scalar() == 1


def test_metadata_of_sqlalchemy(engine: Any) -> None:
    dialect = engine.dialect
    with engine.connect() as connection:
        texts = Texts(connection)
        assert "public" in dialect.get_schema_names(texts)
        assert sorted(dialect.get_table_names(texts, "public")) == ["flights", "late", "numbers"]
        assert dialect.get_view_names(texts, "public") == ("late",)
        found = dialect.get_columns(texts, "flights", "public")
        names = [(column["name"], column["type"].__name__) for column in found]
        assert names[:9] == [
            ("id", "BIGINT"), ("carrier", "String"), ("small", "SMALLINT"), ("ok", "BOOLEAN"),
            ("delay", "FLOAT"), ("price", "DECIMAL"), ("day", "DATE"), ("at", "TIME"),
            ("moment", "TIMESTAMP"),
        ]  # fmt: skip
        assert dialect.has_table(texts, "flights", "public")
        with pytest.raises(DatabaseError, match='map "nope" does not exist'):
            dialect.get_columns(texts, "nope", "public")


def test_pandas_reads_through_sqlalchemy(engine: Any) -> None:
    frame = pd.read_sql("SELECT id, price, day FROM flights ORDER BY id", engine)
    assert frame["id"].tolist() == [1, 2]
    assert frame["day"][0] == date(2024, 2, 29)
    assert len(pd.read_sql("SELECT * FROM numbers", engine)) == 20000


def test_a_wrong_default_schema(face: Any) -> None:
    from sqlalchemy_drill.drilldbapi import DatabaseError as DrillError  # noqa: PLC0415

    with pytest.raises(DrillError, match="dfs"):
        connect(face.host, face.port, "dfs.tmp")
