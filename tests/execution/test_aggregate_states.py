"""States of aggregates: in any number of parts they give what all rows at once give."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    VARCHAR,
    Kind,
    SqlType,
    decimal,
)
from remuda.datatypes.values import array_to_values, values_to_array
from remuda.errors import NumericOverflow
from remuda.execution.operators.aggregate_choice import new_state
from remuda.execution.operators.ordering import BoundKey
from remuda.plan.expression import AggregateCall, ArgumentOrder, ColumnRef
from remuda.plan.functions.aggregates import FUNCTIONS, splits, state_type
from remuda.plan.functions.signatures import StateForm

NUMBER = ColumnRef(INTEGER, 1, "n")


def result(state, size: int, type_: SqlType) -> list[object]:
    state.resize(size)
    return array_to_values(state.finish(np.arange(size)), type_)


def in_parts(function: str, types: list[SqlType], type_: SqlType, rows, size: int, parts: int):
    """Every part has a state of its own; their packed forms are merged, in one batch."""
    groups, packed = [], []
    for part in range(parts):
        state = new_state(function, types, type_)
        state.resize(size)
        mine = rows[part::parts]
        if mine:
            state.add_columns(
                np.array([row[0] for row in mine], np.int64),
                [values_to_array([row[1 + i] for row in mine], t) for i, t in enumerate(types)],
            )
        groups.append(np.arange(size))
        packed.append(state.packed(np.arange(size)))
    final = new_state(function, types, type_)
    final.resize(size)
    final.merge(np.concatenate(groups), pa.concat_arrays(packed))
    return result(final, size, type_)


def exact_variance(values: list[int], scale: int, sample: bool) -> float | None:
    count = len(values)
    if count - sample <= 0:
        return None
    mean = Fraction(sum(values), count)
    return float(sum((v - mean) ** 2 for v in values) / (count - sample) / 100**scale)


INTEGERS = st.one_of(
    st.integers(-50, 50), st.integers(-(2**63), 2**63 - 1), st.integers(10**18, 10**18 + 9)
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.none() | INTEGERS)), st.integers(1, 3))
def test_variances_of_integers(rows, parts):
    for function, sample in (("var_samp", True), ("var_pop", False)):
        found = in_parts(function, [BIGINT], DOUBLE, rows, 3, parts)
        for group in range(3):
            values = [v for g, v in rows if g == group and v is not None]
            expected = exact_variance(values, 0, sample)
            if expected is None:
                assert found[group] is None
            else:
                assert math.isclose(found[group], expected, rel_tol=1e-9, abs_tol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.just(0), st.integers(-(10**29), 10**29)), max_size=20))
def test_variances_of_long_decimals(rows):
    (found,) = in_parts("stddev_pop", [decimal(30, 4)], DOUBLE, rows, 1, 2)
    expected = exact_variance([v for _, v in rows], 4, False)
    assert (found is None) == (expected is None)
    if expected is not None:
        assert math.isclose(found, math.sqrt(expected), rel_tol=1e-9)


def test_a_small_spread_on_a_large_offset():
    rows = [(0, 10**18 + v) for v in (1, 2, 3, 4)]
    assert in_parts("var_samp", [BIGINT], DOUBLE, rows, 1, 3) == [pytest.approx(5 / 3, rel=1e-14)]
    rows = [(0, 1e9 + v) for v in (0.25, 0.5, 0.75)]
    found = in_parts("var_pop", [DOUBLE], DOUBLE, rows, 1, 2)
    assert found == [pytest.approx(statistics.pvariance([0.25, 0.5, 0.75]), rel=1e-14)]


def test_equal_values_have_no_spread():
    rows = [(0, 0.1, 0.3) for _ in range(7)]
    assert in_parts("var_pop", [DOUBLE], DOUBLE, [r[:2] for r in rows], 1, 3) == [0.0]
    assert in_parts("corr", [DOUBLE, DOUBLE], DOUBLE, rows, 1, 3) == [None]
    assert in_parts("regr_r2", [DOUBLE, DOUBLE], DOUBLE, rows, 1, 3) == [None]


FLOATS = st.none() | st.floats(-1e6, 1e6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), FLOATS, FLOATS)), st.integers(1, 3))
def test_regressions(rows, parts):
    for group, slope, intercept, count in zip(
        range(2),
        in_parts("regr_slope", [DOUBLE, DOUBLE], DOUBLE, rows, 2, parts),
        in_parts("regr_intercept", [DOUBLE, DOUBLE], DOUBLE, rows, 2, parts),
        in_parts("regr_count", [DOUBLE, DOUBLE], BIGINT, rows, 2, parts),
        strict=True,
    ):
        pairs = [(y, x) for g, y, x in rows if g == group and y is not None and x is not None]
        assert count == len(pairs)
        if len(pairs) < 2 or max(x for _, x in pairs) - min(x for _, x in pairs) < 1e-3:
            continue
        mean_x = statistics.fmean(x for _, x in pairs)
        mean_y = statistics.fmean(y for y, _ in pairs)
        sxx = sum((x - mean_x) ** 2 for _, x in pairs)
        sxy = sum((x - mean_x) * (y - mean_y) for y, x in pairs)
        size = max(1.0, *(abs(v) for pair in pairs for v in pair))
        assert math.isclose(slope, sxy / sxx, rel_tol=1e-6, abs_tol=1e-6 * size)
        expected = mean_y - mean_x * sxy / sxx
        assert math.isclose(intercept, expected, rel_tol=1e-5, abs_tol=1e-5 * size * size)


def test_infinity_is_no_overflow_but_huge_values_are():
    (found,) = in_parts("var_pop", [DOUBLE], DOUBLE, [(0, math.inf), (0, 1.0)], 1, 1)
    assert math.isnan(found)
    with pytest.raises(NumericOverflow):
        in_parts("var_pop", [DOUBLE], DOUBLE, [(0, 1e300), (0, -1e300)], 1, 1)


@pytest.mark.parametrize("count", [0, 1, 5, 1000, 60_000])
@pytest.mark.parametrize("type_", [BIGINT, VARCHAR])
def test_estimates_of_distinct_values(count, type_):
    values = [v if type_ is BIGINT else f"key {v}" for v in range(count)]
    rows = [(v % 2 if count > 5 else 0, value) for v, value in enumerate(values * 2)]
    found = in_parts("approx_count_distinct", [type_], BIGINT, rows, 2, 3)
    assert sum(found) == pytest.approx(count, rel=0.03)
    if count <= 5:
        assert found == [count, 0]
    alone = new_state("approx_count_distinct", [type_], BIGINT)
    alone.resize(2)
    if rows:
        alone.add(np.array([g for g, _ in rows]), values_to_array([v for _, v in rows], type_))
    assert result(alone, 2, BIGINT) == found


def test_rows_of_a_group_are_taken_in_order():
    keys = [BoundKey(2, INTEGER, descending=True)]
    state = new_state("string_agg", [VARCHAR, VARCHAR, INTEGER], VARCHAR, keys)
    state.resize(3)
    columns = [
        pa.array(["a", "b", None, "c", "d"]),
        pa.array(["-", "+", "*", None, "/"]),
        pa.array([1, 2, 3, 4, 5], pa.int32()),
    ]
    state.add_columns(np.array([0, 0, 0, 0, 2]), columns)
    assert state.bytes > 0
    assert result(state, 3, VARCHAR) == ["c+b-a", None, "d"]


def test_extreme_rows_are_kept_over_many_batches():
    state = new_state("max_by", [VARCHAR, INTEGER], VARCHAR)
    state.resize(2)
    for start in range(0, 300_000, 50_000):
        keys = np.arange(start, start + 50_000, dtype=np.int32)
        state.add_columns(keys % 2, [pa.array([f"v{k}" for k in keys]), pa.array(keys)])
    assert state.bytes < 8_000_000  # most rows have lost by now
    assert result(state, 2, VARCHAR) == ["v299998", "v299999"]


def test_what_can_be_computed_in_two_phases():
    call = AggregateCall("stddev_samp", NUMBER, DOUBLE)
    assert splits(call)
    assert state_type(call).kind.name == "BYTEA"
    assert not splits(AggregateCall("stddev_samp", NUMBER, DOUBLE, distinct=True))
    assert splits(AggregateCall("max", NUMBER, INTEGER))
    assert state_type(AggregateCall("max", NUMBER, INTEGER)) == INTEGER
    ordered = AggregateCall("array_agg", NUMBER, INTEGER, order=(ArgumentOrder(NUMBER),))
    assert not splits(ordered)
    assert not splits(AggregateCall("median", NUMBER, DOUBLE))


def test_every_aggregate_has_a_state():
    candidates = [
        [DOUBLE], [INTEGER], [BOOLEAN], [VARCHAR], [DOUBLE, DOUBLE], [VARCHAR, VARCHAR],
        [VARCHAR, DOUBLE], [VARCHAR, INTEGER],
    ]  # fmt: skip
    for function in FUNCTIONS:
        if function.name == "avg":
            continue  # the planner makes sum / count of it
        found = [s for types in candidates if (s := function.resolve(tuple(types))) is not None]
        assert found, function.name
        state = new_state(function.name, list(found[0].arguments), found[0].result)
        state.resize(2)
        if function.state is StateForm.PACKED:
            assert len(state.packed(np.arange(2))) == 2
        values = array_to_values(state.finish(np.arange(2)), found[0].result)
        assert values == ([0, 0] if function.counts else [None, None])


SAMPLES = (
    (), (INTEGER,), (BOOLEAN,), (DOUBLE,), (VARCHAR,), (DOUBLE, DOUBLE), (INTEGER, INTEGER),
    (VARCHAR, VARCHAR),
)  # fmt: skip
"""Arguments of which every aggregate takes some."""


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_every_aggregate_of_the_table_has_a_state(function):
    """Rows in a table and states are written in two modules. ``avg`` is a sum and a count."""
    if function.name == "avg":
        return
    signatures = [s for s in map(function.resolve, filter(None, SAMPLES)) if s is not None]
    assert signatures, "no sample of arguments fits: add one"
    for signature in signatures:
        state = new_state(function.name, signature.arguments, signature.result)
        state.resize(1)
        assert len(state.finish(np.arange(1))) == 1


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_results_of_parts_combine_to_the_type_of_the_whole(function):
    """An aggregate that the planner computes twice, by ``combine``, keeps its type. A repeated
    value that changes nothing in a part changes nothing in the whole."""
    known = {each.name: each for each in FUNCTIONS}
    if function.combine:
        for signature in filter(None, map(function.resolve, filter(None, SAMPLES))):
            combined = known[function.combine].resolve((signature.result,))
            assert combined is not None
            assert combined.result.kind in (signature.result.kind, Kind.DECIMAL)
    if function.idempotent:
        assert function.combine in ("", function.name)
        assert function.state is StateForm.RESULT
