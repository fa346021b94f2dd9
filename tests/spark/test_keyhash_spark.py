"""The key hash against Spark itself, for every key type, composite keys and NULL."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from remuda.datatypes import sql
from remuda.datatypes.hashes.keyhash import hash_arrays, hasher, partition_of, partitions_of
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import from_physical, to_physical, values_to_array

pytestmark = pytest.mark.spark

LONG = sql.decimal(38, 4)
CASES: list[tuple[SqlType, list[Any]]] = [
    (sql.BOOLEAN, [True, False, None]),
    (sql.TINYINT, [0, 1, -128, 127, None]),
    (sql.SMALLINT, [0, -1, 32767, -32768, None]),
    (sql.INTEGER, [0, 1, -1, 2**31 - 1, -(2**31), None]),
    (sql.BIGINT, [0, 1, -7, 2**63 - 1, -(2**63), None]),
    (sql.REAL, [0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, None]),
    (sql.DOUBLE, [0.0, -0.0, 2.5, 1e300, -math.inf, math.nan, None]),
    (sql.decimal(9, 2), [0, 1, -1, 123456789, -999999999, None]),
    (sql.decimal(18, 0), [0, 10**18 - 1, -(10**18) + 1, None]),
    (LONG, [0, 1, -1, 127, 128, -128, -129, 255, 256, 10**30, -(10**37), None]),
    (sql.VARCHAR, ["", "abc", "Zürich", "日本語", *("x" * n for n in range(1, 300, 7)), None]),
    (sql.BYTEA, [b"", b"\x00", bytes(range(256)), None]),
    (sql.DATE, [0, -1, 20_000, -700_000, None]),
    (sql.TIMESTAMP, [0, -1, 1_700_000_000_123_456, None]),
    (sql.TIMESTAMPTZ, [0, -1, 1_700_000_000_123_456, None]),
]
_SPARK_TYPES = {
    sql.REAL: "float",
    sql.DOUBLE: "double",
    sql.VARCHAR: "string",
    sql.BYTEA: "binary",
    sql.TIMESTAMP: "timestamp_ntz",
    sql.TIMESTAMPTZ: "timestamp",
}


def spark_type(sql_type: SqlType) -> str:
    return _SPARK_TYPES.get(sql_type, str(sql_type))


def literal(value: Any, sql_type: SqlType) -> str:
    """A Spark SQL expression with exactly this physical value."""
    target = spark_type(sql_type)
    if value is None:
        return f"CAST(NULL AS {target})"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS {target})".replace("inf", "Infinity").replace("nan", "NaN")
    if sql_type == sql.DATE:
        return f"date_from_unix_date({value})"
    if sql_type == sql.TIMESTAMPTZ:
        return f"timestamp_micros({value})"
    if sql_type == sql.TIMESTAMP:
        return f"TIMESTAMP_NTZ '{from_physical(value, sql_type)}'"
    if sql_type.kind is sql.Kind.DECIMAL:
        return f"CAST('{from_physical(value, sql_type):f}' AS {target})"
    return f"CAST({value} AS {target})" if value != -(2**63) else "-9223372036854775807L - 1L"


def spark_hashes(spark: Any, keys: list[list[str]]) -> list[tuple[int, int]]:
    rows = ", ".join(f"xxhash64({', '.join(key)})" for key in keys)
    found = spark.sql(f"SELECT explode(array({rows})) AS h").selectExpr("h", "pmod(h, 271) AS p")
    return [(row.h % 2**64, row.p) for row in found.collect()]


def check(spark: Any, types: list[SqlType], keys: list[list[Any]]) -> None:
    expected = spark_hashes(
        spark, [[literal(v, t) for v, t in zip(key, types, strict=True)] for key in keys]
    )
    one_by_one = [hasher(types)(key) for key in keys]
    assert one_by_one == [h for h, _ in expected]
    assert [partition_of(h) for h in one_by_one] == [p for _, p in expected]
    columns = [
        values_to_array(list(column), t)
        for column, t in zip(zip(*keys, strict=True), types, strict=True)
    ]
    hashes = hash_arrays(columns, types)
    assert hashes.tolist() == [h for h, _ in expected]
    assert partitions_of(hashes).tolist() == [p for _, p in expected]


@pytest.mark.parametrize(("sql_type", "values"), CASES, ids=lambda case: str(case)[:24])
def test_one_column(spark: Any, sql_type: SqlType, values: list[Any]) -> None:
    check(spark, [sql_type], [[value] for value in values])


def test_composite_keys(spark: Any) -> None:
    types = [sql.BIGINT, sql.VARCHAR, LONG, sql.DATE]
    keys = [
        [1, "a", 5, 3],
        [None, "a", None, 3],
        [7, None, -(10**30), None],
        [None, None, None, None],
        [-1, "long " * 20, 0, -5],
    ]
    check(spark, types, keys)


def test_time(spark: Any) -> None:
    """Spark keeps a TIME as nanoseconds; types without it in a session are refused by Spark
    itself.
    """
    spark.conf.set("spark.sql.timeType.enabled", "true")
    micros = 45_296_123_456  # 12:34:56.123456
    expected = spark_hashes(spark, [["TIME '12:34:56.123456'"]])
    assert hasher([sql.TIME])([micros]) == expected[0][0]


def test_values_survive_the_way_of_a_user() -> None:
    assert to_physical(Decimal("1.5"), LONG) == 15_000
