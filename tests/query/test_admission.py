"""Which queries begin and which wait: storms of queries over members with little memory, by seeds.

Whatever comes: nobody waits for ever, nobody is let in while a member that it needs is short, later
ones never overtake, and when everything is over nothing is left.
"""

from __future__ import annotations

import heapq
from random import Random

import pytest
from seeds import seeds

from remuda.errors import OutOfMemory, QueryTimeout, TooManyQueries
from remuda.query import admission
from remuda.query.admission import (
    ADMIT_BELOW,
    CHARGE_TIME,
    Admission,
    Admit,
    Asked,
    Ended,
    LookAt,
    MemberGone,
    Refuse,
    Reported,
)
from remuda.query.ids import QueryId, new_query_id

LIMIT = 1000


def query(number: int) -> QueryId:
    return new_query_id(1, number, number)


def asked(number: int, members=(1, 2), *, demand=10, wait_end=60.0, deadline=None) -> Asked:
    return Asked(query(number), members, demand, wait_end, deadline)


def admitted(effects) -> list[QueryId]:
    return [effect.query for effect in effects if isinstance(effect, Admit)]


def refused(effects) -> dict[QueryId, Exception]:
    return {effect.query: effect.error for effect in effects if isinstance(effect, Refuse)}


def test_there_is_memory():
    machine = Admission()
    assert machine.step(0.0, Reported(1, 700, LIMIT)) == []
    assert machine.step(0.0, asked(1)) == [Admit(query(1))]
    assert machine.waiting == 0


def test_one_member_is_short():
    machine = Admission()
    machine.step(0.0, Reported(2, 900, LIMIT))
    assert admitted(machine.step(0.0, asked(1))) == []
    assert machine.waits(query(1))
    assert admitted(machine.step(1.0, Reported(2, 100, LIMIT))) == [query(1)]


def test_who_came_first_goes_first_and_holds_later_ones_back():
    machine = Admission()
    machine.step(0.0, Reported(2, 900, LIMIT))
    machine.step(0.0, asked(1))
    assert admitted(machine.step(0.0, asked(2, (1,)))) == []
    assert admitted(machine.step(1.0, Reported(2, 0, LIMIT))) == [query(1), query(2)]


def test_what_was_let_in_is_charged_until_it_shows():
    machine = Admission()
    machine.step(0.0, Reported(1, 700, LIMIT))
    assert admitted(machine.step(0.0, asked(1, (1,), demand=10_000))) == [query(1)]
    assert admitted(machine.step(0.0, asked(2, (1,)))) == [], "700 + 125 (an eighth) are charged"
    assert admitted(machine.step(0.1, Ended(query(1)))) == [query(2)]
    machine.step(0.2, asked(3, (1,), demand=10_000))
    assert admitted(machine.step(0.2, asked(4, (1,)))) == []
    assert admitted(machine.step(0.3 + CHARGE_TIME, admission.Looked())) == [query(4)]


def test_the_queue_is_bounded():
    machine = Admission(queued_max=2)
    machine.step(0.0, Reported(1, LIMIT, LIMIT))
    machine.step(0.0, asked(1))
    machine.step(0.0, asked(2))
    error = refused(machine.step(0.0, asked(3)))[query(3)]
    assert isinstance(error, TooManyQueries)
    assert error.sqlstate == "53400"
    assert machine.waiting == 2


def test_waiting_ends():
    machine = Admission()
    machine.step(0.0, Reported(1, LIMIT, LIMIT))
    machine.step(0.0, asked(1, wait_end=5.0))
    (look,) = machine.step(0.0, asked(2, wait_end=9.0, deadline=2.0))
    assert isinstance(look, LookAt)
    late = refused(machine.step(2.0, Reported(1, LIMIT, LIMIT)))
    assert [type(late[q]) for q in late] == [QueryTimeout]
    late = refused(machine.step(5.0, Reported(1, 990, LIMIT)))
    error = late[query(1)]
    assert isinstance(error, OutOfMemory)
    assert error.sqlstate == "53200"
    assert "member 1 holds 990 of 1000 bytes" in error.detail
    assert machine.waiting == 0


def test_the_error_names_what_is_only_expected():
    machine = Admission()
    machine.step(0.0, Reported(1, 700, LIMIT))
    machine.step(0.0, asked(1, (1,), demand=10_000))
    machine.step(0.0, asked(2, (1,), wait_end=1.0))
    error = refused(machine.step(1.0, Reported(1, 700, LIMIT)))[query(2)]
    assert error.detail == (
        "member 1 holds 700 of 1000 bytes, queries that have just begun expect 125 more."
    )


def test_a_lost_member_keeps_nobody_waiting():
    machine = Admission()
    machine.step(0.0, Reported(2, LIMIT, LIMIT))
    machine.step(0.0, asked(1))
    assert admitted(machine.step(1.0, MemberGone(2))) == [query(1)]


def test_a_member_without_limit_is_never_short():
    machine = Admission()
    machine.step(0.0, Reported(1, 10**12, 0))
    assert admitted(machine.step(0.0, asked(1))) == [query(1)]


class Storm:
    """Some members whose queries hold memory for a while; reports come late."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.machine = Admission(queued_max=30)
        self.now = 0.0
        self.events: list[tuple[float, int, object]] = []
        self.counter = 0
        self.held = dict.fromkeys((1, 2, 3), 0)
        self.said = dict.fromkeys((1, 2, 3), 0)
        self.lost: set[int] = set()
        self.asked: dict[QueryId, Asked] = {}
        self.order: list[QueryId] = []
        self.running: dict[QueryId, tuple[tuple[int, ...], int]] = {}
        self.ends: dict[QueryId, str] = {}
        self.look = 0.0

    def at(self, delay: float, event: object) -> None:
        self.counter += 1
        heapq.heappush(self.events, (self.now + delay, self.counter, event))

    def step(self, event: admission.Event) -> None:
        for effect in self.machine.step(self.now, event):
            match effect:
                case Admit(query):
                    self.begin(query)
                case Refuse(query, error):
                    assert query not in self.ends
                    self.ends[query] = type(error).__name__
                    if query in self.order:
                        self.order.remove(query)
                case LookAt(time):
                    assert time >= self.now
                    self.at(time - self.now, admission.Looked())

    def begin(self, query: QueryId) -> None:
        asked = self.asked[query]
        assert query not in self.ends, "ended already"
        assert query == self.order.pop(0), "overtook another one"
        for member in asked.members:
            if member not in self.lost:
                assert self.said[member] <= ADMIT_BELOW * LIMIT, "let in where memory is short"
        size = self.chance.randrange(400)
        self.ends[query] = "admitted"
        self.running[query] = asked.members, size
        for member in asked.members:
            self.held[member] += size
        self.at(self.chance.uniform(0, 5), Ended(query))

    def happen(self, event: object) -> None:
        match event:
            case Asked(query):
                self.asked[query] = event
                self.order.append(query)
                self.step(event)
                if query in self.ends and query in self.order:
                    self.order.remove(query)
            case Ended(query):
                members, size = self.running.pop(query, ((), 0))
                for member in members:
                    self.held[member] -= size
                if query in self.order:
                    self.order.remove(query)
                    self.ends[query] = "cancelled"
                self.step(Ended(query))
            case Reported(member):
                if member not in self.lost:
                    self.said[member] = self.held[member]
                    self.step(Reported(member, self.held[member], LIMIT))
                    if self.now < 100:
                        self.at(1.0, event)
            case MemberGone(member):
                self.lost.add(member)
                self.step(event)
            case admission.Looked():
                self.step(event)

    def run(self) -> None:
        chance = self.chance
        for member in self.held:
            self.at(chance.random(), Reported(member, 0, LIMIT))
        for number in range(80):
            members = tuple(sorted(chance.sample((1, 2, 3), chance.randint(1, 3))))
            begins = chance.uniform(0, 20)
            wait_end = begins + chance.choice((1.0, 10.0, 60.0))
            deadline = begins + chance.uniform(0.5, 30) if chance.random() < 0.3 else None
            event = asked(number, members, wait_end=wait_end, deadline=deadline)
            self.at(begins, event)
            if chance.random() < 0.2:
                self.at(begins + chance.uniform(0, 3), Ended(query(number)))
        if chance.random() < 0.3:
            self.at(chance.uniform(0, 20), MemberGone(3))
        while self.events:
            self.now, _, event = heapq.heappop(self.events)
            self.happen(event)


@pytest.mark.parametrize("seed", seeds(15, 60))
def test_storms(seed):
    storm = Storm(seed)
    storm.run()
    assert len(storm.ends) == 80, "everybody began, was refused or gave up"
    assert storm.machine.waiting == 0
    assert not storm.running
    assert storm.now < 200
