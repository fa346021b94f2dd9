"""Columns of DECIMALs as PostgreSQL's NUMERIC, compared with single values."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from remuda.datatypes.sql import decimal
from remuda.postgres.numeric_columns import short_decimals
from remuda.postgres.numeric_digits import encode_numeric


@pytest.mark.parametrize("scale", [0, 1, 2, 3, 4, 5, 8, 10])
def test_columns_are_written_as_single_values_are(scale):
    chance = random.Random(scale)
    values = [0, 1, -1, 9999, 10_000, 10**8, -(10**12), 120_000, 5 * 10**15, None]
    values += [chance.randrange(-(10 ** chance.randrange(1, 15)), 10**15) for _ in range(300)]
    found = short_decimals(pa.array(values, pa.int64()), decimal(18, scale)).to_pylist()
    assert found == [None if v is None else encode_numeric(v, scale) for v in values]


def test_parts_of_columns_and_columns_of_nulls_are_written():
    array = pa.array([5, None, 120, 7], pa.int64())
    found = short_decimals(array.slice(1, 2), decimal(10, 2)).to_pylist()
    assert found == [None, encode_numeric(120, 2)]
    assert short_decimals(pa.array([], pa.int64()), decimal(10, 2)).to_pylist() == []


def test_numbers_of_many_digits_take_the_general_way():
    assert short_decimals(pa.array([10**17], pa.int64()), decimal(18, 0)) is None
