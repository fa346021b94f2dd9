"""The judge of histories knows each anomaly by name, and finds none where there is none."""

from __future__ import annotations

from random import Random

import pytest
from histories import Append, Outcome, Read, Transaction, anomalies
from weaker_histories import judged


def tx(
    *operations: Append | Read, at: tuple[float, float] = (0, 100), **more: Outcome
) -> Transaction:
    return Transaction(operations, began=at[0], ended=at[1], **more)


def r(key: str, *values: int) -> Read:
    return Read(key, values)


def a(key: str, value: int) -> Append:
    return Append(key, value)


CASES: dict[str, tuple[list[Transaction], list[str]]] = {
    "one after the other": (
        [
            tx(a("x", 1), at=(0, 1)),
            tx(r("x", 1), a("x", 2), at=(2, 3)),
            tx(r("x", 1, 2), at=(4, 5)),
        ],
        [],
    ),
    "dirty write": (
        [tx(a("x", 1), a("y", 1)), tx(a("x", 2), a("y", 2)), tx(r("x", 1, 2)), tx(r("y", 2, 1))],
        ["G0"],
    ),
    "aborted read": ([tx(a("x", 1), outcome=Outcome.ABORTED), tx(r("x", 1))], ["G1a"]),
    "intermediate read": (
        [tx(a("x", 1), a("x", 2)), tx(r("x", 1)), tx(r("x", 1, 2))],
        ["G1b", "G-single"],
    ),
    "circular information flow": (
        [tx(a("x", 1), r("y", 1)), tx(a("y", 1), r("x", 1))],
        ["G1c"],
    ),
    "lost update": (
        [tx(r("x"), a("x", 1)), tx(r("x"), a("x", 2)), tx(r("x", 1, 2))],
        ["G-single"],
    ),
    "an update that overwrote another": (
        [tx(r("x"), a("x", 1)), tx(r("x"), a("x", 2)), tx(r("x", 2), at=(200, 201))],
        ["G2"],
    ),
    "read skew": (
        [tx(a("x", 1), a("y", 1)), tx(r("x"), r("y", 1)), tx(r("x", 1))],
        ["G-single"],
    ),
    "write skew": (
        [
            tx(r("x"), r("y"), a("x", 1)),
            tx(r("x"), r("y"), a("y", 1)),
            tx(r("x", 1), r("y", 1)),
        ],
        ["G2"],
    ),
    "long fork": (
        [tx(a("x", 1)), tx(a("y", 1)), tx(r("x", 1), r("y")), tx(r("x"), r("y", 1))],
        ["G2"],
    ),
    "stale read": (
        [tx(a("x", 1), at=(0, 1)), tx(r("x"), at=(2, 3)), tx(r("x", 1), at=(4, 5))],
        ["G-single-realtime"],
    ),
    "lost element": ([tx(a("x", 1), at=(0, 1)), tx(r("x"), at=(2, 3))], ["G-single-realtime"]),
    "unknown outcome, never seen": (
        [tx(a("x", 1), outcome=Outcome.UNKNOWN), tx(r("x"), at=(200, 201))],
        [],
    ),
    "unknown outcome, seen": (
        [tx(a("x", 1), outcome=Outcome.UNKNOWN), tx(r("x", 1), at=(200, 201))],
        [],
    ),
    "unrepeatable read": ([tx(a("x", 1)), tx(r("x"), r("x", 1))], ["unrepeatable read"]),
    "own write lost": ([tx(a("x", 1), r("x"))], ["own write lost"]),
    "garbage": ([tx(r("x", 7))], ["garbage read"]),
    "twice": ([tx(a("x", 1)), tx(r("x", 1, 1))], ["duplicate element"]),
    "forked order": (
        [tx(a("x", 1)), tx(a("x", 2)), tx(r("x", 1, 2)), tx(r("x", 2))],
        ["incompatible order"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    history, expected = CASES[name]
    found = [anomaly.name for anomaly in anomalies(history)]
    assert set(expected) <= set(found)
    assert bool(found) == bool(expected)


def test_without_real_time_a_stale_read_is_serializable() -> None:
    history, _ = CASES["stale read"]
    assert anomalies(history, real_time=False) == []


def serial(random: Random, *, snapshot: bool = False) -> list[Transaction]:
    """A run of a store: one transaction at a time, or (``snapshot``) some that read one state and
    write a later one without a check."""
    lists: dict[str, tuple[int, ...]] = {}
    history: list[Transaction] = []
    for number in range(random.randint(2, 40)):
        old = dict(lists)
        operations: list[Append | Read] = []
        batch = 2 if snapshot and random.random() < 0.4 else 1
        for other in range(batch):
            operations = []
            now = dict(old)
            for step in range(random.randint(1, 4)):
                key = random.choice("xyz")
                if random.random() < 0.5:
                    value = 100 * number + 10 * other + step
                    operations.append(Append(key, value))
                    now[key] = (*now.get(key, ()), value)
                    lists[key] = (*lists.get(key, ()), value)
                else:
                    operations.append(Read(key, now.get(key, ())))
            history.append(tx(*operations, at=(2 * number, 2 * number + 1)))
    history.append(tx(*(Read(key, lists.get(key, ())) for key in "xyz"), at=(1000, 1001)))
    return history


def reverse(
    reader: Transaction, second: tuple[Append | Read, ...] = (a("y", 2),)
) -> list[Transaction]:
    """Two writes of different clients, one after the other, and a reader."""
    first, later = tx(a("x", 1), at=(1, 2)), tx(*second, at=(3, 4))
    return [first, later, reader, tx(r("x", 1), r("y", 2), at=(20, 21))]


LATER_ONLY = (r("x"), r("y", 2))
BESIDE = (0.5, 10)


def test_a_reader_beside_two_single_writes_may_see_the_later_one_alone() -> None:
    history = reverse(tx(*LATER_ONLY, at=BESIDE))
    assert [each.name for each in anomalies(history)] == ["G-single-realtime"]
    assert anomalies(history, clocks_differ=True) == []


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(reverse(tx(*LATER_ONLY, at=(2.5, 10))), id="it began after the first"),
        pytest.param(reverse(tx(*LATER_ONLY, a("z", 3), at=BESIDE)), id="it writes"),
        pytest.param(
            reverse(tx(*LATER_ONLY, at=BESIDE), (r("z"), a("y", 2))),
            id="the second one has asked for clocks",
        ),
        pytest.param(
            reverse(tx(*LATER_ONLY, at=BESIDE), (r("x", 1), a("y", 2))),
            id="the second one has read the first",
        ),
        pytest.param(
            [*reverse(tx(*LATER_ONLY, at=BESIDE)), tx(r("x"), at=(22, 23))],
            id="beside it, another one reads too old a state",
        ),
        pytest.param(
            [*reverse(tx(*LATER_ONLY, at=BESIDE)), tx(r("x", 1), r("y"), at=BESIDE)],
            id="another reader sees the other order",
        ),
    ],
)
def test_no_other_reader_is_excused(history: list[Transaction]) -> None:
    assert anomalies(history, clocks_differ=True)


@pytest.mark.parametrize("seed", range(40))
def test_serial_histories_have_none(seed: int) -> None:
    assert anomalies(serial(Random(seed))) == []


def test_histories_without_validation_have_some() -> None:
    found = [bool(anomalies(serial(Random(seed), snapshot=True))) for seed in range(40)]
    assert sum(found) > 10


LEVELS = ("serializable", "repeatable read", "read committed")

WEAKER: dict[str, tuple[list[Transaction], int]] = {
    # how many of LEVELS, from the strongest on, do not allow it
    "write skew": (
        [tx(r("x"), r("y"), a("x", 1)), tx(r("x"), r("y"), a("y", 2)), tx(r("x", 1), r("y", 2))],
        1,
    ),
    "lost update": ([tx(r("x"), a("x", 1)), tx(r("x"), a("x", 2)), tx(r("x", 1, 2))], 2),
    "long fork": (
        [tx(a("x", 1)), tx(a("y", 2)), tx(r("x", 1), r("y")), tx(r("x"), r("y", 2))],
        2,
    ),
    "read skew": ([tx(a("x", 1), a("y", 1)), tx(r("x"), r("y", 1)), tx(r("x", 1))], 2),
    "a snapshot of too long ago": (
        [tx(a("x", 1), at=(0, 1)), tx(r("x"), at=(2, 3)), tx(r("x", 1), at=(4, 5))],
        2,
    ),
    "unrepeatable read": ([tx(r("x"), r("x", 1)), tx(a("x", 1))], 2),
    "dirty write": (
        [tx(a("x", 1), a("y", 1)), tx(a("x", 2), a("y", 2)), tx(r("x", 1, 2)), tx(r("y", 2, 1))],
        3,
    ),
    "aborted read": ([tx(a("x", 1), outcome=Outcome.ABORTED), tx(r("x", 1))], 3),
    "circular information flow": ([tx(a("x", 1), r("y", 1)), tx(a("y", 1), r("x", 1))], 3),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", WEAKER)
def test_each_level_is_judged_by_its_own_promises(name: str, level: str) -> None:
    history, refused = WEAKER[name]
    assert bool(judged(history, level)) == (LEVELS.index(level) < refused), judged(history, level)
