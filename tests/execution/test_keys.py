"""Dense ids of keys against a dict, over any sequence of batches."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes.sql import BIGINT, BOOLEAN, DOUBLE, INTEGER, VARCHAR, SqlType, decimal
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.execution.keys import IntegerIds, KeyIds

WORD = st.one_of(
    st.integers(-20, 60),
    st.integers(0, 5000),
    st.integers(4000, 1 << 21),
    st.integers(-(1 << 21), 1 << 21),
    st.sampled_from([-(2**63), 2**63 - 1, 2**63 - 2, 2**31, -(2**31), 2**32]),
    st.integers(-(2**63), 2**63 - 1),
)
BATCH = st.one_of(
    *(
        st.tuples(st.booleans(), st.lists(element, max_size=12))
        for element in (st.integers(0, 100), st.integers(-3000, 9000), WORD)
    )
)


@settings(max_examples=150, deadline=None)
@given(batches=st.lists(BATCH, max_size=12))
def test_integer_ids_are_a_dict(batches: list[tuple[bool, list[int]]]) -> None:
    ids = IntegerIds()
    model: dict[int, int] = {}
    for grow, words in batches:
        data = np.array(words, np.int64)
        if grow:
            given_ids = ids.encode(data).tolist()
            for word, number in zip(words, given_ids, strict=True):
                assert model.setdefault(word, number) == number
            assert sorted(model.values()) == list(range(1, len(model) + 1))
        else:
            assert ids.lookup(data).tolist() == [model.get(word, 0) for word in words]
        assert ids.count == len(model)
        values = ids.values().tolist()
        assert all(values[number - 1] == word for word, number in model.items())


@pytest.mark.parametrize("first", [0, 1, 7, 4000, 5000, -5, -4096])
def test_a_table_that_grows_a_little_covers_the_new_words(first: int) -> None:
    """Grown by half as a precaution, but never to less than what the batch needs."""
    for size, step in itertools.product((1, 2, 3, 18, 21, 100), (1, 2, 17, 19, 30, 99, 150)):
        ids = IntegerIds()
        ids.encode(np.arange(first, first + size, dtype=np.int64))
        more = np.array([first + size - 1 + step], np.int64)
        assert ids.encode(more).tolist() == [size + 1]
        assert ids.lookup(more).tolist() == [size + 1]


TYPES: dict[SqlType, st.SearchStrategy[Any]] = {
    INTEGER: st.integers(-40, 40) | st.integers(-(2**31), 2**31 - 1),
    BIGINT: st.integers(0, 20) | st.integers(-(2**63), 2**63 - 1),
    BOOLEAN: st.booleans(),
    DOUBLE: st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf")]),
    VARCHAR: st.text("ab\0é", max_size=3) | st.sampled_from(["sevenby", "eightbyt", "very long"]),
    decimal(9, 2): st.integers(-500, 500),
    decimal(30, 2): st.integers(-5, 5) | st.sampled_from([10**29, -(10**29), 2**64]),
}


def same(value: object) -> object:
    """Keys that are equal in SQL are equal here."""
    return "nan" if value != value else value


@st.composite
def keyed_batches(
    draw: st.DrawFn,
) -> tuple[list[SqlType], list[tuple[bool, list[tuple[object, ...]]]]]:
    types = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | TYPES[type_] for type_ in types))
    batches = st.tuples(st.booleans(), st.lists(row, max_size=10))
    return types, draw(st.lists(batches, max_size=8))


@settings(max_examples=150, deadline=None)
@given(case=keyed_batches(), padding=st.integers(0, 2))
def test_keys_are_a_dict(
    case: tuple[list[SqlType], list[tuple[bool, list[tuple[object, ...]]]]], padding: int
) -> None:
    types, batches = case
    keys = KeyIds(types)
    model: dict[tuple[object, ...], int] = {}
    for grow, rows in batches:
        arrays: list[pa.Array] = []
        for place, type_ in enumerate(types):
            values = [row[place] for row in rows]
            lead = [value for value in values if value is not None][:1] * padding
            arrays.append(values_to_array(lead + values, type_)[len(lead) :])  # type: ignore[arg-type]
        wanted = [tuple(map(same, row)) for row in rows]
        if grow:
            numbers = keys.encode(arrays).tolist()
            for key, number in zip(wanted, numbers, strict=True):
                if key == (None,):
                    assert number == 0
                else:
                    assert model.setdefault(key, number) == number
            assert len(set(model.values())) == len(model)
            back = keys.decode(np.array(numbers, np.int64))
            columns = [array_to_values(a, t) for a, t in zip(back, types, strict=True)]
            assert [tuple(map(same, row)) for row in zip(*columns, strict=True)] == wanted
        else:
            found = keys.lookup(arrays).tolist()
            assert found == [0 if None in key else model.get(key, 0) for key in wanted]
