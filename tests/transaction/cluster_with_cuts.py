"""``cluster_of_copies`` with consistent cuts under way, restored from the members' logs.

Every message carries the sender's highest cut; each member logs its commits and cuts. In the end
every cut that was reported as restorable is restored from the logs of the partitions' primaries and
compared with what the clients saw.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cut_model as cut
from cluster_of_copies import (
    KEYS,
    PARTITIONS,
    TROUBLE,
    Cluster,
    List,
    Member,
    ViewOfCopies,
    Violation,
    Work,
)
from cut_model import Committed, CutCoordinator, LocalCut
from histories import Outcome

from remuda.transaction import states as tx
from remuda.transaction.parts import Address
from remuda.transaction.states import TransactionId

DEADLINE = 8.0
LAST_CUT = TROUBLE + 9.0
"""When every member is there, and no cut under way: this one must succeed."""


@dataclass(frozen=True)
class Signed:
    """What every message between members carries, and the message."""

    version: int
    timestamp: int
    clock: int
    message: object


@dataclass(frozen=True)
class AskClock:
    attempt: int


@dataclass(frozen=True)
class TellClock:
    attempt: int
    clock: int


@dataclass(frozen=True)
class Marker:
    pass


@dataclass(eq=False)
class Attempt:
    """One attempt of the coordinator, and when it was asked for and answered."""

    number: int
    asked: float
    machine: CutCoordinator
    answered: float | None = None


@dataclass
class Restorable:
    version: int
    timestamp: int
    asked: float
    answered: float
    view: ViewOfCopies


class MemberWithCuts(Member):
    def __init__(self, world: ClusterWithCuts, number: int, view: ViewOfCopies) -> None:
        super().__init__(world, number, view)
        self.cuts = world
        self.cut_version = 0
        self.cut_timestamp = 0
        self.log: list[Committed[Address] | cut.LogStart | cut.LogFinish[Address]] = []
        self.local: LocalCut[Address] | None = None
        self.prepared: dict[Address, int] = {}
        self.told_clocks = [(0, 0)]
        """Each clock that was told for a cut, and how long the log was then."""

    def sign(self, message: object) -> Signed:
        return Signed(self.cut_version, self.cut_timestamp, self.clock, message)

    def receive(self, sender: int, message: object) -> None:
        assert isinstance(message, Signed)
        self.clock = max(self.clock, message.clock)
        if message.version > self.cut_version:
            self.take_cut(message.version, message.timestamp)
        inner = message.message
        match inner:
            case AskClock(attempt):
                self.told_clocks.append((self.next_time(), len(self.log)))
                self.world.send(self, sender, TellClock(attempt, self.clock))
            case TellClock(attempt, clock):
                self.cuts.coordinate(self, attempt, lambda m: m.on_clock(sender, clock))
            case cut.TellDone():
                self.cuts.told_done(sender, inner)
            case Marker():
                if self.local is not None and self.local.ended:  # the answer was lost
                    self.tell(self.local.version)
            case _:
                super().receive(sender, inner)

    # --- the local cut ---

    def take_cut(self, version: int, timestamp: int) -> None:
        if self.local is not None:
            self.local.abort("another cut has begun")
        self.cut_version, self.cut_timestamp = version, timestamp
        self.advance_clock(timestamp)
        start = max(place for clock, place in self.told_clocks if clock <= timestamp)
        recent = {
            record.part: record.timestamp
            for record in self.log[start:]
            if isinstance(record, Committed)
        }
        self.local = self.cuts.make_local(version, timestamp, self.collected(), recent)
        self.told = ""
        self.cut_effects(self.local.begin())

    def advance_clock(self, timestamp: int) -> None:
        self.clock = max(self.clock, timestamp)

    def collected(self) -> dict[Address, int]:
        return dict(self.prepared)

    def cut_effects(self, effects: list[object]) -> None:
        for effect in effects:
            self.world.note(f"{self.number} {effect}")
            match effect:
                case cut.LogStart() | cut.LogFinish():
                    self.log.append(effect)
                case cut.TellDone(version, failure):
                    self.told = failure
                    self.tell(version)

    def tell(self, version: int) -> None:
        for member in self.view.members:
            self.world.send(self, member, cut.TellDone(version, self.told))

    def registered_at(self, address: Address, work: Work, timestamp: int) -> None:
        super().registered_at(address, work, timestamp)
        self.prepared[address] = timestamp

    def perform(self, effects: list[tx.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, tx.KeepHere):
                self.prepared[effect.transaction, effect.partition] = effect.timestamp
        super().perform(effects)

    def resolve_here(self, address: Address, timestamp: int | None) -> None:
        work = self.pending.get(address)
        super().resolve_here(address, timestamp)
        self.prepared.pop(address, None)
        if timestamp is not None:
            self.log.append(Committed(address, timestamp, work))
        if self.local is not None:
            recovered = not self.view.alive(address[0].near)
            self.cut_effects(self.local.on_end(address, timestamp, recovered=recovered))

    def install(self, view: ViewOfCopies) -> None:
        if self.local is not None:
            self.cut_effects(self.local.abort("another view"))
        self.cuts.abort_cuts(self.number)
        super().install(view)


def check_log(member: MemberWithCuts) -> None:
    """Versions grow; a finish follows its start; what it leaves out is before the start, what it
    takes in is between the two, and nothing is both."""
    places: dict[Address, int] = {}
    start: cut.LogStart | None = None
    started = 0
    for place, record in enumerate(member.log):
        match record:
            case Committed(part):
                places.setdefault(part, place)
            case cut.LogStart(version):
                if start is not None and version <= start.version:
                    raise Violation(f"{member.number}: cut {version} starts behind {start}")
                start, started = record, place
            case cut.LogFinish(version, before, after):
                if start is None or start.version != version:
                    raise Violation(f"{member.number}: {record} without its start")
                misplaced = {part for part in after if places[part] > started}
                misplaced |= {part for part in before if places[part] < started}
                if misplaced or before & after:
                    raise Violation(f"{member.number}: {record} is wrong about {misplaced}")


@dataclass
class _Cuts:
    attempts: dict[int, Attempt] = field(default_factory=dict)
    versions: int = 0
    restorable: list[Restorable] = field(default_factory=list)


class ClusterWithCuts(Cluster):
    def __init__(self, seed: int) -> None:
        self.cuts = _Cuts()
        super().__init__(seed)
        self.coordinator: dict[int, int] = {}

    # what mutations replace
    def make_member(self, number: int) -> Member:
        return MemberWithCuts(self, number, self.views[0])

    def make_local(
        self, version: int, timestamp: int, prepared: dict[Address, int], recent: dict[Address, int]
    ) -> LocalCut[Address]:
        return LocalCut(version, timestamp, prepared, recent)

    def send(self, sender: Member, to: int, message: object) -> None:
        assert isinstance(sender, MemberWithCuts)
        super().send(sender, to, sender.sign(message))

    # --- cuts ---

    def run(self) -> None:
        for _ in range(self.random.randint(1, 8)):
            self.at(self.random.uniform(0, TROUBLE), "cut")
        self.at(LAST_CUT, "cut")
        super().run()

    def happen(self, what: object) -> None:
        match what:
            case "cut":
                self.ask_for_cut()
            case ("resend", Attempt() as attempt):
                self.resend(attempt)
            case _:
                super().happen(what)

    def ask_for_cut(self) -> None:
        members = [m for m in self.members.values() if m.serving]
        if not members or any(a.answered is None for a in self.cuts.attempts.values()):
            return  # one at a time
        member = self.random.choice(members)
        number = len(self.cuts.attempts) + 1
        attempt = Attempt(number, self.now, CutCoordinator(member.view.members))
        self.cuts.attempts[number] = attempt
        self.coordinator[number] = member.number
        self.carry_out(attempt, attempt.machine.begin())
        self.at(1.0, ("resend", attempt))

    def resend(self, attempt: Attempt) -> None:
        if attempt.answered is not None:
            return
        member = self.members[self.coordinator[attempt.number]]
        late = self.now > attempt.asked + DEADLINE
        if late or not member.serving or member.view.members != attempt.machine.members:
            self.carry_out(attempt, attempt.machine.abort("too late"))
        else:
            self.carry_out(attempt, attempt.machine.resend())
            self.at(1.0, ("resend", attempt))

    def abort_cuts(self, coordinator: int) -> None:
        for number, attempt in self.cuts.attempts.items():
            if self.coordinator[number] == coordinator and attempt.answered is None:
                self.carry_out(attempt, attempt.machine.abort("another view"))

    def coordinate(self, member: Member, number: int, step: object) -> None:
        attempt = self.cuts.attempts[number]
        if attempt.answered is None and self.coordinator[number] == member.number:
            self.carry_out(attempt, step(attempt.machine))  # type: ignore[operator]

    def told_done(self, sender: int, told: cut.TellDone) -> None:
        for number, attempt in self.cuts.attempts.items():
            if attempt.machine.version == told.version and attempt.answered is None:
                member = self.members[self.coordinator[number]]
                self.coordinate(member, number, lambda m: m.on_done(sender, told))

    def carry_out(self, attempt: Attempt, effects: list[object]) -> None:
        member = self.members[self.coordinator[attempt.number]]
        for effect in effects:
            self.note(f"cut attempt {attempt.number}: {effect}")
            match effect:
                case cut.AskClock(to):
                    self.send(member, to, AskClock(attempt.number))
                case cut.AgreeOnVersion():
                    self.cuts.versions += 1
                    self.carry_out(attempt, attempt.machine.on_version(self.cuts.versions))
                case cut.SendMarker(to, version, timestamp):
                    assert isinstance(member, MemberWithCuts)
                    if member.cut_version < version:
                        member.take_cut(version, timestamp)
                    self.send(member, to, Marker())
                case cut.ReportCut(version, timestamp, failure):
                    attempt.answered = self.now
                    if not failure and self.stored_by_all(member, attempt):
                        self.cuts.restorable.append(
                            Restorable(version, timestamp, attempt.asked, self.now, member.view)
                        )

    def stored_by_all(self, coordinator: Member, attempt: Attempt) -> bool:
        """As if every member were asked to store the cut when all are done (``CUT_STORE`` of
        ``remuda.member.snapshots.cuts``): none answers a coordinator that its view has dropped."""
        members = [self.members[number] for number in attempt.machine.members]
        return all(member.view is coordinator.view for member in members)

    # --- what must hold ---

    def check(self) -> None:
        super().check()
        if not all(self.views[-1].table):
            return  # more members were lost than there are backups
        self.check_attempts()
        for member in self.members.values():
            assert isinstance(member, MemberWithCuts)
            check_log(member)
        earlier: set[TransactionId] = set()
        for found in self.cuts.restorable:
            earlier = self.check_cut(found, earlier)

    def check_cut(self, found: Restorable, earlier: set[TransactionId]) -> set[TransactionId]:
        inside: dict[TransactionId, set[int]] = {}
        lists: dict[int, tuple[int, List]] = {}
        for partition in range(PARTITIONS):
            primary = found.view.primary(partition)
            if primary is None:
                continue
            member = self.members[primary]
            assert isinstance(member, MemberWithCuts)
            commits = cut.commits_of_cut(member.log, found.version)
            if commits is None:
                raise Violation(f"cut {found.version} was not finished on {primary}")
            for commit in commits:
                transaction, part = commit.part
                if part != partition:
                    continue
                inside.setdefault(transaction, set()).add(part)
                assert isinstance(commit.writes, Work)
                for key, values in commit.writes.writes.items():
                    if lists.get(key, (0, ()))[0] < commit.timestamp:
                        lists[key] = (commit.timestamp, values)
        self.check_all_or_nothing(found, inside)
        if not earlier <= set(inside):
            raise Violation(f"cut {found.version} has lost {earlier - set(inside)}")
        self.check_times(found, lists)
        self.check_causes(found, lists)
        self.check_replay(found, lists)
        return set(inside)

    def check_attempts(self) -> None:
        """Each ends within its time, whatever else is open; one that nothing disturbs succeeds."""
        for attempt in self.cuts.attempts.values():
            if attempt.answered is None or attempt.answered > attempt.asked + DEADLINE + 2:
                raise Violation(f"cut attempt {attempt.number} did not end: {attempt}")
        last = max(self.cuts.attempts.values(), key=lambda each: each.asked)
        if last.asked != LAST_CUT or self.cuts.restorable[-1].asked != LAST_CUT:
            raise Violation(f"the last cut did not succeed: {last}")

    def check_causes(self, found: Restorable, lists: dict[int, tuple[int, List]]) -> None:
        """What a transaction in the cut has read is in it, and what was answered before by the
        member that it began on."""
        inside = {number for _, values in lists.values() for number in values}
        for client in (each for each in self.clients if each.number in inside):
            for key, (_, values) in client.found.items():
                if found.view.primary(key // KEYS) is None:
                    continue
                if not set(values) <= set(lists.get(key, (0, ()))[1]):
                    raise Violation(f"cut {found.version} lacks what {client} has read of {key}")
        for other in self.clients:
            if other.number in inside or other.outcome is not Outcome.COMMITTED:
                continue
            if all(found.view.primary(key // KEYS) is None for key in other.appends):
                continue
            for client in self.clients:
                same = client.near == other.near and client.number in inside
                if same and other.ended < client.began:
                    raise Violation(f"cut {found.version} has {client}, and not {other}")

    def check_replay(self, found: Restorable, lists: dict[int, tuple[int, List]]) -> None:
        """The clients' appends up to the cut, one after the other."""
        times = {
            client.number: self.commit_times.get(client.transaction, found.timestamp + 1)
            for client in self.clients
            if client.transaction is not None
        }
        serving = [member for member in self.members.values() if member.serving]
        for key in range(PARTITIONS * KEYS):
            if found.view.primary(key // KEYS) is None:
                continue
            final = max((m.lists.get(key, (0, ())) for m in serving), default=(0, ()))[1]
            expected = tuple(number for number in final if times[number] <= found.timestamp)
            if lists.get(key, (0, ()))[1] != expected:
                raise Violation(
                    f"cut {found.version}: key {key} is {lists.get(key)}, not {expected} of {final}"
                )

    def check_all_or_nothing(
        self, found: Restorable, inside: dict[TransactionId, set[int]]
    ) -> None:
        logged: dict[TransactionId, set[int]] = {}
        for partition in range(PARTITIONS):
            for transaction in self.commits_of(found.view.primary(partition), partition):
                logged.setdefault(transaction, set()).add(partition)
        for transaction, timestamp in self.commit_times.items():
            parts = logged.get(transaction, set())
            have = inside.get(transaction, set())
            expected = parts if timestamp <= found.timestamp else set()
            if have != expected:
                raise Violation(
                    f"cut {found.version} at {found.timestamp}: {transaction} committed at"
                    f" {timestamp} in {parts}, but {have} are in the cut"
                )

    def commits_of(self, number: int | None, partition: int) -> list[TransactionId]:
        if number is None:
            return []
        member = self.members[number]
        assert isinstance(member, MemberWithCuts)
        parts = [record.part for record in member.log if isinstance(record, Committed)]
        return [transaction for transaction, place in parts if place == partition]

    def check_times(self, found: Restorable, lists: dict[int, tuple[int, List]]) -> None:
        """What was answered before the cut was asked for is in it; what began after it was reported
        is not."""
        for client in self.clients:
            if not client.committing or client.outcome is Outcome.ABORTED:
                continue
            for key in client.appends:
                if found.view.primary(key // KEYS) is None:
                    continue
                there = client.number in lists.get(key, (0, ()))[1]
                committed = client.outcome is Outcome.COMMITTED
                if committed and client.ended < found.asked and not there:
                    raise Violation(f"cut {found.version} lacks {client}")
                if client.began > found.answered and there:
                    raise Violation(f"cut {found.version} has {client}")
