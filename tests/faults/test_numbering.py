"""The judge of numbers finds what it looks for."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

from numbering import Drawn, Numbers
from workload import Journal


def drawing(plain: list[Drawn], numbered: tuple[int, ...] = ()) -> Numbers:
    """One that has seen this."""
    client = SimpleNamespace(sql=lambda _: None)
    work = Numbers(Journal(), client, Random(1))  # type: ignore[arg-type]
    work.prepare()
    work.drawn["plain"] = plain
    work.drawn["numbered"] = [Drawn(numbered, 0.0, 1.0)] if numbered else []
    work.stored = {1, 2}
    return work


def test_numbers_in_order_are_well() -> None:
    first = drawing([Drawn((1, 2), 0.0, 1.0), Drawn((5,), 3.0, 4.0)], (1, 2))
    second = drawing([Drawn((4,), 0.5, 3.5)])  # beside both
    assert Numbers.judge([first, second]) == []


def test_a_number_of_two_threads_is_told() -> None:
    found = Numbers.judge([drawing([Drawn((1,), 0, 1)]), drawing([Drawn((1,), 0.5, 2)])])
    assert found == ["numbers: plain gave out 1 twice: [1]"]


def test_a_number_below_one_that_was_told_before_is_told() -> None:
    found = Numbers.judge([drawing([Drawn((9,), 0, 1), Drawn((8,), 2, 3)])])
    assert found == ["numbers: plain gave 8 at 2.000, when 9 had been told"]


def test_rows_that_are_gone_are_told() -> None:
    found = Numbers.judge([drawing([], (2, 3))])
    assert found == ["numbers: rows [3] were told and are not there"]
