"""Key hashes against fixed vectors, and the vectorized form against the plain one.

tests/spark/test_keyhash_spark.py compares with Spark itself.
"""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes import sql
from remuda.datatypes.hashes.keyhash import (
    hash_arrays,
    hasher,
    is_injective,
    is_key_type,
    partition_of,
    partitions_of,
)
from remuda.datatypes.sql import SqlType
from remuda.datatypes.texts.text import parse_text
from remuda.datatypes.values import values_to_array

# What Spark 4.3 answers for SELECT xxhash64(key), pmod(xxhash64(key), 271).
VECTORS: list[tuple[list[Any], list[SqlType], int, int]] = [
    ([1], [sql.BIGINT], -7001672635703045582, 87),
    ([1], [sql.INTEGER], -6698625589789238999, 84),
    ([-7], [sql.BIGINT], -1663473129717591079, 167),
    (["abc"], [sql.VARCHAR], 1423657621850124518, 178),
    ([""], [sql.VARCHAR], -7444071767201028348, 197),
    (["Zürich"], [sql.VARCHAR], -2199928141300491114, 54),
    ([1, "a"], [sql.BIGINT, sql.VARCHAR], -8527884376001292090, 254),
    ([None], [sql.BIGINT], 42, 42),
    ([2.5], [sql.DOUBLE], 2435211733827758672, 233),
]


@pytest.mark.parametrize(("key", "types", "signed", "partition"), VECTORS)
def test_vectors(key: list[Any], types: list[SqlType], signed: int, partition: int) -> None:
    expected = signed % 2**64
    assert hasher(types)(key) == expected
    assert partition_of(expected) == partition
    arrays = [values_to_array([value], t) for value, t in zip(key, types, strict=True)]
    hashes = hash_arrays(arrays, types)
    assert hashes.tolist() == [expected]
    assert partitions_of(hashes).tolist() == [partition]


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    sql.BOOLEAN: st.booleans(),
    sql.TINYINT: integers(8),
    sql.SMALLINT: integers(16),
    sql.INTEGER: integers(32),
    sql.BIGINT: integers(64),
    sql.REAL: st.floats(width=32),
    sql.DOUBLE: st.floats(),
    sql.decimal(15, 2): st.integers(-(10**15) + 1, 10**15 - 1),
    sql.decimal(38, 2): st.integers(-(10**38) + 1, 10**38 - 1),
    sql.VARCHAR: st.one_of(st.text(max_size=12), st.text(max_size=120), st.just("x" * 300)),
    sql.BYTEA: st.binary(max_size=90),
    sql.DATE: integers(32),
    sql.TIME: st.integers(0, 86_400_000_000 - 1),
    sql.TIMESTAMP: integers(64),
    sql.TIMESTAMPTZ: integers(64),
    sql.UUID: st.binary(min_size=16, max_size=16),
}


@given(data=st.data(), size=st.integers(0, 20), cut=st.integers(0, 5))
@settings(max_examples=150, deadline=None)
def test_arrays_hash_like_single_keys(data: st.DataObject, size: int, cut: int) -> None:
    types = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    columns = [
        data.draw(st.lists(st.none() | VALUES[t], min_size=size, max_size=size)) for t in types
    ]
    arrays = [values_to_array(c, t).slice(cut) for c, t in zip(columns, types, strict=True)]
    keys = list(zip(*columns, strict=True))[cut:]
    hashes = hash_arrays(arrays, types)
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == [hasher(types)(key) for key in keys]
    assert partitions_of(hashes).tolist() == [partition_of(h) for h in hashes.tolist()]


def test_blocks_of_any_size_agree() -> None:
    numbers = np.arange(20_000)
    hashes = hash_arrays([pa.array(numbers)], [sql.BIGINT])
    texts = hash_arrays([pa.array([f"{n}" * 7 for n in numbers])], [sql.VARCHAR])
    for row in (0, 1, 8191, 8192, 16_384, 19_999):
        assert hashes[row] == hasher([sql.BIGINT])([row])
        assert texts[row] == hasher([sql.VARCHAR])([f"{row}" * 7])


def test_blocks_of_any_bytes_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "a" * 40, None, "b" * 9, "", "c" * 300, "d" * 33, None, ""] * 20
    array = pa.array(["before", *texts])[1:]
    whole = hash_arrays([array], [sql.VARCHAR])
    for size in (1, 8, 64, 100_000):
        monkeypatch.setattr("remuda.datatypes.hashes.wordhash.BLOCK_SIZE", size)
        assert (hash_arrays([array], [sql.VARCHAR]) == whole).all()
    assert whole[1] == hash_arrays([pa.array(["a" * 40])], [sql.VARCHAR])[0]


def test_partitions_of_extreme_hashes() -> None:
    hashes = np.array([0, 1, 270, 271, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert partitions_of(hashes).tolist() == [partition_of(h) for h in hashes.tolist()]
    assert partition_of(2**64 - 1) == 270


def test_a_uuid_hashes_its_text() -> None:
    value = uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
    assert hasher([sql.UUID])([value.bytes]) == hasher([sql.VARCHAR])([str(value)])


def test_equal_values_of_other_types_hash_alike() -> None:
    for sql_type, texts in (
        (sql.INTERVAL, ["1 mon", "30 days", "720 hours"]),
        (sql.JSON, ['{"a": 1, "b": [2]}', '{"b":[2.0],"a":1.00}']),
        (sql.array(sql.decimal(9, 2)), ["{1,NULL}", "{1.00,null}"]),
    ):
        values = values_to_array([parse_text(text, sql_type) for text in texts], sql_type)
        assert len(set(hash_arrays([values], [sql_type]).tolist())) == 1
        assert not is_key_type(sql_type)
    assert is_key_type(sql.UUID)


def test_which_keys_need_no_comparison() -> None:
    assert is_injective([sql.BIGINT])
    assert is_injective([sql.decimal(18, 2)])
    assert not is_injective([sql.decimal(19, 2)])
    assert not is_injective([sql.VARCHAR])
    assert not is_injective([sql.INTEGER, sql.INTEGER])


def test_a_key_of_no_column_or_of_intervals_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        hash_arrays([], [])
    with pytest.raises(ValueError, match="INTERVAL"):
        hasher([sql.INTERVAL])
