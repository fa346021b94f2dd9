"""The host of advisory locks, against what must be true of every state."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remuda.transaction.advisory import (
    AdvisoryLocks,
    Ask,
    Claim,
    Deadlock,
    GiveUp,
    Grant,
    LockKey,
    Owner,
    Rebuild,
    Taken,
)

ONE, TWO, THREE = Owner(1, "a"), Owner(1, "b"), Owner(2, "a")
STEPS = st.lists(
    st.tuples(
        st.sampled_from((ONE, TWO, THREE)), st.integers(0, 2), st.booleans(), st.integers(0, 3)
    ),
    max_size=40,
)


def claim(number: int, owner: Owner, key: int = 1, *, shared: bool = False) -> Claim:
    return Claim(number, owner, LockKey(False, key), shared)


@given(STEPS)
def test_holders_never_exclude_each_other_and_nobody_waits_for_nothing(
    steps: list[tuple[Owner, int, bool, int]],
) -> None:
    """An owner waits for one claim at a time, as a session does."""
    locks, numbers = AdvisoryLocks(), iter(range(1000))
    for owner, key, shared, what in steps:
        waits = next((each for each in locks.waiting if each.owner == owner), None)
        if what == 0 or waits is not None:
            for each in [*locks.held, *locks.waiting]:
                if each.owner == owner:
                    locks.step(GiveUp(each))
        else:
            wanted = claim(next(numbers), owner, key, shared=shared)
            found = locks.step(Ask(wanted, what > 1))
            assert bool(found) == (wanted not in locks.waiting)
        held = list(locks.held)
        assert not any(a.excludes(b) and a.key == b.key for a in held for b in held)
        assert all(locks.obstacles(each) for each in locks.waiting)
        # Somebody waits for nobody who waits: no circle is left.
        blocked = {each.owner: set(locks.obstacles(each)) for each in locks.waiting}
        while blocked:
            free = [each for each, others in blocked.items() if not others & blocked.keys()]
            assert free, "a circle"
            for each in free:
                del blocked[each]


def test_those_who_came_first_are_served_first() -> None:
    locks = AdvisoryLocks()
    first, reader, writer, late = (
        claim(1, ONE),
        claim(2, TWO, shared=True),
        claim(3, THREE),
        claim(4, Owner(3, "c"), shared=True),
    )
    assert locks.step(Ask(first, True)) == [Grant(first)]
    for each in (reader, writer, late):
        assert locks.step(Ask(each, True)) == []
    assert locks.step(Ask(reader, True)) == []  # once more: it keeps its place
    assert locks.step(Ask(claim(5, TWO, 1), False)) == [Taken(claim(5, TWO, 1))]
    assert locks.step(GiveUp(first)) == [Grant(reader)]  # not the late one, behind the writer
    assert locks.step(GiveUp(writer)) == [Grant(late)]
    assert len(locks) == 2


def test_who_closes_a_circle_does_not_wait() -> None:
    locks = AdvisoryLocks()
    for number, owner in enumerate((ONE, TWO, THREE)):
        locks.step(Ask(claim(number, owner, number), True))
    second, third = claim(10, ONE, 1), claim(11, TWO, 2)
    assert locks.step(Ask(second, True)) == locks.step(Ask(third, True)) == []
    closing = claim(12, THREE, 0)
    assert locks.step(Ask(closing, True)) == [Deadlock(closing, (closing, second, third))]
    assert locks.step(GiveUp(claim(2, THREE, 2))) == [Grant(third)]


def test_a_host_that_begins_again_knows_what_it_is_told() -> None:
    locks = AdvisoryLocks()
    locks.step(Ask(claim(1, ONE), True))
    locks.step(Rebuild((claim(2, TWO),)))
    assert list(locks.held) == [claim(2, TWO)]
    assert locks.step(Ask(claim(1, ONE), False)) == [Taken(claim(1, ONE))]
    assert locks.step(GiveUp(claim(1, ONE))) == []  # of a claim that it does not know


def test_keys_as_people_write_them() -> None:
    assert str(LockKey(False, -7)) == "advisory lock [-7]"
    assert str(LockKey(True, (3 << 32) | 4)) == "advisory lock [3, 4]"
    assert str(LockKey(True, (-1 << 32) | 0xFFFFFFFE)) == "advisory lock [-1, -2]"
    assert str(LockKey(False, 16384, True)) == "relation 16384"
