"""Questions to secondary indexes: tests of their columns, and unions and intersections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from remuda.datatypes.values import PhysicalValue
from remuda.storage.indexes.keys import LOWEST_WORD, NULL_WORD, VALUE, KeyForm, Span, after


@dataclass(frozen=True, slots=True)
class Equal:
    """The column has this value; None finds NULLs (IS NULL)."""

    value: PhysicalValue


@dataclass(frozen=True, slots=True)
class Range:
    """The column is not NULL and between two values; None: there is no such bound."""

    low: PhysicalValue = None
    low_inclusive: bool = True
    high: PhysicalValue = None
    high_inclusive: bool = True


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The column is a text that begins so."""

    prefix: str


Test: TypeAlias = Equal | Range | StartsWith
Tests: TypeAlias = tuple[Test, ...]
"""Tests of the first columns of an index; all but the last are ``Equal``."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Rows that pass one of ``choices``. ``negated`` (BITMAP of one column only): rows whose column
    is not NULL and that pass none."""

    index: int
    """Its id."""
    choices: tuple[Tests, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Access, ...]


Access: TypeAlias = Probe | AnyOf | AllOf


def spans_of(form: KeyForm, choices: Sequence[Tests]) -> list[Span]:
    """The keys of some choices, as spans in order that do not overlap."""
    spans = sorted({_span(form, tests) for tests in choices})
    merged: list[Span] = []
    for low, high in spans:
        if low >= high:  # type: ignore[operator]
            continue
        if merged and low <= merged[-1][1]:  # type: ignore[operator]
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged


def _span(form: KeyForm, tests: Tests) -> Span:
    return _word_span(form, tests) if form.words else _string_span(form, tests)


def _word_span(form: KeyForm, tests: Tests) -> Span:
    if not tests:
        return LOWEST_WORD, NULL_WORD + 1
    if all(isinstance(test, Equal) for test in tests):
        key = form.key([test.value for test in tests if isinstance(test, Equal)])
        assert isinstance(key, int)
        return key, key + 1
    (test,) = tests
    assert isinstance(test, Range)
    low, high = LOWEST_WORD, NULL_WORD
    if test.low is not None:
        low = form.word(test.low) + (not test.low_inclusive)
    if test.high is not None:
        high = form.word(test.high) + test.high_inclusive
    return low, high


def _string_span(form: KeyForm, tests: Tests) -> Span:
    if not tests:
        return b"", b"\xff"
    last = len(tests) - 1
    prefix = form.prefix([test.value for test in tests[:-1] if isinstance(test, Equal)])
    match tests[-1]:
        case Equal(value=value):
            start = prefix + form.part(last, value)
            return start, after(start)
        case StartsWith(prefix=text):
            start = prefix + form.part(last, text, closed=False)
            return start, after(start)
        case Range(low=low, low_inclusive=low_inclusive, high=high, high_inclusive=high_inclusive):
            down = form.inverted[last]
            values = prefix + (bytes([VALUE[0] ^ 0xFF]) if down else VALUE)
            first, first_in = (high, high_inclusive) if down else (low, low_inclusive)
            stop, stop_in = (low, low_inclusive) if down else (high, high_inclusive)
            start_key, stop_key = values, after(values)
            if first is not None:
                start_key = prefix + form.part(last, first)
                start_key = start_key if first_in else after(start_key)
            if stop is not None:
                stop_key = prefix + form.part(last, stop)
                stop_key = after(stop_key) if stop_in else stop_key
            return start_key, stop_key
