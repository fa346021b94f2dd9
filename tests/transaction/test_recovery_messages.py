"""What it costs to recover a transaction of many parts whose near member is lost."""

from __future__ import annotations

from collections import Counter, deque

from cluster_of_copies import ViewOfCopies

from remuda.transaction import states as tx
from remuda.transaction.parts import Parts
from remuda.transaction.states import TransactionId

PARTS = 60
LOST = 9
T = TransactionId(100, LOST)
MEMBERS = (0, 1, 2)
TABLE = tuple((p % 3, (p + 1) % 3) for p in range(PARTS))
AT = 107


class Survivors:
    """Three members that keep all parts, each on two of them; ``sent`` counts their messages."""

    def __init__(self) -> None:
        view = ViewOfCopies(1, frozenset({*MEMBERS, LOST}), TABLE)
        self.parts = {me: Parts(me, view, resend=1.0) for me in MEMBERS}
        self.ends: dict[tuple[int, int], int | None] = {}
        self.sent: Counter[str] = Counter()
        self.waiting: deque[tuple[int, tx.Send]] = deque()

    def perform(self, me: int, effects: list[tx.Effect]) -> None:
        for effect in effects:
            match effect:
                case tx.Send(to) if to != LOST:
                    self.waiting.append((me, effect))
                case tx.PrepareHere(transaction, partition):
                    address = (transaction, partition)
                    self.perform(me, self.parts[me].prepared_here(address, AT))
                case tx.ResolveHere(_, partition, timestamp):
                    self.ends[me, partition] = timestamp

    def deliver(self) -> None:
        while self.waiting:
            sender, sent = self.waiting.popleft()
            self.sent[type(sent.message).__name__] += 1
            self.perform(sent.to, self.parts[sent.to].on_message(sender, sent.message))

    def prepare(self, partitions: range) -> None:
        """All of ``T`` that is in ``partitions``; the others have not heard of it."""
        everything = tuple(range(PARTS))
        for me, parts in self.parts.items():
            work = {p: "w" for p in partitions if TABLE[p][0] == me}
            self.perform(me, parts.on_message(LOST, tx.Prepare(T, everything, work)))
        self.deliver()

    def lose(self) -> None:
        self.sent.clear()
        view = ViewOfCopies(2, frozenset(MEMBERS), TABLE)
        for me, parts in self.parts.items():
            self.perform(me, parts.on_layout(view))
        self.deliver()
        for _ in range(3):
            for me, parts in self.parts.items():
                self.perform(me, parts.on_layout(view))
            self.deliver()


def test_one_part_of_each_member_speaks_for_its_neighbours() -> None:
    world = Survivors()
    world.prepare(range(PARTS))
    world.lose()
    copies = {(me, p) for p, row in enumerate(TABLE) for me in row}
    assert world.ends == dict.fromkeys(copies, AT)
    assert not any(len(parts) for parts in world.parts.values())
    assert sum(world.sent.values()) < 40 * PARTS, world.sent


def test_what_one_member_has_not_prepared_is_rolled_back_by_all() -> None:
    world = Survivors()
    world.prepare(range(PARTS - 1))
    world.lose()
    assert world.ends == {(me, p): None for p in range(PARTS - 1) for me in TABLE[p]}
    assert not any(len(parts) for parts in world.parts.values())


def test_the_next_one_speaks_when_the_first_is_gone() -> None:
    """The first part of a member was handed over before anybody asked."""
    world = Survivors()
    world.prepare(range(PARTS))
    view = ViewOfCopies(2, frozenset(MEMBERS), ((1, 0), *TABLE[1:]))
    world.perform(0, world.parts[0].on_layout(view))
    asked = [
        sent.message
        for _, sent in world.waiting
        if isinstance(sent.message, tx.Inquire)
        and sent.message.asking != sent.message.partition  # not a backup's question
    ]
    assert {message.asking for message in asked} == {3}
    assert {message.partition for message in asked} == set(range(PARTS)) - {3}
