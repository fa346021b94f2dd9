"""Statistics of the members put together: sketches, histograms, most common values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from remuda.catalog.statistics import ColumnStatistics
from remuda.datatypes.hashes.keyhash import hash_arrays
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, VARCHAR
from remuda.member.statements import statistics_service
from remuda.member.statements.statistics_service import _merged_column
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2
from remuda.storage.maps.sketch import sketch_of


def part(
    values: range, distinct: float | None = None, common: tuple[tuple[int, float], ...] = ()
) -> tuple[int, control_pb2.ColumnStatistics]:
    """What a member says of a column with these values, one per row."""
    array = pa.array(np.arange(values.start, values.stop))
    message = control_pb2.ColumnStatistics(
        distinct=float(len(values)) if distinct is None else distinct, width=8.0
    )
    if len(values):
        message.sketch = sketch_of(hash_arrays([array], [BIGINT])).tobytes()
        bounds = np.linspace(values.start, values.stop - 1, 65).astype(int).tolist()
        message.histogram.extend(codec.encode_values(bounds))
        message.minimum.CopyFrom(codec.encode_value(values.start))
        message.maximum.CopyFrom(codec.encode_value(values.stop - 1))
    message.common_values.extend(codec.encode_values(value for value, _ in common))
    message.common_shares.extend(share for _, share in common)
    return len(values), message


def merged(*parts: tuple[int, control_pb2.ColumnStatistics]) -> ColumnStatistics:
    return _merged_column(list(parts))


def test_keys_add_up_and_shared_values_do_not() -> None:
    keys = merged(part(range(10_000)), part(range(10_000, 20_000)), part(range(20_000, 30_000)))
    assert keys.distinct == 30_000
    same = merged(part(range(5_000)), part(range(5_000)), part(range(5_000)))
    assert same.distinct == pytest.approx(5_000, rel=0.05)
    overlapping = merged(part(range(10_000)), part(range(5_000, 15_000)))
    assert overlapping.distinct == pytest.approx(15_000, rel=0.08)


def test_without_sketches_the_share_of_the_rows_decides() -> None:
    pairs = [part(range(1_000)), part(range(1_000))]
    for _, message in pairs:
        message.ClearField("sketch")
    assert merged(*pairs).distinct == 2_000
    few = [part(range(1_000), 10.0), part(range(1_000), 12.0)]
    for _, message in few:
        message.ClearField("sketch")
    assert merged(*few).distinct == 12


def test_a_histogram_of_all_rows() -> None:
    found = merged(part(range(9_000)), part(range(100_000, 101_000)))
    assert len(found.histogram) == 65
    assert list(found.histogram) == sorted(found.histogram)  # type: ignore[type-var]
    assert sum(bound >= 100_000 for bound in found.histogram) in range(5, 9)  # type: ignore[operator]
    assert (found.minimum, found.maximum) == (0, 100_999)


def test_common_values_by_their_share_of_all_rows() -> None:
    found = merged(
        part(range(3_000), common=((7, 0.5), (8, 0.1))), part(range(1_000), common=((8, 0.4),))
    )
    assert dict(found.common) == pytest.approx({7: 0.375, 8: 0.175})
    assert [value for value, _ in found.common] == [7, 8]


def test_a_member_at_another_schema_counts_with_its_rows_alone() -> None:
    """The map is being altered: its first column is text there, and a number here."""
    schema = MapSchema("m", (Column("n", BIGINT), Column("t", VARCHAR)), ("n",), ("n",), version=2)
    here = control_pb2.MapStatistics(rows=100, schema_version=2)
    here.columns.add(distinct=100.0).minimum.CopyFrom(codec.encode_value(1))
    there = control_pb2.MapStatistics(rows=50, schema_version=1)
    there.columns.add(distinct=50.0).minimum.CopyFrom(codec.encode_value("a text"))
    found = statistics_service.merged(schema, [here, there])
    assert found.rows == 150
    assert found.columns["n"].minimum == 1
    assert "t" not in found.columns
