"""Order keys: single values and columns agree, and the order is PostgreSQL's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes import sql
from remuda.datatypes.hashes.orderkeys import json_key, order_keys, value_key
from remuda.datatypes.sql import SqlType
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.times.intervals import pack
from remuda.datatypes.values import values_to_array

SMALL = st.integers(-3, 3)
VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    sql.INTERVAL: st.builds(pack, SMALL, st.integers(-99, 99), st.integers(-(2**62), 2**62)),
    sql.array(sql.INTEGER): st.lists(st.none() | SMALL).map(tuple),
    sql.array(sql.DOUBLE): st.lists(st.none() | st.floats()).map(tuple),
    sql.array(sql.BOOLEAN): st.lists(st.none() | st.booleans()).map(tuple),
    sql.array(sql.VARCHAR): st.lists(st.none() | st.sampled_from(["", "a", "a\x01", "é"])).map(
        tuple
    ),
    sql.array(sql.decimal(38, 2)): st.lists(st.integers(-(10**30), 10**30)).map(tuple),
    sql.JSON: st.sampled_from(["1", "1.0", "[]", "{}", "null", '"a"', "[1, 2]", '{"a": 1}']),
    sql.row([("a", sql.VARCHAR), ("b", sql.array(sql.INTEGER))]): st.tuples(
        st.none() | st.text(max_size=2), st.none() | st.lists(SMALL).map(tuple)
    ),
}


@given(data=st.data(), sql_type=st.sampled_from(list(VALUES)), cut=st.integers(0, 2))
@settings(max_examples=200, deadline=None)
def test_columns_and_single_values_agree(data: st.DataObject, sql_type: SqlType, cut: int) -> None:
    values = data.draw(st.lists(st.none() | VALUES[sql_type], max_size=8))
    key = value_key(sql_type)
    keys = order_keys(values_to_array(values, sql_type).slice(cut), sql_type)
    keys.validate(full=True)
    assert keys.to_pylist() == [None if v is None else key(v) for v in values[cut:]]


@given(st.lists(st.none() | SMALL, max_size=4), st.lists(st.none() | SMALL, max_size=4))
def test_arrays_compare_element_by_element_with_null_last(
    left: list[Any], right: list[Any]
) -> None:
    key = value_key(sql.array(sql.INTEGER))

    def rank(items: list[Any]) -> list[tuple[bool, int]]:
        return [(item is None, item or 0) for item in items]

    assert (key(tuple(left)) < key(tuple(right))) is (rank(left) < rank(right))
    assert (key(tuple(left)) == key(tuple(right))) is (left == right)


ASCENDING = [
    (sql.INTERVAL, ["-1 month", "-29 days", "00:00", "1 us", "23:59", "1 day", "29 days", "1 mon"]),
    (sql.JSON, ["[]", "null", '"a"', '"b"', "-10", "-9.5", "0", "0.1", "9", "1e1", "11", "false",
                "true", "[1]", "[2]", "[1, 1]", "{}", '{"a": 1}', '{"a": 2}', '{"b": 1}',
                '{"a": 1, "b": 1}']),
    (sql.array(sql.VARCHAR), ["{}", '{""}', "{a}", "{a,b}", "{aa}", "{b}", "{NULL}"]),
    (sql.array(sql.DOUBLE), ["{-Infinity}", "{-1}", "{0}", "{1}", "{1,NaN}", "{NaN}"]),
]  # fmt: skip


@pytest.mark.parametrize(("sql_type", "texts"), ASCENDING, ids=lambda value: str(value)[:20])
def test_the_order(sql_type: SqlType, texts: list[str]) -> None:
    key = value_key(sql_type)
    keys = [key(parse_text(text, sql_type)) for text in texts]
    assert sorted(keys) == keys
    assert len(set(keys)) == len(keys)


def test_equal_values() -> None:
    key = value_key(sql.INTERVAL)
    assert key(pack(1, 0, 0)) == key(pack(0, 30, 0)) == key(pack(0, 0, 30 * 86_400_000_000))
    assert json_key('{"a": 1, "b": 2}') == json_key('{"b": 2.0, "a": 1.00}')
    assert json_key("0") == json_key("0.00")
