"""Blocks of numbers on one member, and the state that they are taken from."""

from __future__ import annotations

from remuda.datatypes.schema import SequenceOptions
from remuda.datatypes.sequences import (
    NumberBlock,
    SequenceState,
    following,
    initial,
    is_later,
    taken,
)
from remuda.errors import SequenceExhausted
from remuda.transaction.number_blocks import (
    Ask,
    Failed,
    Give,
    Granted,
    NumberBlocks,
    Refuse,
    StatementNumbers,
    Take,
    Void,
    Withdraw,
)


def options(**given: int | bool) -> SequenceOptions:
    found = {"start": 1, "increment": 1, "minimum": 1, "maximum": 9, "cache": 1, "cycle": False}
    return SequenceOptions("bigint", **{**found, **given}, slot=1, link=1)  # type: ignore[arg-type]


def take(request: int, wanted: int, cache: int = 1, *, leased: bool = True) -> Take:
    return Take(7, request, wanted, cache, leased)


def block(first: int, count: int, generation: int = 1) -> NumberBlock:
    return NumberBlock(first, count, 1, generation)


def test_a_state_gives_blocks_until_its_range_ends() -> None:
    state, first = taken(options(), initial(options()), 4) or (None, None)
    assert (first.first, first.last) == (1, 4)
    assert state == SequenceState(4, is_called=True, generation=1)
    _, rest = taken(options(), state, 100)
    assert (rest.first, rest.last) == (5, 9)
    assert taken(options(), SequenceState(9, is_called=True, generation=1), 1) is None


def test_a_cycle_begins_again_at_its_other_end() -> None:
    down = options(increment=-4, start=9, cycle=True)
    state, first = taken(down, initial(down), 5)
    assert (first.first, first.count, first.last) == (9, 3, 1)
    _, again = taken(down, state, 5)
    assert again.first == 9


def test_generations_ascend_whatever_their_tags() -> None:
    first, other = following(1, 2**31 - 1), following(1, 5)
    assert first > other > 1
    assert not is_later(first, other)
    assert not is_later(other, first)
    second = following(first, 0)
    assert second > first
    assert is_later(second, other)


def test_those_who_wait_share_one_question() -> None:
    blocks = NumberBlocks()
    assert blocks.step(take(1, 2)) == [Ask(7, 2)]
    assert blocks.step(take(2, 3)) == []
    assert blocks.step(take(3, 1)) == []
    assert blocks.step(Granted(7, block(1, 2))) == [Give(1, (block(1, 2),)), Ask(7, 4)]
    given = blocks.step(Granted(7, block(3, 4)))
    assert given == [Give(2, (block(3, 3),)), Give(3, (block(6, 1),))]


def test_a_member_keeps_numbers_with_a_cache_and_a_lease_only() -> None:
    kept = NumberBlocks()
    kept.step(take(1, 1, cache=10))
    assert kept.step(Granted(7, block(1, 10))) == [Give(1, (block(1, 1),))]
    assert kept.step(take(2, 1, cache=10)) == [Give(2, (block(2, 1),))]
    assert kept.step(take(3, 1, cache=10, leased=False)) == [Ask(7, 10)]
    none = NumberBlocks()
    none.step(take(1, 5))
    none.step(Withdraw(7, 1))
    assert none.step(Granted(7, block(1, 5))) == []
    assert none.kept(7) == 0


def test_older_generations_are_void() -> None:
    blocks = NumberBlocks()
    blocks.step(take(1, 1, cache=10))
    blocks.step(Granted(7, block(1, 10)))
    assert blocks.kept(7) == 9
    blocks.step(Void(7, 2))
    assert blocks.kept(7) == 0
    blocks.step(take(2, 15, cache=10))
    late = blocks.step(Granted(7, block(11, 15)))
    assert late == [Ask(7, 15)]  # granted before, arrived after
    assert blocks.step(Granted(7, block(100, 15, 2))) == [Give(2, (block(100, 15, 2),))]


def test_a_block_that_became_void_under_a_waiting_request_is_taken_anew() -> None:
    blocks = NumberBlocks()
    blocks.step(take(1, 4))
    assert blocks.step(Granted(7, block(1, 2))) == [Ask(7, 2)]
    blocks.step(Void(7, 2))
    assert blocks.step(Granted(7, block(50, 2, 2))) == [Ask(7, 2)]
    given = blocks.step(Granted(7, block(52, 2, 2)))
    assert given == [Give(1, (block(50, 2, 2), block(52, 2, 2)))]


def test_all_who_wait_hear_of_a_failure() -> None:
    blocks = NumberBlocks()
    blocks.step(take(1, 1))
    blocks.step(take(2, 1))
    error = SequenceExhausted("no more")
    assert blocks.step(Failed(7, error)) == [Refuse(1, error), Refuse(2, error)]
    assert blocks.step(take(3, 1)) == [Ask(7, 1)]


def test_another_attempt_of_a_statement_takes_its_numbers_again() -> None:
    numbers = StatementNumbers()
    assert numbers.left(7, 3) == []
    numbers.take(7, [NumberBlock(1, 2, 1, 1), NumberBlock(10, 2, 1, 1)])
    assert numbers.left(7, 3) == []
    for _ in range(2):
        numbers.again()
        assert numbers.left(8, 3) == []
        assert numbers.left(7, 3) == [NumberBlock(1, 2, 1, 1), NumberBlock(10, 1, 1, 1)]
        assert numbers.left(7, 3) == [NumberBlock(11, 1, 1, 1)]
        assert numbers.left(7, 3) == []
