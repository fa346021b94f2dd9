"""Group keys and aggregate states of the types that compare by an order key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.datatypes.sql import SqlType
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.times.intervals import pack
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.errors import IntervalOverflow
from remuda.execution.keys import KeyIds
from remuda.execution.operators.aggregate_choice import new_state

NUMBERS = sql.array(sql.INTEGER)


def column(texts: list[str | None], sql_type: SqlType) -> pa.Array:
    return values_to_array(
        [None if t is None else parse_text(t, sql_type) for t in texts], sql_type
    )


@pytest.mark.parametrize(
    ("sql_type", "texts", "ids"),
    [
        (
            sql.INTERVAL,
            [None, "1 mon", "30 days", "31 days", None, "720 hours"],
            [0, 1, 1, 2, 0, 1],
        ),
        (NUMBERS, [None, "{1}", "{1,2}", "{1}", "{}", "{NULL}"], [0, 1, 2, 1, 3, 4]),
        (sql.JSON, [None, '{"a":1}', '{"a":1.0}', "1", "null", "1.00"], [0, 1, 1, 2, 3, 2]),
        (sql.UUID, [None, "0" * 32, "1" * 32, "0" * 32], [0, 1, 2, 1]),
    ],
    ids=lambda value: str(value)[:12],
)
def test_group_ids(sql_type: SqlType, texts: list[str | None], ids: list[int]) -> None:
    whole = column(texts, sql_type)
    keys = KeyIds([sql_type])
    found = np.concatenate([keys.encode([whole.slice(0, 2)]), keys.encode([whole.slice(2)])])
    assert [number == 0 for number in found.tolist()] == [number == 0 for number in ids]
    assert len(set(zip(found.tolist(), ids, strict=True))) == len(set(ids)) == len(set(found))
    assert keys.lookup([whole]).tolist() == found.tolist()
    values = array_to_values(whole, sql_type)
    first = [values[found.tolist().index(number)] for number in range(1, max(ids) + 1)]
    (back,) = keys.decode(np.arange(1, max(ids) + 1))
    assert array_to_values(back, sql_type) == first
    pair = KeyIds([sql.BIGINT, sql_type])
    both = pair.encode([pa.array([7] * len(texts)), whole])
    assert len(set(both.tolist())) == len(set(ids))


def aggregated(
    function: str, sql_type: SqlType, texts: list[str | None], groups: list[int], result: SqlType
) -> list[Any]:
    state = new_state(function, [sql_type], result)
    state.resize(3)
    whole = column(texts, sql_type)
    for start, stop in ((0, 2), (2, len(texts))):
        state.add_columns(np.array(groups[start:stop]), [whole.slice(start, stop - start)])
    return array_to_values(state.finish(np.arange(3)), result)


def test_extremes() -> None:
    texts = ["{2}", "{1,5}", None, "{1}", "{3}", None]
    groups = [0, 0, 0, 0, 1, 2]
    assert aggregated("max", NUMBERS, texts, groups, NUMBERS) == [(2,), (3,), None]
    assert aggregated("min", NUMBERS, texts, groups, NUMBERS) == [(1,), (3,), None]
    spans = ["1 mon", "31 days", None, "29 days", "-1 us", None]
    found = aggregated("max", sql.INTERVAL, spans, groups, sql.INTERVAL)
    assert found == [pack(0, 31, 0), pack(0, 0, -1), None]


def test_sums_of_intervals() -> None:
    spans = ["1 mon 1 day", "2 days", None, "-00:00:01", "3 days", None]
    found = aggregated("sum", sql.INTERVAL, spans, [0, 0, 0, 0, 1, 2], sql.INTERVAL)
    assert found == [pack(1, 3, -1_000_000), pack(0, 3, 0), None]
    with pytest.raises(IntervalOverflow):
        aggregated("sum", sql.INTERVAL, ["2000000000 days"] * 3, [0, 0, 0], sql.INTERVAL)


def test_gathered_values() -> None:
    texts = ["1", None, "3", "4"]
    groups = [0, 0, 1, 0]
    assert aggregated("array_agg", sql.INTEGER, texts, groups, NUMBERS) == [
        (1, None, 4),
        (3,),
        None,
    ]
    found = aggregated("jsonb_agg", sql.INTEGER, texts, groups, sql.JSON)
    assert found == ["[1, null, 4]", "[3]", None]
