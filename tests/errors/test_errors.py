"""How errors show the place in a statement."""

from __future__ import annotations

import pytest

from remuda.errors import (
    ClientClosed,
    ConnectionBroken,
    DiskFull,
    NotServed,
    OutcomeUnknown,
    PartitionsLost,
    Position,
    QueryTimeout,
    RemudaError,
    SqlSyntaxError,
    TooManyQueries,
    caret_lines,
    from_report,
)


@pytest.mark.parametrize(
    ("statement", "position", "lines"),
    [
        ("SELEC 1", Position(1, 1, 0, 5), ["LINE 1: SELEC 1", "        ^^^^^"]),
        ("SELECT 1,\n\tx", Position(2, 2, 11), ["LINE 2:  x", "         ^"]),
        ("SELECT 1,\r\nx\r\n", Position(2, 1, 11), ["LINE 2: x", "        ^"]),
        # Only a newline ends a line where positions are counted.
        ("SELECT '\u2028\x0b\x85',\nx", Position(2, 1, 13), ["LINE 2: x", "        ^"]),
        ("SELECT", Position(1, 7, 6), ["LINE 1: SELECT", "              ^"]),
    ],
)
def test_the_caret_is_below_the_place(statement: str, position: Position, lines: list[str]) -> None:
    assert caret_lines(statement, position) == lines
    error = SqlSyntaxError("wrong", position=position, statement=statement)
    assert str(error).split("\n") == ["wrong", *lines]


@pytest.mark.parametrize("kind", RemudaError.kinds.values(), ids=lambda kind: kind.__name__)
def test_what_is_retryable_has_not_run(kind: type[RemudaError]) -> None:
    assert kind.retryable == (kind.transient and not kind.may_have_run)
    for may_have_run in (None, True, False):
        error = kind("it failed", may_have_run=may_have_run)
        assert not (error.retryable and error.may_have_run)
        again = from_report(error.to_report())
        assert (again.retryable, again.may_have_run) == (error.retryable, error.may_have_run)


def test_a_read_may_be_made_again_and_a_write_may_not() -> None:
    error = QueryTimeout("late", detail="d", hint="h", member="3")
    assert not error.retryable
    of_read = error.knowing(may_have_run=False)
    assert of_read.retryable
    assert str(of_read) == str(error)
    assert (of_read.member, of_read.sqlstate) == ("3", "57014")
    assert of_read.knowing(may_have_run=False) is of_read


@pytest.mark.parametrize("kind", [OutcomeUnknown, ClientClosed, PartitionsLost])
def test_what_is_never_worth_another_try(kind: type[RemudaError]) -> None:
    assert not kind("x").knowing(may_have_run=False).retryable


@pytest.mark.parametrize("kind", [DiskFull, NotServed, TooManyQueries])
def test_a_refusal_has_not_run(kind: type[RemudaError]) -> None:
    assert not kind("x").may_have_run


def test_a_lost_connection_leaves_it_open() -> None:
    assert ConnectionBroken("x").may_have_run
