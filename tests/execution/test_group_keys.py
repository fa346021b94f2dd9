"""GroupKeys give the ids of a dict over whole keys, whether or not texts depend on other parts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes.sql import BIGINT, DOUBLE, VARCHAR, SqlType
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.execution.group_keys import GroupKeys

NUMBER = st.one_of(st.none(), st.integers(0, 5), st.integers(-(2**62), 2**62))
TEXT = st.one_of(st.none(), st.sampled_from(["", "a", "a longer text", "another text", "ü" * 9]))


def arrays(rows: list[tuple], types: list[SqlType]) -> list[pa.Array]:
    columns = zip(*rows, strict=True) if rows else [() for _ in types]
    return [values_to_array(list(c), t) for c, t in zip(columns, types, strict=True)]


def check(batches: list[list[tuple]], types: list[SqlType]) -> GroupKeys:
    keys = GroupKeys(types)
    groups: dict[tuple, int] = {}
    for rows in batches:
        ids = keys.encode(arrays(rows, types)).tolist()
        for row, identity in zip(rows, ids, strict=True):
            assert groups.setdefault(row, identity) == identity
    assert sorted(groups.values()) == list(range(1, len(groups) + 1))
    assert keys.count == len(groups)
    found = keys.decode(np.arange(1, keys.count + 1))
    values = [array_to_values(a, t) for a, t in zip(found, types, strict=True)]
    for place, row in enumerate(zip(*values, strict=True)):
        assert groups[row] == place + 1
    return keys


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.tuples(TEXT, NUMBER, TEXT), max_size=8), max_size=6))
def test_any_rows(batches: list[list[tuple]]) -> None:
    check(batches, [VARCHAR, BIGINT, VARCHAR])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.tuples(NUMBER, TEXT, st.none() | st.just(0.5)), max_size=8), max_size=6)
)
def test_any_rows_with_two_leading_parts(batches: list[list[tuple]]) -> None:
    check(batches, [BIGINT, VARCHAR, DOUBLE])


def test_texts_that_depend_on_a_number_are_not_part_of_the_key() -> None:
    numbers = [(n * 7919 % 5000) for n in range(20_000)]
    rows = [(n, f"the name of {n}", None if n % 3 else "a comment") for n in numbers]
    keys = check([rows[:9000], rows[9000:], []], [BIGINT, VARCHAR, VARCHAR])
    assert keys._firsts is not None
    assert keys.count == 5000
    ids = keys.encode(arrays([(1, "another name", None)], [BIGINT, VARCHAR, VARCHAR]))
    assert keys._firsts is None
    assert ids.tolist() == [5001]
    assert keys.encode(arrays(rows[:5], [BIGINT, VARCHAR, VARCHAR])).max() <= 5000
