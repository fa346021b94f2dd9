"""Metric families, and their form in Prometheus' text format 0.0.4.

Source of the format: "Exposition formats" of Prometheus' documentation. A family is one name with a
help text, a type, and samples that differ in their labels.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

LATENCY_BUCKETS: Final = (
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper ends in seconds: a read by key takes 50 µs to 1 ms, a statement up to minutes."""

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """``value`` of the family with these labels; ``suffix`` is added to the family's name."""

    labels: Labels
    value: float
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """``kind``: counter, gauge or histogram."""

    name: str
    kind: str
    help: str
    samples: Sequence[Sample]


def gauge(name: str, help_text: str, value: float) -> Family:
    """A family with one sample that goes up and down."""
    return Family(name, "gauge", help_text, (Sample({}, value),))


def counter(name: str, help_text: str, value: float) -> Family:
    """A family with one sample that only grows; ``name`` ends with ``_total``."""
    return Family(name, "counter", help_text, (Sample({}, value),))


def by_label(
    name: str, kind: str, help_text: str, label: str, values: Iterable[tuple[str, float]]
) -> Family:
    """A family whose samples differ in one label."""
    return Family(name, kind, help_text, [Sample({label: key}, value) for key, value in values])


@dataclass(slots=True)
class Histogram:
    """Counts of observations by upper end of bucket. ``observe`` is on the path of every read by
    key: one search among the bounds, two additions."""

    bounds: tuple[float, ...] = LATENCY_BUCKETS
    counts: list[int] = field(init=False)
    sum: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def samples(self, labels: Labels) -> list[Sample]:
        """Cumulative buckets, the sum and the count, as the format wants them."""
        found, below = [], 0
        for bound, count in zip((*self.bounds, math.inf), self.counts, strict=True):
            below += count
            found.append(Sample({**labels, "le": _number(bound)}, below, "_bucket"))
        found.append(Sample(labels, self.sum, "_sum"))
        found.append(Sample(labels, below, "_count"))
        return found


def exposition(families: Iterable[Family]) -> bytes:
    """The text that a scraper reads. Families without samples are left out."""
    lines: list[str] = []
    for family in families:
        if not family.samples:
            continue
        lines.append(f"# HELP {family.name} {_help(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines.extend(
            f"{family.name}{sample.suffix}{_labels(sample.labels)} {_number(sample.value)}"
            for sample in family.samples
        )
    return ("\n".join(lines) + "\n").encode()


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_value(text)}"' for name, text in labels.items()) + "}"


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _value(text: str) -> str:
    return _help(text).replace('"', r"\"")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) else repr(float(value))
