"""Prometheus' text format, read back by Prometheus' own Python parser."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from remuda.member.metrics.families import (
    Family,
    Histogram,
    Sample,
    by_label,
    counter,
    exposition,
    gauge,
)


def read(families):
    return list(text_string_to_metric_families(exposition(families).decode()))


def test_a_gauge_and_a_counter():
    text = exposition([gauge("a", "An a.", 1.5), counter("b_total", "Bs.", 3)])
    assert text.decode() == (
        "# HELP a An a.\n# TYPE a gauge\na 1.5\n"
        "# HELP b_total Bs.\n# TYPE b_total counter\nb_total 3\n"
    )


def test_a_family_without_samples_is_left_out():
    assert read([Family("a", "gauge", "An a.", ())]) == []


@given(st.text())
def test_any_label_and_help_come_back(text):
    (family,) = read([by_label("a", "gauge", "Help: " + text, "name", [(text, 1)])])
    assert [sample.labels for sample in family.samples] == [{"name": text}]


@given(st.floats())
def test_any_value_comes_back(value):
    (family,) = read([gauge("a", "An a.", value)])
    found = family.samples[0].value
    assert found == value or (math.isnan(found) and math.isnan(value))


@given(st.lists(st.floats(0, 100)))
def test_buckets_are_cumulative(values):
    histogram = Histogram((0.1, 1.0, 10.0))
    for value in values:
        histogram.observe(value)
    (family,) = read([Family("a_seconds", "histogram", "A.", histogram.samples({"k": "v"}))])
    found = {(s.name, s.labels.get("le")): s.value for s in family.samples}
    for bound in (0.1, 1.0, 10.0):
        text = "1" if bound == 1 else "10" if bound == 10 else "0.1"
        assert found["a_seconds_bucket", text] == sum(value <= bound for value in values)
    assert found["a_seconds_bucket", "+Inf"] == found["a_seconds_count", None] == len(values)
    assert found["a_seconds_sum", None] == pytest.approx(sum(values))


def test_samples_keep_their_labels():
    samples = [Sample({"a": "1", "b": "2"}, 1), Sample({"a": "1", "b": "3"}, 2)]
    (family,) = read([Family("x", "gauge", "X.", samples)])
    assert [(s.labels, s.value) for s in family.samples] == [
        ({"a": "1", "b": "2"}, 1),
        ({"a": "1", "b": "3"}, 2),
    ]
