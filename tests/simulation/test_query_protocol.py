"""Whole clusters of query registries and streams over a hostile network, replayed from one seed.

Each query runs on some members in three fragments: 2 (on every participant) sends to 1 (on every
participant) sends to 0 (the root, on the initiator), 1 and 2 in one or several instances. Messages
are delayed, reordered, repeated and lost; fragments fail; users cancel; LIMITs are satisfied early;
members crash. Whatever happens, each query ends exactly once for its user, and in the end no live
member holds a query, a retained batch or a fragment. Without loss this must hold without any
statement timeout.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest

from remuda.errors import InternalError, MemberUnavailable, QueryCanceled
from remuda.query import effects as do
from remuda.query import events as on
from remuda.query.ids import Endpoint, QueryId, new_query_id
from remuda.query.registry import QueryRegistry
from remuda.query.stream import FlowChange, ReceiverStream, SenderStream

WINDOW = 1000
QUIET = 200.0
"""Seconds without new queries after which everything must be over."""


@dataclass(frozen=True)
class Plan:
    """What QUERY_START carries here."""

    participants: tuple[int, ...]
    batches: int
    ordered: bool
    limit: int | None
    view: int
    instances: dict[int, int]

    def endpoints(self, fragment: int, member: int) -> tuple[Endpoint, ...]:
        return tuple(Endpoint(member, i) for i in range(self.instances.get(fragment, 1)))

    def everywhere(self, fragment: int) -> tuple[Endpoint, ...]:
        return tuple(e for m in self.participants for e in self.endpoints(fragment, m))

    def fragments(self, member: int, initiator: int) -> tuple[int, ...]:
        workers = (1, 2) if member in self.participants else ()
        return (0, *workers) if member == initiator else workers


Address = tuple[int, Endpoint, Endpoint]
"""Edge (= sending fragment), sender, receiver."""


class Fragments:
    """The fragments of one query on one member: inboxes and outboxes, no rows."""

    def __init__(self, member: Member, query: QueryId, plan: Plan) -> None:
        self.member, self.query, self.plan = member, query, plan
        self.running = {
            (fragment, end.instance)
            for fragment in plan.fragments(member.number, query.member)
            for end in plan.endpoints(fragment, member.number)
        }
        self.senders: dict[Address, SenderStream] = {}
        self.left: dict[Address, int] = {}
        self.receivers: dict[Address, ReceiverStream[int]] = {}
        self.inbox: list[tuple[Address, int]] = []
        self.consumed = Counter[tuple[int, int]]()
        """Batches by fragment and instance that took them."""
        now = member.world.now
        for fragment, instance in sorted(self.running):
            me = Endpoint(member.number, instance)
            targets = {2: plan.everywhere(1), 1: (Endpoint(query.member),), 0: ()}[fragment]
            for target in targets:
                address = (fragment, me, target)
                self.senders[address] = SenderStream(WINDOW)
                self.left[address] = plan.batches
            for source in plan.everywhere(fragment + 1) if fragment < 2 else ():
                stream = ReceiverStream[int](WINDOW, plan.ordered, now)
                self.receivers[fragment + 1, source, me] = stream

    def send(self, address: Address) -> None:
        """As much as there is credit for."""
        stream = self.senders[address]
        world = self.member.world
        while not stream.ended and not stream.failed:
            rest = 0 if stream.receiver_finished else self.left[address]
            size = world.random.choice((50, 300, 500, 2000)) if rest else 0
            if not stream.may_send(size):
                return
            self.left[address] = rest - 1
            batch = (address, stream.send(size, last=rest == 0), size, rest == 0)
            event = on.BatchReceived(self.query, self.member.number, size, batch)
            self.member.send(address[2].member, event)

    def advance(self) -> None:
        """One turn of every instance: consume something, send, finish."""
        if self.inbox:
            address, size = self.inbox.pop(self.member.world.random.randrange(len(self.inbox)))
            self.receivers[address].consumed(size)
            self.consumed[address[0] - 1, address[2].instance] += 1
            if self.satisfied:
                self.finish_early()
        for address, stream in self.receivers.items():
            self.grant(address, stream.grant(self.member.world.now))
        for fragment, instance in sorted(self.running, reverse=True):
            if self.ready(fragment, instance):
                mine = [a for a in self.senders if (a[0], a[1].instance) == (fragment, instance)]
                for address in mine:
                    self.send(address)
                if all(self.senders[address].ended for address in mine):
                    self.running.discard((fragment, instance))
                    self.check_complete(fragment, instance)
                    self.member.step(on.FragmentFinished(self.query, fragment, None, instance))

    @property
    def satisfied(self) -> bool:
        return self.plan.limit is not None and self.consumed[0, 0] >= self.plan.limit

    def ready(self, fragment: int, instance: int) -> bool:
        """Whether everything it reads has ended and was consumed."""
        if fragment == 0 and self.satisfied:
            return True
        reads = (fragment + 1, instance)
        return all(
            s.ended for a, s in self.receivers.items() if (a[0], a[2].instance) == reads
        ) and not any((a[0], a[2].instance) == reads for a, _ in self.inbox)

    def check_complete(self, fragment: int, instance: int) -> None:
        """An instance without LIMIT has consumed every batch, once, when it ends."""
        if fragment == 2 or (self.plan.limit is not None and fragment == 0):
            return
        expected = len(self.plan.everywhere(fragment + 1)) * (self.plan.batches + 1)
        assert self.consumed[fragment, instance] == expected, (self.consumed, expected)

    def finish_early(self) -> None:
        for address, stream in self.receivers.items():
            if address[0] == 1:
                self.grant(address, stream.finish(self.member.world.now))

    def grant(self, address: Address, grant) -> None:
        if grant is not None:
            event = on.FlowControlReceived(self.query, self.member.number, (address, grant))
            self.member.send(address[1].member, event)

    def on_batch(self, address: Address, ordinal: int, size: int, last: bool) -> None:
        now = self.member.world.now
        sizes = self.receivers[address].receive(ordinal, size, last, size, now)
        self.inbox += [(address, got) for got in sizes]

    def on_flow(self, address: Address, grant) -> None:
        change = self.senders[address].on_flow_control(
            grant.granted_bytes, grant.ok, grant.receiver_finished
        )
        if change is not FlowChange.NOTHING and self.ready(address[0], address[1].instance):
            self.send(address)


class Member:
    """A registry and the shell that performs its effects."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.alive = True
        self.registry = QueryRegistry(number, early_size_max=world.early_size_max)
        self.fragments: dict[QueryId, Fragments] = {}
        self.cancelled: set[QueryId] = set()

    def send(self, to: int, event: on.Event) -> None:
        self.world.transmit(self.number, to, event)

    def step(self, event: on.Event) -> None:
        if self.alive:
            if isinstance(event, on.CancelReceived):
                self.cancelled.add(event.query)
            for effect in self.registry.step(self.world.now, event):
                self.perform(effect)

    def perform(self, effect: do.Effect) -> None:
        world = self.world
        match effect:
            case do.StartFragments(query, plan):
                assert query not in self.fragments
                assert query not in self.cancelled, "a cancelled query is never started"
                self.fragments[query] = Fragments(self, query, plan)
                self.schedule(query)
            case do.DeliverBatch(query, (address, ordinal, size, last)):
                if query in self.fragments:
                    self.fragments[query].on_batch(address, ordinal, size, last)
            case do.DeliverFlowControl(query, (address, grant)):
                if query in self.fragments:
                    self.fragments[query].on_flow(address, grant)
            case do.CancelFragments(query) | do.Forget(query):
                self.fragments.pop(query, None)
            case do.SendStart(to, query, plan):
                fragments = plan.fragments(to, query.member)
                self.send(
                    to,
                    on.StartReceived(
                        query,
                        self.number,
                        plan.view,
                        plan.participants,
                        fragments,
                        plan,
                        plan.instances,
                    ),
                )
            case do.SendCancel(to, query, initiator, error):
                world.cancels[query] += 1
                self.send(to, on.CancelReceived(query, self.number, initiator, error))
            case do.SendCheck(to, queries):
                self.send(to, on.CheckReceived(self.number, queries))
            case do.SendCheckResponse(to, queries):
                self.send(to, on.CheckResponseReceived(self.number, queries))
            case do.SendFragmentDone(to, query, fragment, profile, instance):
                done = on.FragmentDoneReceived(query, self.number, fragment, profile, instance)
                self.send(to, done)
            case do.CompleteQuery(query):
                world.end(query, "complete")
            case do.FailQuery(query, _, error):
                world.end(query, str(error))
            case do.WakeAt(time, query):
                world.at(time, lambda: self.step(on.Expired(query)))

    def schedule(self, query: QueryId) -> None:
        """Advance the query's fragments now and again until they are gone."""
        world = self.world

        def turn() -> None:
            if not self.alive or (fragments := self.fragments.get(query)) is None:
                return
            if world.random.random() < world.failure:
                self.step(on.QueryFailed(query, InternalError("a fragment failed")))
                return
            fragments.advance()
            world.at(world.now + world.random.uniform(0.01, 0.1), turn)

        world.at(world.now + world.random.uniform(0.001, 0.05), turn)

    def tick(self) -> None:
        if not self.alive:
            return
        self.step(on.Tick())
        for query, fragments in list(self.fragments.items()):
            if any(stream.lost(self.world.now) for stream in fragments.receivers.values()):
                self.step(on.QueryFailed(query, InternalError("a batch was lost")))
        self.world.at(self.world.now + 1.0, self.tick)


class World:
    """Time, network and chance, all from one seed."""

    def __init__(self, seed: int, *, loss: float, crashes: int, calm: bool = False) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.loss, self.crashes = loss, crashes
        self.repeat = self.random.choice((0.0, 0.05))
        self.failure = 0.0 if calm else self.random.choice((0.0, 0.0, 0.002))
        self.early_size_max = 1_000_000 if calm else self.random.choice((500, 1_000_000))
        self.queue: list[tuple[float, int, object]] = []
        self.counter = 0
        self.ends: dict[QueryId, list[str]] = {}
        self.plans: dict[QueryId, Plan] = {}
        self.cancels: Counter[QueryId] = Counter()
        self.members = {n: Member(self, n) for n in range(1, self.random.randint(2, 5) + 1)}
        for member in self.members.values():
            member.step(on.ViewInstalled(1, tuple(self.members)))
            self.at(self.random.random(), member.tick)

    def at(self, time: float, action) -> None:
        self.counter += 1
        heapq.heappush(self.queue, (time, self.counter, action))

    def transmit(self, sender: int, to: int, event: on.Event) -> None:
        for _ in range(1 + (self.random.random() < self.repeat)):
            if sender != to and self.random.random() < self.loss:
                continue
            slow = self.random.random() < 0.05
            delay = self.random.uniform(0.0005, 2.0 if slow else 0.02)
            self.at(self.now + delay, lambda: self.members[to].step(event))

    def begin(self) -> None:
        initiator = self.random.choice([m for m in self.members.values() if m.alive])
        numbers = sorted(initiator.registry.members)
        participants = tuple(self.random.sample(numbers, self.random.randint(1, len(numbers))))
        plan = Plan(
            participants,
            batches=self.random.randint(0, 6),
            ordered=self.random.random() < 0.5,
            limit=self.random.choice((None, None, 1)),
            view=1,
            instances=self.random.choice(({}, {1: 2}, {1: 2, 2: 3})),
        )
        micros = int(self.now * 1e6)
        query = new_query_id(initiator.number, micros, self.random.getrandbits(48))
        self.plans[query] = plan
        self.ends[query] = []
        patience = self.random.choice((5.0, 20.0, 60.0)) if self.loss else None
        fragments = plan.fragments(initiator.number, initiator.number)
        profiled = self.random.random() < 0.3
        each = sum(plan.instances.get(fragment, 1) for fragment in (1, 2))
        initiator.step(
            on.Begin(
                query,
                participants,
                fragments,
                0,
                plan,
                patience,
                profiled=profiled,
                owed=dict.fromkeys(participants, each),
                instances=plan.instances,
            )
        )
        if self.random.random() < 0.2:
            cancel = on.QueryFailed(query, QueryCanceled("canceled by the user"))
            self.at(self.now + self.random.uniform(0, 0.3), lambda: initiator.step(cancel))

    def crash(self) -> None:
        living = [m for m in self.members.values() if m.alive]
        if len(living) < 2:
            return
        victim = self.random.choice(living)
        victim.alive = False
        error = MemberUnavailable(f"member {victim.number} left", member=str(victim.number))
        for member in living:
            noticed = self.now + self.random.uniform(0.001, 3.0)
            left = on.MemberLeft(victim.number, error)
            self.at(noticed, lambda m=member, e=left: m.step(e))

    def end(self, query: QueryId, how: str) -> None:
        self.ends[query].append(how)

    def run(self) -> None:
        busy = 3.0
        for _ in range(self.random.randint(1, 12)):
            self.at(self.random.uniform(0, busy), self.begin)
        for _ in range(self.crashes):
            self.at(self.random.uniform(0, busy), self.crash)
        while self.queue and self.queue[0][0] < busy + QUIET:
            self.now, _, action = heapq.heappop(self.queue)
            action()


@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize(("loss", "crashes"), [(0.0, 0), (0.0, 1), (0.05, 0), (0.05, 2)], ids=str)
def test_every_query_ends_and_leaves_nothing(block, loss, crashes):
    for seed in range(block * 6, block * 6 + 6):
        world = World(seed, loss=loss, crashes=crashes)
        world.run()
        check(world, f"seed {seed}, loss {loss}, crashes {crashes}")


def check(world: World, context: str) -> None:
    for member in world.members.values():
        if member.alive:
            assert len(member.registry) == 0, f"{context}: {member.number}: {member.registry}"
            assert member.registry.early_size == 0, context
            assert not member.fragments, context
    for query, ends in world.ends.items():
        if world.members[query.member].alive:
            assert len(ends) == 1, f"{context}: {query} ended {ends}"
        if world.loss == world.crashes == world.repeat == 0:
            bound = 2 * len(world.plans[query].participants)
            assert world.cancels[query] <= bound, f"{context}: {query}"


def test_without_trouble_every_query_completes():
    for seed in range(20):
        world = World(seed, loss=0.0, crashes=0, calm=True)
        world.run()
        ends = {end for ends in world.ends.values() for end in ends}
        assert ends <= {"complete", "canceled by the user"}, f"seed {seed}: {ends}"


def test_the_same_seed_replays_the_same_run():
    worlds = [World(5, loss=0.05, crashes=1) for _ in range(2)]
    for world in worlds:
        world.run()
    assert worlds[0].ends == worlds[1].ends
    assert worlds[0].counter == worlds[1].counter
