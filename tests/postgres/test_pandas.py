"""pandas writes frames by SQLAlchemy and psycopg, by each of its methods, and reads them back."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from pandas.testing import assert_frame_equal
from sqlalchemy.dialects import postgresql

TYPES = {
    "price": sa.Numeric(10, 2),
    "document": postgresql.JSONB,
    "code": sa.String(8),
    "day": sa.Date,
}
"""Of columns whose type a frame does not tell."""
FRAME = pd.DataFrame(
    {
        "whole": [1, -(2**40), 3],
        "half": [0.5, None, -1e300],
        "flag": [True, False, True],
        "perhaps": pd.array([1, None, 3], dtype="Int64"),
        "unsure": pd.array([True, None, False], dtype="boolean"),
        "text": ['a, "b"\\\n', "", None],
        "code": ["x", None, "é"],
        "price": [Decimal("19.50"), None, Decimal("-0.01")],
        "moment": pd.to_datetime(
            ["2024-01-31T12:00:00.123456", None, "1999-12-31"], format="ISO8601"
        ),
        "zoned": pd.to_datetime(["2024-06-30T12:00+02:00", None, "1999-12-31T00:00Z"], utc=True),
        "day": [dt.date(2024, 2, 29), None, dt.date(1, 1, 1)],
        "document": [{"a": [1, None, "x"]}, [1, 2], None],
    }
)


def by_copy(target: Any, connection: Any, keys: list[str], rows: Any) -> None:
    """The method that the documentation of pandas shows; a NULL is told from an empty text."""
    text = io.StringIO()
    writer = csv.writer(text)
    place = keys.index("document") if "document" in keys else None
    for row in rows:
        values = list(row)
        if place is not None and values[place] is not None:
            values[place] = json.dumps(values[place])
        writer.writerow(["\\N" if value is None else value for value in values])
    columns = ", ".join(f'"{key}"' for key in keys)
    name = f'"{target.schema}"."{target.name}"' if target.schema else f'"{target.name}"'
    statement = f"COPY {name} ({columns}) FROM STDIN (FORMAT csv, NULL '\\N')"
    with connection.connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(text.getvalue())


@pytest.fixture
def engine(door):
    url = f"postgresql+psycopg://{door['user']}@{door['host']}:{door['port']}/{door['database']}"
    made = sa.create_engine(url)
    with made.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS frames")
    yield made
    with made.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA frames CASCADE")
    made.dispose()


def read(engine: sa.Engine, **options: Any) -> pd.DataFrame:
    """The rows in the order of their first column: a table has none."""
    found = pd.read_sql_table("rows", engine, schema="frames", coerce_float=False, **options)
    return found.sort_values(found.columns[0], ignore_index="index_col" not in options)


def expected(frame: pd.DataFrame) -> pd.DataFrame:
    """``frame`` as pandas reads it: decimals of a table become floats, and numbers and truths with
    a NULL have no dtype of their own."""
    found = frame.copy()
    found["price"] = found.price.astype("float64")
    found["perhaps"] = found.perhaps.astype("float64")
    found["unsure"] = found.unsure.astype(object).where(found.unsure.notna(), None)
    found["day"] = pd.to_datetime(found.day, errors="coerce")
    return found.sort_values("whole", ignore_index=True)


@pytest.mark.parametrize("method", [None, "multi", by_copy], ids=["rows", "multi", "copy"])
def test_frames_come_back_equal(engine: sa.Engine, method: Any) -> None:
    frame = FRAME.assign(day=[dt.date(2024, 2, 29), None, dt.date(1999, 1, 1)])

    def write(given: pd.DataFrame, if_exists: Any) -> int | None:
        return given.to_sql(
            "rows", engine, schema="frames", index=False, if_exists=if_exists, method=method,
            dtype=TYPES,
        )  # fmt: skip

    write(frame, "fail")
    assert_frame_equal(read(engine), expected(frame))
    prices = "SELECT price FROM frames.rows ORDER BY whole"
    decimals = pd.read_sql_query(prices, engine, coerce_float=False).price.tolist()
    assert decimals == [None, Decimal("19.50"), Decimal("-0.01")]
    with pytest.raises(ValueError, match="already exists"):
        write(frame, "fail")
    write(frame.iloc[:1], "append")
    assert len(read(engine)) == 4
    write(frame.iloc[1:], "replace")
    assert_frame_equal(read(engine), expected(frame.iloc[1:]))
    types = {column["name"]: str(column["type"]) for column in sa.inspect(engine).get_columns(
        "rows", schema="frames")}  # fmt: skip
    assert types == {
        "whole": "BIGINT", "half": "DOUBLE PRECISION", "flag": "BOOLEAN", "perhaps": "BIGINT",
        "unsure": "BOOLEAN", "text": "TEXT", "code": "VARCHAR(8)", "price": "NUMERIC(10, 2)",
        "moment": "TIMESTAMP", "zoned": "TIMESTAMP", "day": "DATE", "document": "JSONB",
    }  # fmt: skip


@pytest.mark.parametrize("method", [None, "multi", by_copy], ids=["rows", "multi", "copy"])
def test_an_index_is_a_column_with_an_index(engine: sa.Engine, method: Any) -> None:
    frame = pd.DataFrame({"v": range(250)}, index=pd.Index(range(250), name="at"))
    frame.to_sql("rows", engine, schema="frames", chunksize=100, method=method)
    assert_frame_equal(read(engine, index_col="at"), frame)
    assert [each["column_names"] for each in sa.inspect(engine).get_indexes("rows", "frames")] == [
        ["at"]
    ]


def test_a_failed_append_leaves_nothing(engine: sa.Engine) -> None:
    frame = pd.DataFrame({"id": [1, 2]})
    frame.to_sql("rows", engine, schema="frames", index=False)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE frames.rows ADD PRIMARY KEY (id)")
    with pytest.raises(sa.exc.IntegrityError, match="rows_pkey"):
        pd.DataFrame({"id": [3, 2]}).to_sql(
            "rows", engine, schema="frames", index=False, if_exists="append"
        )
    assert read(engine).id.tolist() == [1, 2]
