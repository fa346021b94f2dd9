"""Filters become SQL only where both sides mean the same."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from pyspark.sql import datasource as ds

from remuda.datatypes import sql
from remuda.datatypes.schema import Column
from remuda.spark.transfer.predicates import Condition, condition, conjunction

COLUMNS = {
    column.name: column
    for column in (
        Column("i", sql.INTEGER),
        Column("d", sql.DOUBLE),
        Column("s", sql.VARCHAR),
        Column('odd "name"', sql.BIGINT),
        Column("m", sql.decimal(7, 2)),
        Column("b", sql.BOOLEAN),
        Column("day", sql.DATE),
        Column("ts", sql.TIMESTAMP),
        Column("tz", sql.TIMESTAMPTZ),
        Column("clock", sql.TIME),
    )
}
NOON = dt.datetime(2024, 1, 2, 12)  # noqa: DTZ001 (TIMESTAMP has no zone)

TAKEN = [
    (ds.EqualTo(("i",), 5), Condition('"i" = ?', (5,))),
    (ds.EqualTo(('odd "name"',), 1), Condition('"odd ""name""" = ?', (1,))),
    (ds.GreaterThanOrEqual(("m",), Decimal("1.5")), Condition('"m" >= ?', (Decimal("1.5"),))),
    (ds.LessThan(("d",), 1.5), Condition('"d" < ?', (1.5,))),
    (ds.In(("i",), (1, None, 3)), Condition('"i" IN (?, ?)', (1, 3))),
    (ds.In(("i",), (None,)), Condition("FALSE")),
    (ds.IsNull(("s",)), Condition('"s" IS NULL')),
    (ds.IsNotNull(("clock",)), Condition('"clock" IS NOT NULL')),
    (ds.EqualNullSafe(("i",), None), Condition('"i" IS NULL')),
    (ds.EqualNullSafe(("i",), 4), Condition('"i" = ?', (4,))),
    (ds.Not(ds.EqualTo(("i",), 5)), Condition('"i" <> ?', (5,))),
    (ds.Not(ds.LessThan(("i",), 5)), Condition('"i" >= ?', (5,))),
    (ds.Not(ds.IsNull(("i",))), Condition('"i" IS NOT NULL')),
    (ds.Not(ds.In(("i",), (1, 2))), Condition('NOT ("i" IN (?, ?))', (1, 2))),
    (ds.StringStartsWith(("s",), "a%_\\"), Condition('"s" LIKE ?', ("a\\%\\_\\\\%",))),
    (ds.StringEndsWith(("s",), "z"), Condition('"s" LIKE ?', ("%z",))),
    (ds.Not(ds.StringContains(("s",), "x")), Condition('NOT ("s" LIKE ?)', ("%x%",))),
    (ds.EqualTo(("b",), True), Condition('"b" = ?', (True,))),
    (ds.EqualTo(("day",), NOON.date()), Condition('"day" = ?', (NOON.date(),))),
    (ds.LessThan(("ts",), NOON), Condition('"ts" < ?', (NOON,))),
]

LEFT_TO_SPARK = [
    ds.EqualTo(("a", "b"), 1),
    ds.EqualTo(("unknown",), 1),
    ds.EqualTo(("i",), True),
    ds.EqualTo(("i",), 1.5),
    ds.EqualTo(("s",), 1),
    ds.GreaterThan(("d",), 1.0),  # NaN is greater for Spark
    ds.EqualTo(("d",), float("nan")),
    ds.Not(ds.EqualTo(("d",), 1.0)),
    ds.Not(ds.In(("i",), (1, None))),
    ds.Not(ds.EqualNullSafe(("i",), 1)),
    ds.In(("i",), tuple(range(1000))),
    ds.EqualTo(("day",), NOON),
    ds.EqualTo(("tz",), NOON),
    ds.EqualTo(("ts",), NOON.replace(tzinfo=dt.UTC)),
    ds.EqualTo(("m",), Decimal("NaN")),
    ds.StringContains(("i",), "1"),
]


@pytest.mark.parametrize(("given", "expected"), TAKEN, ids=lambda value: str(value)[:60])
def test_taken(given: ds.Filter, expected: Condition) -> None:
    assert condition(given, COLUMNS) == expected


@pytest.mark.parametrize("given", LEFT_TO_SPARK, ids=lambda value: str(value)[:60])
def test_left_to_spark(given: ds.Filter) -> None:
    assert condition(given, COLUMNS) is None


def test_conjunction_keeps_parameters_in_order() -> None:
    joined = conjunction([Condition("a = ?", (1,)), Condition("b"), Condition("c = ?", (2,))])
    assert joined == Condition("(a = ?) AND (b) AND (c = ?)", (1, 2))
    assert conjunction([]).text == ""
