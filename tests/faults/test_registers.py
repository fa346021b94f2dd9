"""The checker of single keys: what it accepts, and each kind of violation that it must see."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from registers import Operation, Outcome, violation

INF = float("inf")


def w(value, began, ended, outcome=Outcome.DONE):
    return Operation("k", True, value, began, ended, outcome)


def r(value, began, ended):
    return Operation("k", False, value, began, ended)


@pytest.mark.parametrize("history", [
    [w(1, 0, 1), r(1, 2, 3)],
    [r(None, 0, 1), w(1, 0, 5), r(1, 2, 3)],
    [w(1, 0, 1), w(2, 2, 9), r(1, 3, 4), r(2, 5, 6)],
    [w(1, 0, INF, Outcome.UNKNOWN), r(None, 5, 6), r(1, 7, 8)],
    [w(1, 0, INF, Outcome.UNKNOWN), w(2, 1, 2), r(2, 3, 4)],
    [w(1, 0, INF, Outcome.UNKNOWN), w(2, 1, 2), r(2, 3, 4), r(1, 5, 6)],
    [w(1, 0, 1, Outcome.FAILED), r(None, 2, 3)],
    [w(1, 0, 10), w(2, 0, 10), r(1, 1, 9), r(2, 1, 9)],
])  # fmt: skip
def test_what_could_have_been(history):
    assert violation(history) == ""


@pytest.mark.parametrize(("history", "what"), [
    ([w(1, 0, 1), r(None, 2, 3)], "two values at the same time|amid"),
    ([w(1, 0, 1), w(2, 2, 3), r(1, 4, 5)], "two values|amid"),
    ([w(1, 0, 1), w(2, 2, 9), r(2, 3, 4), r(1, 5, 6)], "two values|amid"),
    ([r(7, 0, 1)], "nobody wrote"),
    ([w(1, 0, 1, Outcome.FAILED), r(1, 2, 3)], "had failed"),
    ([r(1, 0, 1), w(1, 2, 3)], "before it was written"),
    ([w(1, 0, INF, Outcome.UNKNOWN), w(2, 1, 2), r(1, 3, 4), r(2, 5, 6), r(1, 7, 8)],
     "two values|amid"),
    ([w(1, 0, 1), w(2, 3, 4), r(1, 6, 7), r(2, 8, 9)], "two values|amid"),
])  # fmt: skip
def test_what_could_not(history, what):
    found = violation(history)
    assert any(part in found for part in what.split("|")), found


def by_search(history):
    """Some order of the operations explains all reads: tried one after the other."""
    seen = [op for op in history if op.outcome is Outcome.DONE]
    maybe = [op for op in history if op.outcome is Outcome.UNKNOWN]
    for count in range(len(maybe) + 1):
        for chosen in itertools.combinations(maybe, count):
            for order in itertools.permutations([*seen, *chosen]):
                if all(
                    a.began <= b.ended for i, a in enumerate(order) for b in order[i + 1 :]
                ) and explains(order):
                    return True
    return False


def explains(order):
    value = None
    for op in order:
        if op.writes:
            value = op.value
        elif op.value != value:
            return False
    return True


@pytest.mark.parametrize("seed", range(40))
def test_against_a_search_through_all_orders(seed):
    random = Random(seed)
    for _ in range(8):
        history, values = [], [None]
        for number in range(random.randrange(2, 7)):
            began = random.randrange(12)
            ended = began + random.randrange(1, 8) + 0.5
            if random.random() < 0.5:
                unknown = random.random() < 0.3
                outcome = Outcome.UNKNOWN if unknown else Outcome.DONE
                history.append(w(number, began, INF if unknown else ended, outcome))
                values.append(number)
            else:
                history.append(r(random.choice(values), began, ended))
        if history:
            assert (violation(history) == "") == by_search(history), "\n".join(map(str, history))
