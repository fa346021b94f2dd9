"""Quantiles from buckets: their error is bounded, also of merged counts."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from remuda.member.metrics.quantiles import (
    BUCKETS,
    RELATIVE_ERROR,
    SECONDS_MAX,
    SECONDS_MIN,
    bucket,
    quantile,
    seconds_of,
)

times = st.floats(SECONDS_MIN, SECONDS_MAX)
samples = st.lists(times, min_size=1, max_size=60)
SLACK = 1 + 1e-9
"""For the rounding of logarithms."""


def counted(found):
    return Counter(map(bucket, found))


@given(times)
def test_every_time_is_near_that_of_its_bucket(seconds):
    number = bucket(seconds)
    assert 0 <= number < BUCKETS
    assert abs(seconds_of(number) - seconds) <= RELATIVE_ERROR * seconds * SLACK


@given(st.lists(samples, min_size=1, max_size=4), st.floats(0, 1))
def test_quantiles_of_merged_counts_are_near_the_real_ones(members, fraction):
    """Each member counts its own calls; the counts are added up."""
    merged = sum((counted(each) for each in members), Counter())
    ordered = sorted(seconds for each in members for seconds in each)
    real = ordered[max(1, math.ceil(fraction * len(ordered))) - 1]
    assert abs(quantile(merged, fraction) - real) <= RELATIVE_ERROR * real * SLACK


def test_times_out_of_range_count_as_the_ends():
    assert bucket(0.0) == bucket(-1.0) == bucket(SECONDS_MIN) == 0
    assert bucket(SECONDS_MAX) == bucket(1e300) == BUCKETS - 1
    assert quantile({}, 0.5) is None
