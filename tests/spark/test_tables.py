"""Tables of Spark's catalog know their options, though Spark does not say them again."""

from __future__ import annotations

from pyspark.sql import types as T  # noqa: N812

from remuda.spark.transfer.tables import keeping_options, options_of

SCHEMA = T.StructType([T.StructField("k", T.LongType()), T.StructField("v", T.StringType())])
GIVEN = {
    "provider": "remuda",
    "owner": "somebody",
    "option.map": "m",
    "Address": "a:1",
    "map": "m",
    "user": "u",
    "password": "secret",
}


def test_options_go_with_the_columns() -> None:
    kept = T.StructType.fromJson(keeping_options(SCHEMA, GIVEN).jsonValue())
    assert options_of(kept, {}) == {"address": "a:1", "map": "m", "user": "u"}
    assert "secret" not in kept.json()
    assert options_of(kept, {"write": "insert"})["write"] == "insert"
    assert options_of(T.StructType(kept.fields[1:]), {})["map"] == "m"


def test_what_is_no_table_has_its_own_options() -> None:
    assert keeping_options(SCHEMA, {"address": "a:1", "map": "m"}) is SCHEMA
    assert options_of(SCHEMA, {"map": "m"}) == {"map": "m"}
    kept = keeping_options(SCHEMA, GIVEN)
    other = {"Address": "b:2", "map": "n"}
    assert options_of(kept, other) == other, "a frame that was read from a table"
