"""The lock table against a plain model, and deadlocks over several members."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remuda.transaction import deadlock
from remuda.transaction.deadlock import Probe, Search, ToMember, ToNear, Victim
from remuda.transaction.locks import Granted, LockTable, Mode

S, X = Mode.SHARED, Mode.EXCLUSIVE


def table() -> LockTable[str, int]:
    return LockTable()


def test_shared_locks_share_and_exclusive_ones_wait() -> None:
    locks = table()
    assert locks.acquire("a", 1, S) == []
    assert locks.acquire("b", 1, S) == []
    assert locks.acquire("c", 1, X) == ["a", "b"]
    assert locks.blockers("c") == {"a", "b"}
    assert locks.release("a") == []
    assert locks.release("b") == [Granted("c", 1, X)]
    assert locks.holds("c", 1) is X
    assert locks.waiters == frozenset()
    assert locks.release("c") == []
    assert len(locks) == 0


def test_nobody_overtakes_who_came_before() -> None:
    locks = table()
    locks.acquire("a", 1, S)
    locks.acquire("b", 1, X)
    assert locks.acquire("c", 1, S) == ["b"], "or b might wait for ever"
    assert locks.release("a") == [Granted("b", 1, X)]
    assert locks.release("b") == [Granted("c", 1, S)]


def test_without_waiting_nothing_changes() -> None:
    locks = table()
    locks.acquire("a", 1, X)
    assert locks.acquire("b", 1, S, wait=False) == ["a"]
    assert locks.blockers("b") == frozenset()
    assert locks.release("b") == []
    assert locks.release("a") == []
    assert len(locks) == 0


def test_who_has_an_exclusive_lock_has_the_shared_one_too() -> None:
    locks = table()
    locks.acquire("a", 1, X)
    assert locks.acquire("a", 1, S) == []
    assert locks.holds("a", 1) is X


def test_an_upgrade_goes_before_the_waiters() -> None:
    locks = table()
    locks.acquire("a", 1, S)
    locks.acquire("b", 1, S)
    locks.acquire("c", 1, X)
    assert locks.acquire("a", 1, X) == ["b"]
    assert locks.release("b") == [Granted("a", 1, X)]
    assert locks.release("a") == [Granted("c", 1, X)]


def test_who_gives_up_waiting_lets_the_next_go_on() -> None:
    locks = table()
    locks.acquire("a", 1, S)
    locks.acquire("b", 1, X)
    locks.acquire("c", 1, S)
    assert locks.release("b") == [Granted("c", 1, S)]


REQUESTS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(0, 2), st.sampled_from([S, X, None])),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(REQUESTS)
def test_any_requests(requests: list[tuple[str, int, Mode | None]]) -> None:
    """Never two holders of which one is exclusive; whoever heads a queue has an obstacle; a
    transaction that waits asks for nothing else (as transactions do)."""
    locks = table()
    for transaction, key, mode in requests:
        if mode is None:
            for granted in locks.release(transaction):
                assert locks.holds(granted.transaction, granted.key) is granted.mode
        elif transaction not in locks.waiters:
            waits = bool(locks.acquire(transaction, key, mode))
            assert waits == (transaction in locks.waiters)
        for lock in locks.held.values():
            assert lock.holders or not lock.waiting
            assert X not in lock.holders.values() or len(lock.holders) == 1
            if lock.waiting:
                waiter, wanted = lock.waiting[0]
                assert lock.obstacles(waiter, wanted, 0)
        for waiter in locks.waiters:
            assert waiter not in locks.blockers(waiter)
            assert locks.blockers(waiter)
    for transaction in "abcde":
        locks.release(transaction)
    assert len(locks) == 0
    assert locks.waiters == frozenset()


# --- deadlocks ----------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Tx:
    began: int
    near: int

    def __str__(self) -> str:
        return f"t{self.began}"


class Members:
    """Lock tables of some members, and the messages between them, carried in random order."""

    def __init__(self, random: Random, members: int) -> None:
        self.random = random
        self.locks: dict[int, LockTable[Tx, int]] = {m: LockTable() for m in range(members)}
        self.searches = {member: Search(locks) for member, locks in self.locks.items()}
        self.rounds = 0
        self.waits: dict[Tx, int] = {}
        self.victims: list[Victim[Tx]] = []

    def acquire(self, transaction: Tx, member: int, key: int, mode: Mode) -> None:
        if self.locks[member].acquire(transaction, key, mode):
            self.waits[transaction] = member

    def end(self, transaction: Tx) -> None:
        self.waits.pop(transaction, None)
        for locks in self.locks.values():
            for granted in locks.release(transaction):
                self.waits.pop(granted.transaction, None)

    def detect(self) -> int:
        """Every waiting transaction sends its probes; how many messages that took."""
        wire: deque[ToNear[Tx] | ToMember[Tx] | Victim[Tx]] = deque()
        self.rounds += 1
        for transaction, member in self.waits.items():
            wire.extend(self.searches[member].started(transaction, self.rounds))
        messages = 0
        while wire:
            wire.rotate(self.random.randrange(len(wire)))
            message = wire.popleft()
            messages += 1
            match message:
                case ToNear(probe):
                    at = [self.waits[probe.target]] if probe.target in self.waits else []
                    wire.extend(deadlock.forwarded(probe, at))
                case ToMember(member, probe):
                    wire.extend(self.searches[member].continued(probe))
                case Victim():
                    self.victims.append(message)
        return messages

    def circular(self) -> bool:
        """Whether anyone waits for itself, by the plain definition."""
        edges = {t: self.locks[m].blockers(t) for t, m in self.waits.items()}
        for start, front in edges.items():
            seen: set[Tx] = set()
            ahead = set(front)
            while ahead:
                if start in ahead:
                    return True
                seen |= ahead
                ahead = {n for t in ahead for n in edges.get(t, ())} - seen
        return False


def test_a_circle_over_three_members_has_one_victim() -> None:
    members = Members(Random(1), 3)
    a, b, c = (Tx(began, near=began % 3) for began in (1, 2, 3))
    for place, transaction in enumerate((a, b, c)):
        members.acquire(transaction, place, 0, X)
    members.acquire(a, 1, 0, X)
    members.acquire(b, 2, 0, S)
    members.detect()
    assert members.victims == []
    members.acquire(c, 0, 0, X)
    members.detect()
    assert {victim.transaction for victim in members.victims} == {c}
    assert members.victims[0].cycle == (c, a, b)


def test_two_upgrades_of_one_key_are_a_deadlock() -> None:
    members = Members(Random(1), 1)
    a, b = Tx(1, 0), Tx(2, 0)
    for transaction in (a, b):
        members.acquire(transaction, 0, 7, S)
    for transaction in (a, b):
        members.acquire(transaction, 0, 7, X)
    members.detect()
    assert {victim.transaction for victim in members.victims} == {b}


@pytest.mark.parametrize("seed", range(60))
def test_every_circle_is_found_and_nothing_else(seed: int) -> None:
    random = Random(seed)
    members = Members(random, random.randint(1, 4))
    live = {Tx(began, random.randrange(4)) for began in range(random.randint(2, 8))}
    for _ in range(80):
        free = sorted(live - members.waits.keys())
        if free and random.random() < 0.8:
            mode = random.choice([S, X])
            where = random.randrange(len(members.locks))
            members.acquire(random.choice(free), where, random.randrange(3), mode)
        elif free:
            members.end(random.choice(free))
        members.victims.clear()
        members.detect()
        assert bool(members.victims) == members.circular()
        for victim in members.victims:
            edges = zip(victim.cycle, (*victim.cycle[1:], victim.cycle[0]), strict=True)
            for waiter, blocker in edges:
                assert blocker in members.locks[members.waits[waiter]].blockers(waiter)
            assert victim.transaction == max(victim.cycle)
        while members.circular():
            members.victims.clear()
            members.detect()
            members.end(members.victims[0].transaction)


def test_a_probe_of_a_circle_that_is_gone_ends() -> None:
    members = Members(Random(1), 1)
    a, b = Tx(1, 0), Tx(2, 0)
    members.acquire(a, 0, 1, X)
    members.acquire(b, 0, 1, X)
    (to_near,) = members.searches[0].started(b, 1)
    assert to_near == ToNear(Probe(1, (b,), a))
    assert deadlock.forwarded(to_near.probe, []) == []
    assert members.searches[0].continued(to_near.probe) == []


def test_a_search_takes_as_many_messages_as_there_are_edges() -> None:
    """Queues of readers and writers: there are 3 ** 20 paths through them."""
    members = Members(Random(1), 1)
    for key in range(20):
        for reader in range(3):
            members.acquire(Tx(10 * key + reader, 0), 0, key, S)
            if key:
                members.acquire(Tx(10 * key + reader, 0), 0, key - 1, X)
    edges = sum(len(members.locks[0].blockers(waiter)) for waiter in members.waits)
    assert members.detect() <= 3 * edges * len(members.waits)
    assert members.victims == []
