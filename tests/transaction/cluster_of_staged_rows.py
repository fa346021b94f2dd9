"""A simulated staged commit over primaries and backups: a network that delays, loses, repeats and
reorders; members that die; readers who must see all rows or none."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from remuda.errors import UniqueViolation
from remuda.transaction import staged_commit as tx

DUPLICATE = UniqueViolation("a row with this key exists")


@dataclass
class Node:
    """A member of the simulation: clock, one participant, what its primary rows show to readers
    (backups are not read)."""

    number: int
    clock: int
    participant: tx.Participant
    alive: bool = True
    prepared_at: int | None = None
    committed_at: int | None = None
    aborted: bool = False
    refuses: bool = False
    misses: bool = False
    """Rows that it should keep a backup of."""

    def sees(self, at: int) -> bool | None:
        """Whether a reader at ``at`` sees the rows; None = it has to wait."""
        if self.committed_at is not None:
            return self.committed_at <= at
        if self.prepared_at is not None and not self.aborted and self.prepared_at <= at:
            return None
        return False


@dataclass(frozen=True)
class Question:
    """StatusAsked on the wire: an answer repeats the round of its question, as replies do."""

    member: int
    round: int
    lost: tuple[int, ...]


@dataclass
class Simulation:
    """One commit over a network that delays, loses, repeats and reorders; members may die."""

    seed: int
    nodes: dict[int, Node] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    report: tx.Report | None = None
    reads: list[tuple[int, dict[int, bool | None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        size = self.chance.randint(1, 5)
        for number in range(1, size + 1):
            participant = tx.Participant(number, "1-a")
            self.nodes[number] = Node(number, self.chance.randint(0, 50), participant)
        if self.chance.random() < 0.2:
            self.chance.choice(list(self.nodes.values())).refuses = True
        if self.chance.random() < 0.1:
            self.chance.choice(list(self.nodes.values())).misses = True
        everyone = list(self.nodes)
        self.participants = tuple(
            sorted(self.chance.sample(everyone, self.chance.randint(1, size)))
        )
        self.parts: tx.Parts = ()
        if self.chance.random() < 0.7:
            self.parts = tuple(
                (primary, *self.chance.sample(others, min(len(others), self.chance.randint(0, 2))))
                for primary in self.participants
                if (others := [number for number in everyone if number != primary])
            )
        self.primaries = self.participants
        self.coordinator = tx.Coordinator("1-a", self.primaries, self.parts)
        self.participants = self.coordinator.participants
        self.messages: list[tuple[int, int, Any]] = []
        self.rounds = 0
        self.now = 0.0
        self.loss = self.chance.choice([0.0, 0.1, 0.4])
        self.deaths = self.chance.choice([0, 0, 1, 1, 2])
        self.kill_at = [self.chance.randint(0, 40) for _ in range(self.deaths)]
        self.kill_coordinator_in: int | None = None
        """Turns until the coordinator dies, counted from its decision."""
        if self.chance.random() < 0.3:
            self.kill_coordinator_in = self.chance.randint(1, 4)

    def run(self) -> None:
        self.lead(tx.Begin())
        for turn in range(4000):
            self.now += 0.1
            if turn in self.kill_at:
                self.kill(self.chance.choice(list(self.nodes)))
            if (
                self.kill_coordinator_in is not None
                and self.coordinator.phase is tx.CoordinatorPhase.FINISHING
            ):
                self.kill_coordinator_in -= 1
                if self.kill_coordinator_in == 0:
                    self.kill(1)
            if turn == 200:
                self.loss = 0.0
            if self.messages:
                index = self.chance.randrange(len(self.messages))
                sender, to, event = self.messages.pop(index)
                if sender and self.chance.random() < self.loss:
                    self.log.append(f"lost {sender}->{to} {event}")
                    continue
                if self.chance.random() < 0.1:
                    self.messages.append((sender, to, event))
                self.deliver(to, event)
            elif self.finished():
                break
            self.read()
            if turn % 10 == 0:
                self.tick()

    def finished(self) -> bool:
        undecided = [
            node
            for node in self.nodes.values()
            if (node.alive and node.participant.phase is tx.ParticipantPhase.PREPARED)
            or (node.alive and node.participant.phase is tx.ParticipantPhase.DECIDING)
        ]
        leading = self.nodes[1].alive and self.report is None
        return not undecided and not leading

    def kill(self, number: int) -> None:
        victim = self.nodes[number]
        if not victim.alive or sum(node.alive for node in self.nodes.values()) == 1:
            return
        victim.alive = False
        self.log.append(f"killed {victim.number}")
        for node in self.nodes.values():
            if node.alive:
                self.messages.append((0, node.number, tx.MemberLost(victim.number, "killed")))

    def send(self, sender: int, to: int, event: Any) -> None:
        if to == sender:
            self.deliver(to, event)
        else:
            self.messages.append((sender, to, event))

    def deliver(self, to: int, event: Any) -> None:
        if not self.nodes[to].alive:
            return
        self.log.append(f"deliver to {to}: {event}")
        if isinstance(event, Question):
            self.rounds = event.round
            event = tx.StatusAsked(event.member, event.lost)
        if to == 1 and isinstance(
            event, tx.Voted | tx.Checked | tx.Kept | tx.Refused | tx.Finished
        ):
            self.lead(event)
        elif to == 1 and isinstance(event, tx.MemberLost):
            self.lead(event)
            self.take(to, event)
        elif to == 1 and isinstance(event, tx.StatusAsked):
            self.lead(event)  # the coordinator answers for its member
        else:
            self.take(to, event)

    def lead(self, event: tx.Event) -> None:
        for effect in self.coordinator.step(self.now, event):
            match effect:
                case tx.AskPrepare(member):
                    self.send(1, member, tx.PrepareAsked(1, self.participants, self.parts))
                case tx.AskCheck(member, timestamp):
                    self.send(1, member, tx.CheckAsked(timestamp))
                case tx.AskKeep(member, timestamp):
                    asked = tx.KeepAsked(1, self.participants, self.parts, timestamp)
                    self.send(1, member, asked)
                case tx.AskFinish(member, timestamp):
                    self.send(1, member, tx.FinishAsked(timestamp))
                case tx.TellStatus(member, outcome, timestamp):
                    told = tx.StatusTold(1, outcome, timestamp, self.rounds)
                    self.send(1, member, told)
                case tx.Report():
                    assert self.report is None, "the user is answered once"
                    self.report = effect

    def take(self, number: int, event: tx.Event) -> None:
        node = self.nodes[number]
        for effect in node.participant.step(self.now, event):
            match effect:
                case tx.PrepareHere():
                    if node.refuses:
                        self.take(number, tx.RefusedHere(DUPLICATE))
                        continue
                    node.clock += 1
                    node.prepared_at = node.clock
                    self.take(number, tx.PreparedHere(node.clock, 1))
                case tx.CheckHere():
                    self.compare(number)
                case tx.KeepHere(timestamp):
                    if node.misses:
                        self.take(number, tx.RefusedHere(DUPLICATE))
                        continue
                    node.clock = max(node.clock, timestamp)
                    self.take(number, tx.KeptHere())
                case tx.ResolveHere(timestamp):
                    assert node.committed_at is None, "resolved twice"
                    node.committed_at = timestamp
                    node.aborted = timestamp is None
                    node.clock = max(node.clock, timestamp or 0)
                case tx.TellVote(timestamp, rows):
                    self.send(number, 1, tx.Voted(number, timestamp, rows))
                case tx.TellChecked():
                    self.send(number, 1, tx.Checked(number))
                case tx.TellKept():
                    self.send(number, 1, tx.Kept(number))
                case tx.TellRefusal(error):
                    self.send(number, 1, tx.Refused(number, error))
                case tx.TellFinished(contradicts):
                    self.send(number, 1, tx.Finished(number, contradicts))
                case tx.AskStatus(member, asked, lost):
                    self.send(number, member, Question(number, asked, lost))
                case tx.TellStatus(member, outcome, timestamp):
                    told = tx.StatusTold(number, outcome, timestamp, self.rounds)
                    self.send(number, member, told)

    def compare(self, number: int) -> None:
        """The rows of a member agree with all others."""
        self.take(number, tx.CheckedHere(None))

    def tick(self) -> None:
        for node in self.nodes.values():
            if node.alive:
                node.clock += self.chance.randint(0, 3)
                self.take(node.number, tx.Tick())
        if self.nodes[1].alive:
            self.lead(tx.Tick())

    def read(self) -> None:
        """A query at T: every living participant has seen T before it is read there."""
        at = max(node.clock for node in self.nodes.values() if node.alive)
        seen = {}
        for number in self.primaries:
            node = self.nodes[number]
            if node.alive:
                node.clock = max(node.clock, at)
                seen[number] = node.sees(at)
        self.reads.append((at, seen))

    def check(self) -> None:
        assert self.finished(), "somebody is still undecided"
        living = [self.nodes[n] for n in self.participants if self.nodes[n].alive]
        outcomes = {node.committed_at for node in living}
        assert len(outcomes) <= 1, f"participants disagree: {outcomes}"
        if self.report is not None and self.report.error is None:
            assert None not in outcomes, "reported as committed, but it is not"
        survives = all(any(self.nodes[m].alive for m in copies) for copies in self.parts)
        if self.parts and survives and len(self.parts) == len(self.primaries):
            for at, seen in self.reads:
                # A reader may have seen rows at a primary that is lost: its backups have them.
                if True in seen.values():
                    assert outcomes == {*outcomes} - {None}, f"the read at {at} saw what is gone"
        if self.report is not None and self.report.error is not None:
            assert outcomes <= {None}, "reported as failed, but it is committed"
        for at, seen in self.reads:
            # What was answered then must be what the final state shows at the same timestamp.
            for node in living:
                answer = seen.get(node.number)
                if answer is not None:
                    assert answer == node.sees(at), f"the read at {at} changed afterwards"
            answers = {seen[node.number] for node in living if seen.get(node.number) is not None}
            assert len(answers) <= 1, f"the read at {at} saw a part of the rows: {seen}"


def simulate(seed: int) -> None:
    simulation = Simulation(seed)
    try:
        simulation.run()
        simulation.check()
    except AssertionError as failure:
        steps = "\n".join(simulation.log[-60:])
        raise AssertionError(f"seed {seed}: {failure}\n{steps}") from failure
