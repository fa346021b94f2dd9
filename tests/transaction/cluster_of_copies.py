"""A cluster that commits transactions while its members are lost, in one thread from one seed.

Real: ``Near`` and ``Parts`` of every member. Simulated: the network (delay, reordering, loss,
repetition), the views (a lost or wrongly suspected member is dropped, the others learn of it at
different times), and stores that keep lists and validate what was read. What clients saw is judged
by ``histories``; in the end all copies must be equal and nothing may be left of any transaction.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from random import Random

from histories import Anomaly, Append, Outcome, Read, Transaction, anomalies

from remuda.cluster.replicas import Replicas, balanced, without
from remuda.errors import JobAborted, OutOfMemory, RemudaError, SerializationFailure
from remuda.transaction import states as tx
from remuda.transaction.last_part import common_backup, last_part
from remuda.transaction.near import Near
from remuda.transaction.parts import Address, Parts
from remuda.transaction.states import State, TransactionId

RESEND = 1.0
TICK = 0.4
TROUBLE = 30.0
QUIET = TROUBLE + 12.0
"""No message, view or cut of before is under way any more."""
PARTITIONS = 4
KEYS = 2
"""Per partition; key k lies in partition k // KEYS."""

List = tuple[int, ...]


class Violation(AssertionError):
    pass


@dataclass(frozen=True)
class ViewOfCopies:
    """Layout: who keeps what in view ``number``."""

    number: int
    members: frozenset[int]
    table: Replicas
    away: frozenset[int] = frozenset()
    """Partitions without a copy, of which one may come back."""

    def primary(self, partition: int) -> int | None:
        return next(iter(self.table[partition]), None)

    def unreachable(self, partition: int) -> bool:
        return partition in self.away

    def backups(self, partition: int) -> tuple[int, ...]:
        return self.table[partition][1:]

    def alive(self, member: int) -> bool:
        return member in self.members


@dataclass(frozen=True)
class Work:
    """``reads``: key -> version that was read; ``writes``: key -> the whole new list."""

    reads: dict[int, int]
    writes: dict[int, List]


@dataclass(frozen=True)
class ReadAsk:
    client: Client
    keys: tuple[int, ...]


@dataclass(frozen=True)
class ReadAnswer:
    client: Client
    found: dict[int, tuple[int, List]] | None


@dataclass(frozen=True)
class ForgetBelow:
    below: int


@dataclass(eq=False)
class Client:
    """One transaction: reads some keys, appends to some of them, commits."""

    number: int
    near: int
    keys: tuple[int, ...]
    appends: frozenset[int]
    began: float
    found: dict[int, tuple[int, List]] = field(default_factory=dict)
    outcome: Outcome = Outcome.UNKNOWN
    ended: float = float("inf")
    committing: bool = False
    transaction: TransactionId | None = None

    def operations(self, readable: set[int]) -> tuple[Append | Read, ...]:
        out: list[Append | Read] = []
        for key in self.keys:
            if key in readable:
                if key in self.found:
                    out.append(Read(key, self.found[key][1]))
                if key in self.appends:
                    out.append(Append(key, self.number))
        return tuple(out)


class Member:
    def __init__(self, world: Cluster, number: int, view: ViewOfCopies) -> None:
        self.world, self.number, self.view = world, number, view
        self.clock = world.random.randint(0, 500)
        self.parts = world.make_parts(number, view)
        self.nears: dict[TransactionId, Near] = {}
        self.clients: dict[TransactionId, Client] = {}
        self.lists: dict[int, tuple[int, List]] = {}
        self.pending: dict[Address, Work] = {}
        self.crashed = False

    @property
    def serving(self) -> bool:
        return not self.crashed and self.view.alive(self.number)

    def next_time(self) -> int:
        self.clock += 1
        return self.clock

    # --- effects ---

    def perform(self, effects: list[tx.Effect]) -> None:
        for effect in effects:
            self.world.note(f"{self.number} v{self.view.number} {effect}")
            match effect:
                case tx.Send(to, message):
                    self.world.send(self, to, message)
                case tx.PrepareHere(transaction, partition, work):
                    self.prepare_here((transaction, partition), work)
                case tx.KeepHere(transaction, partition, timestamp, work):
                    self.clock = max(self.clock, timestamp)
                    self.pending[transaction, partition] = work  # type: ignore[assignment]
                case tx.ResolveHere(transaction, partition, timestamp):
                    self.resolve_here((transaction, partition), timestamp)
                case tx.Report():
                    self.reported(effect)

    def prepare_here(self, address: Address, work: object) -> None:
        assert isinstance(work, Work)
        refusal = self.conflict(address, work)
        if refusal is not None:
            self.perform(self.parts.refused_here(address, refusal))
        else:
            self.perform(self.parts.prepared_here(address, self.registered(address, work)))

    def conflict(self, address: Address, work: Work) -> RemudaError | None:
        for key, version in work.reads.items():
            if self.lists.get(key, (0, ()))[0] != version:
                return SerializationFailure(f"key {key} has changed")
        others = [other for place, other in self.pending.items() if place != address]
        for other in others:
            if other.writes.keys() & work.reads.keys() or work.writes.keys() & other.reads.keys():
                return SerializationFailure("another transaction is about to change a key")
        return None

    def resolve_here(self, address: Address, timestamp: int | None) -> None:
        work = self.pending.pop(address, None)
        if timestamp is None:
            return
        self.world.committed(address[0], timestamp)
        self.clock = max(self.clock, timestamp)
        if work is None:
            raise Violation(f"{address} commits on {self.number} without its writes")
        for key, values in work.writes.items():
            # A backup may hear of a later commit first: the versions decide, not the arrival.
            if self.lists.get(key, (0, ()))[0] < timestamp:
                self.lists[key] = (timestamp, values)

    def reported(self, report: tx.Report) -> None:
        client = self.clients.pop(report.transaction)
        client.ended = self.world.now
        client.outcome = {
            State.COMMITTED: Outcome.COMMITTED,
            State.ROLLED_BACK: Outcome.ABORTED,
            State.UNKNOWN: Outcome.UNKNOWN,
        }[report.state]

    # --- events ---

    def receive(self, sender: int, message: object) -> None:
        match message:
            case tx.Vote():
                near = self.nears.get(message.transaction)
                self.perform(near.on_vote(self.world.now, message) if near else [])
            case tx.Finished():
                near = self.nears.get(message.transaction)
                self.perform(near.on_finished(message) if near else [])
                self.perform(self.parts.on_message(sender, message))
            case ForgetBelow(below):
                self.parts.forget(sender, below)
            case ReadAsk(client, keys):
                busy = {k for w in self.pending.values() for k in w.writes}
                found = {key: self.lists.get(key, (0, ())) for key in keys}
                answer = ReadAnswer(client, None if busy & set(keys) else found)
                self.world.send(self, sender, answer)
            case ReadAnswer(client, found):
                self.read(client, found)
            case tx.BackupPrepare() if self.world.has_no_room(self, message):
                refusal = OutOfMemory("no room")
                self.perform(self.parts.refuse_to_keep(sender, message, refusal))
            case tx.PrepareLast():
                self.prepare_last(sender, message)
            case tx.Told(transaction) if transaction.near == self.number:
                near = self.nears.get(transaction)
                self.perform(near.on_told(self.world.now, message) if near else [])
            case tx.KeepAll():
                self.keep_all(sender, message)
            case tx.KeptAll(transaction, timestamp):
                near = self.nears.get(transaction)
                now = self.world.now
                self.perform(near.on_kept_all(now, sender, timestamp) if near else [])
            case tx.Prepare(partitions=partitions, one_phase=True) if len(partitions) > 1:
                # Frames carry the clock of their sender, which is above the other parts.
                self.clock = max(self.clock, self.world.members[sender].clock)
                self.perform(self.parts.on_message(sender, message))
            case _:
                self.perform(self.parts.on_message(sender, message))  # type: ignore[arg-type]

    def prepare_last(self, sender: int, message: tx.PrepareLast) -> None:
        for keep in message.companions:
            if self.world.has_no_room(self, keep):
                refusal = OutOfMemory("no room")
                self.perform(self.parts.refuse_to_keep(sender, keep, refusal))
                return
            self.perform(self.parts.keep_companion(keep))
        transaction, partitions, partition, work, companions = message
        kept = tuple(keep.partition for keep in companions)
        last = tx.Prepare(transaction, partitions, {partition: work}, True, kept)
        self.perform(self.parts.on_message(sender, last))

    def keep_all(self, sender: int, message: tx.KeepAll) -> None:
        transaction, timestamp, works = message
        if not self.parts.has_kept_all(message):
            partitions = tuple(sorted(works))
            for partition, work in works.items():
                keep = tx.BackupPrepare(transaction, partition, timestamp, (), work, False)
                if self.world.has_no_room(self, keep):
                    return
            if not self.parts.keep_all(message):
                return
            for partition, work in works.items():
                self.perform(
                    [
                        tx.KeepHere(transaction, partition, timestamp, work),
                        tx.ResolveHere(transaction, partition, timestamp, partitions),
                    ]
                )
        self.perform([tx.Send(sender, tx.KeptAll(transaction, timestamp))])

    def begin_with_last(self, near: Near, work: dict[int, Work], last: int | None) -> bool:
        """As ``TransactionShell`` does. ``last``: None for the common backup of all parts."""
        own = {p: part for p, part in work.items() if p != last}
        if any(self.conflict((near.transaction, p), part) for p, part in own.items()):
            return False
        kept, partitions, timestamp = [], near.partitions, 0
        for partition, part in own.items():
            address = (near.transaction, partition)
            timestamp = timestamp or self.registered(address, part)
            self.registered_at(address, part, timestamp)
            kept.append(self.parts.prepare_companion(address, partitions, part, timestamp))
        near.begin_with_last(self.world.now)
        message: tx.Message
        if last is None:
            keeper = common_backup(self.number, work, self.view)
            message = tx.KeepAll(near.transaction, timestamp, work)
        else:
            keeper = self.view.primary(last)
            message = tx.PrepareLast(near.transaction, partitions, last, work[last], tuple(kept))
        assert keeper is not None
        self.perform([tx.Send(keeper, message)])
        return True

    def registered(self, address: Address, work: Work) -> int:
        timestamp = self.next_time()
        self.registered_at(address, work, timestamp)
        return timestamp

    def registered_at(self, address: Address, work: Work, timestamp: int) -> None:
        """Prepared at ``timestamp``."""
        self.pending[address] = work

    def read(self, client: Client, found: dict[int, tuple[int, List]] | None) -> None:
        if client.committing or client.outcome is not Outcome.UNKNOWN:
            return
        if found is None:
            client.outcome, client.ended = Outcome.ABORTED, self.world.now
            return
        client.found.update(found)
        if len(client.found) < len(client.keys):
            return
        client.committing = True
        work: dict[int, Work] = {}
        for key in client.keys:
            part = work.setdefault(key // KEYS, Work({}, {}))
            version, values = client.found[key]
            part.reads[key] = version
            if key in client.appends:
                part.writes[key] = (*values, client.number)
        transaction = TransactionId(self.next_time(), self.number)
        near = self.world.make_near(self, transaction, work)
        self.nears[transaction] = near
        self.clients[transaction] = client
        client.transaction = transaction
        last = self.world.last_part(self, work)
        common = self.world.common_backup(self, work)
        asks = last is not None or common is not None
        if not asks or not self.begin_with_last(near, work, last):
            self.perform(near.prepare(self.world.now))
        self.world.may_lose_soon(self.number)

    def install(self, view: ViewOfCopies) -> None:
        self.view = view
        for near in list(self.nears.values()):
            self.perform(near.on_layout(self.world.now, view))
        self.perform(self.parts.on_layout(view))

    def tick(self) -> None:
        now, random = self.world.now, self.world.random
        for near in list(self.nears.values()):
            if near.state is State.PREPARING and random.random() < 0.05:
                self.perform(near.rollback(now, JobAborted("the user gave up")))
                self.world.may_lose_soon(self.number)
            self.perform(near.on_tick(now))
        self.perform(self.parts.on_tick(now))
        self.nears = {t: near for t, near in self.nears.items() if not near.done}
        below = min((t.began for t in self.nears), default=self.clock + 1)
        self.clock = max(self.clock, below)
        for member in self.view.members:
            self.world.send(self, member, ForgetBelow(below))


class Cluster:
    longest = 2 * TROUBLE
    """Seconds after which the run ends, quiet or not."""
    decided_by_last = False
    """Whether a last part decides where it may; otherwise every vote is waited for."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.log: list[str] = []
        self.queue: list[tuple[float, int, object]] = []
        self.count = 0
        numbers = list(range(1, self.random.randint(1, 5) + 1))
        copies = self.random.randint(1, 3)
        table = balanced(((),) * PARTITIONS, numbers, copies)
        self.views = [ViewOfCopies(1, frozenset(numbers), table)]
        self.members = {number: self.make_member(number) for number in numbers}
        self.clients: list[Client] = []
        self.full = Random(f"{seed}/room").choice((0.0, 0.0, 0.1, 0.5))
        """How often a backup has no room for a part."""
        self.commit_times: dict[TransactionId, int] = {}

    # what mutations replace
    def make_member(self, number: int) -> Member:
        return Member(self, number, self.views[0])

    def has_no_room(self, member: Member, message: tx.BackupPrepare) -> bool:
        """Whether a backup refuses a part, which it may only if it does not know the part."""
        known = (message.transaction, message.partition) in member.parts
        return not known and self.random.random() < self.full

    def make_parts(self, number: int, view: ViewOfCopies) -> Parts:
        return Parts(number, view, resend=RESEND)

    def make_near(self, member: Member, transaction: TransactionId, work: dict[int, Work]) -> Near:
        one_phase = self.random.random() < 0.7
        last = self.last_part(member, work)
        view = member.view
        return Near(
            member.number, transaction, work, view, one_phase=one_phase, resend=RESEND, last=last
        )

    def last_part(self, member: Member, work: dict[int, Work]) -> int | None:
        return last_part(member.number, work, member.view) if self.decided_by_last else None

    def committed(self, transaction: TransactionId, timestamp: int) -> None:
        known = self.commit_times.setdefault(transaction, timestamp)
        if known != timestamp:
            raise Violation(f"{transaction} commits at {known} and at {timestamp}")

    def common_backup(self, member: Member, work: dict[int, Work]) -> int | None:
        return common_backup(member.number, work, member.view) if self.decided_by_last else None

    def note(self, line: str) -> None:
        self.log.append(f"{self.now:.2f} {line}")

    def at(self, delay: float, what: object) -> None:
        self.count += 1
        heapq.heappush(self.queue, (self.now + delay, self.count, what))

    def send(self, sender: Member, to: int, message: object) -> None:
        trouble = self.now < TROUBLE
        if trouble and to != sender.number and self.random.random() < 0.05:
            return
        for _ in range(2 if trouble and self.random.random() < 0.05 else 1):
            slow = trouble and self.random.random() < 0.1
            delay = self.random.uniform(0.1, 4.0) if slow else self.random.uniform(0.001, 0.1)
            self.at(delay, (sender.number, sender.view.number, to, message))

    # --- faults and clients ---

    def may_lose_soon(self, number: int) -> None:
        """While its transactions are under way is the best time to lose a member."""
        if self.now < TROUBLE and self.random.random() < 0.1:
            self.at(self.random.uniform(0.0, 0.4), ("lose", number))

    def lose(self, number: int, crash: bool) -> None:
        """A member crashes, or is only thought to have; either way the next view is without it."""
        last = self.views[-1]
        if len(last.members) == 1 or number not in last.members or len(self.views) > 3:
            return
        if crash:
            self.members[number].crashed = True
            self.note(f"{number} crashes")
        table = without(last.table, {number})
        view = ViewOfCopies(last.number + 1, last.members - {number}, table)
        self.views.append(view)
        for member in last.members:
            self.at(self.random.uniform(0.0, 3.0), (member, view))

    def begin(self) -> None:
        nears = [m.number for m in self.members.values() if m.serving]
        if not nears:
            return
        keys = self.random.sample(range(PARTITIONS * KEYS), self.random.choice([1, 1, 2, 3]))
        near = self.random.choice(nears)
        if self.decided_by_last:
            near, keys = self.spread_over_two(nears)
        appends = frozenset(key for key in keys if self.random.random() < 0.7)
        client = Client(len(self.clients) + 1, near, tuple(keys), appends, self.now)
        self.clients.append(client)
        member = self.members[near]
        for key in keys:
            primary = member.view.primary(key // KEYS)
            if primary is not None:
                self.send(member, primary, ReadAsk(client, (key,)))

    def spread_over_two(self, nears: list[int]) -> tuple[int, list[int]]:
        """A near member and keys with a last part that decides, if there are such."""
        for _ in range(20):
            near = self.random.choice(nears)
            keys = self.random.sample(range(PARTITIONS * KEYS), self.random.choice([2, 2, 3]))
            parts = {key // KEYS for key in keys}
            layout = self.members[near].view
            if last_part(near, parts, layout) is not None or common_backup(near, parts, layout):
                break
        return near, keys

    def run(self) -> None:
        numbers = sorted(self.members)
        for number in numbers:
            self.at(self.random.uniform(0, TICK), number)
        for _ in range(self.random.randint(20, 80)):
            self.at(self.random.uniform(0, TROUBLE), "begin")
        for _ in range(self.random.randint(0, 3)):
            self.at(self.random.uniform(0, TROUBLE), ("lose", self.random.choice(numbers)))
        while self.queue:
            when, _, what = heapq.heappop(self.queue)
            self.now = when
            if when > self.longest or (when > QUIET and self.quiet):
                break
            self.happen(what)
        self.check()

    @property
    def quiet(self) -> bool:
        """Only ticks are to come."""
        return not any(
            m.nears or m.pending or m.parts.pending or len(m.parts)
            for m in self.members.values()
            if m.serving
        )

    def happen(self, what: object) -> None:
        match what:
            case "begin":
                self.begin()
            case ("lose", int() as number):
                self.lose(number, crash=self.random.random() < 0.5)
            case int():
                if self.members[what].serving:
                    self.members[what].tick()
                    self.at(TICK, what)
            case (int() as number, ViewOfCopies() as view):
                member = self.members[number]
                if not member.crashed and view.number == member.view.number + 1:
                    member.install(view)
                elif not member.crashed and view.number > member.view.number:
                    self.at(0.1, what)
            case (int() as sender, int() as number, int() as to, message):
                member = self.members[to]
                if member.serving and member.view.number == number:
                    member.receive(sender, message)

    # --- what must hold ---

    def check(self) -> None:
        view = self.views[-1]
        for number in view.members:
            member = self.members[number]
            if member.parts.pending or member.pending:
                raise Violation(f"left on {number}: {member.parts}")
            if len(member.parts) or member.nears:
                raise Violation(f"not forgotten on {number}: {member.parts} {member.nears}")
        readable: dict[int, List] = {}
        for key in range(PARTITIONS * KEYS):
            copies = view.table[key // KEYS]
            found = {self.members[number].lists.get(key, (0, ())) for number in copies}
            if len(found) > 1:
                raise Violation(f"copies of key {key} differ: {found}")
            if copies:
                readable[key] = found.pop()[1]
        if len(readable) < PARTITIONS * KEYS:
            return  # more members were lost than there are backups: nothing is promised any more
        problems = self.judge(readable)
        if problems:
            raise Violation("; ".join(str(problem) for problem in problems))

    def judge(self, readable: dict[int, List]) -> list[Anomaly]:
        keys = set(readable)
        history = [
            Transaction(client.operations(keys), client.outcome, client.began, client.ended)
            for client in self.clients
            if client.committing
        ]
        # The values are the numbers of clients, the transactions are numbered by their place.
        last = Transaction(
            tuple(Read(key, readable[key]) for key in sorted(keys)), began=1e6, ended=1e6
        )
        return anomalies([*history, last])


def run(seed: int, cluster: type[Cluster] = Cluster) -> Cluster:
    found = cluster(seed)
    try:
        found.run()
    except AssertionError as problem:
        tail = "\n".join(found.log[-60:])
        raise Violation(f"seed {seed}: {problem}\n{tail}") from problem
    return found
