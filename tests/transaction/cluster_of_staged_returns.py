"""A simulated staged commit whose members are cut off, dropped by views while they live, and come
back as donors, or whose loss is accepted. What a donor and the members tell each other is that of
``member.commits.commits_in_doubt``."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from cluster_of_staged_rows import Node, Simulation

from remuda.member.commits.commits_in_doubt import CommitsInDoubt
from remuda.member.state.commit_work import TOLD, Taking
from remuda.rpc.messages.control_pb2 import CommitStatusReply
from remuda.transaction import staged_commit as tx

JOB = "1-a"


@dataclass(frozen=True)
class Installed:
    """A view: whom it has dropped, and whose copies it waits for."""

    number: int
    dropped: tuple[int, ...]
    awaited: frozenset[int]
    chosen: frozenset[int] = frozenset()


class Participants:
    """What ``CommitsInDoubt`` needs of the shell of a node."""

    def __init__(self, simulation: Returns, node: Node) -> None:
        self._simulation = simulation
        self._node = node
        self._taking = Taking(node.participant)

    def known(self, _job: str) -> Taking | None:
        node = self._node
        rows = node.number in self._simulation.participants
        return self._taking if rows or node.participant.decided else None

    def step(self, _job: str, event: tx.Event) -> None:
        self._simulation.take(self._node.number, event)

    @property
    def prepared(self) -> list[Taking]:
        machine = self._node.participant
        staging = machine.phase is tx.ParticipantPhase.STAGING
        return [] if staging or machine.decided else [self._taking]


@dataclass
class Returns(Simulation):
    """Some members are cut off at ``split_at``, dropped at ``drop_at``, and learn of it at
    ``learn_at``. ``cut`` are these members."""

    cut: frozenset[int] = frozenset()
    view: dict[int, Installed] = field(default_factory=dict)
    returned: set[int] = field(default_factory=set)
    void: bool = False
    """The loss of what only they had was accepted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kill_at, self.kill_coordinator_in = [], None
        most = (len(self.nodes) - 1) // 2
        if most:
            self.cut = frozenset(self.chance.sample(list(self.nodes), self.chance.randint(1, most)))
        self.split_at = self.chance.randint(0, 40)
        self.drop_at = self.split_at + self.chance.randint(5, 60)
        self.learn_at = self.drop_at + self.chance.randint(0, 30)
        self.return_at = self.learn_at + self.chance.randint(0, 60)
        self.accepts = self.chance.random() < 0.2
        self.views: list[Installed] = [Installed(1, (), frozenset())]
        self.view = dict.fromkeys(self.nodes, self.views[0])
        self.turn = 0
        self.doubts = {
            number: CommitsInDoubt(
                SimpleNamespace(number=number, view=SimpleNamespace(awaited=frozenset())),
                Participants(self, node),
                lambda _job, number=number: self.leads(number),
            )
            for number, node in self.nodes.items()
        }

    @property
    def away_parts(self) -> list[tuple[int, ...]]:
        """Of which only members that are cut off have copies."""
        parts = self.parts or tuple((member,) for member in self.participants)
        return [copies for copies in parts if self.cut.issuperset(copies)]

    def leads(self, number: int) -> bool:
        return number == 1 and self.report is None and 1 not in self.cut

    def stopped(self, number: int) -> bool:
        return number in self.cut and self.turn >= self.learn_at

    # --- the course -------------------------------------------------------------------------------

    def run(self) -> None:
        self.lead(tx.Begin())
        for self.turn in range(4000):
            self.now += 0.1
            self.change_views()
            if self.turn == 250:
                self.loss = 0.0
            if self.messages:
                index = self.chance.randrange(len(self.messages))
                sender, to, event = self.messages.pop(index)
                if self.vanishes(sender, to):
                    continue
                if self.chance.random() < 0.1:
                    self.messages.append((sender, to, event))
                self.deliver(to, event)
            elif self.finished():
                break
            self.read()
            if self.turn % 10 == 0:
                self.tick()

    def vanishes(self, sender: int, to: int) -> bool:
        apart = (sender in self.cut) != (to in self.cut)
        split = apart and self.turn >= self.split_at
        return split or self.stopped(sender) or self.chance.random() < self.loss

    def change_views(self) -> None:
        if not self.cut:
            return
        held = frozenset(member for copies in self.away_parts for member in copies)
        last = self.views[-1]
        if last.number == 1 and self.turn >= self.drop_at:
            # Other maps have rows of other partitions: any of those that were dropped may be
            # waited for, whether this write needs it or not.
            others = frozenset(n for n in self.cut if self.chance.random() < 0.3)
            self.views.append(Installed(2, tuple(sorted(self.cut)), held | others))
        elif last.number == 2 and self.turn >= self.return_at:
            if self.accepts:
                self.void = True
                self.views.append(Installed(4, last.dropped, frozenset()))
            else:
                donors = frozenset(self.chance.choice(copies) for copies in self.away_parts)
                self.views.append(Installed(3, last.dropped, donors, donors))
        elif last.number == 3 and self.returned >= last.chosen:
            self.views.append(Installed(4, last.dropped, frozenset()))
        for number in self.nodes.keys() - self.cut:
            seen = self.view[number].number
            later = [view for view in self.views if view.number > seen]
            if later and self.chance.random() < 0.2:
                self.install(number, later[0])
        if last.number == 3:
            for donor in sorted(last.chosen - self.returned):
                if self.chance.random() < 0.3 and self.settled(donor):
                    self.returned.add(donor)
            if self.turn > 3000:  # nobody is left who took part: an administrator ends it
                self.void = True
                self.views.append(Installed(4, last.dropped, frozenset()))

    def install(self, number: int, view: Installed) -> None:
        before, self.view[number] = self.view[number], view
        self.log.append(f"{number} installs {view}")
        self.doubts[number]._core.view.awaited = view.awaited
        self.take(number, tx.Awaiting(view.awaited))
        for lost in view.dropped:
            if lost not in before.dropped:
                if number == 1:
                    self.lead(tx.MemberLost(lost, "cut off"))
                self.take(number, tx.MemberLost(lost, "cut off"))

    def settled(self, donor: int) -> bool:
        """As ``Donor._settled``: each question or answer may be lost."""
        if self.chance.random() < 0.3:
            return False
        doubt = self.doubts[donor]
        here = self.nodes.keys() - self.cut
        if any(donor not in self.view[number].chosen for number in here):
            return False  # they refuse it: in their view it is no donor
        prepared = {job for number in here for job in self.doubts[number].in_doubt_here()}
        for job in doubt.to_tell(prepared):
            if not all(self.asked(donor, job, number) for number in doubt.who_knows(job)):
                return False
        return not doubt.undecided()

    def asked(self, donor: int, job: str, number: int) -> bool:
        """Whether a member has heard what the donor knows of a job, and answered; True as well for
        one that is no member."""
        if number in self.cut:
            return True
        if donor not in self.view[number].chosen or self.chance.random() < 0.3:
            return False
        message = self.doubts[donor].told(job)
        timestamp = message.commit_timestamp if message.HasField("commit_timestamp") else None
        told = tx.DonorTold(donor, TOLD[message.state], timestamp)
        self.log.append(f"donor {donor} tells {number} {told}")
        state, end = self.doubts[number].donor_told(job, told, tuple(message.participants))
        if self.chance.random() < 0.3:
            return False
        answer = CommitStatusReply(state=state)
        if end is not None:
            answer.commit_timestamp = end
        self.doubts[donor].adopt(job, answer)
        return True

    # --- what differs -----------------------------------------------------------------------------

    def deliver(self, to: int, event: Any) -> None:
        if not self.stopped(to):
            super().deliver(to, event)

    def lead(self, event: tx.Event) -> None:
        if self.stopped(1):
            return
        unreported = self.report is None
        super().lead(event)
        if unreported and self.report is not None:
            self.doubts[1].ended(JOB, self.coordinator.commit_timestamp)

    def tick(self) -> None:
        for number, node in self.nodes.items():
            if not self.stopped(number):
                node.clock += self.chance.randint(0, 3)
                self.take(number, tx.Tick())
        self.lead(tx.Tick())

    def read(self) -> None:
        """On one side of the split. Who was dropped has no lease."""
        sides = [self.nodes.keys() - self.cut]
        if self.turn < self.drop_at:
            sides = [set(self.nodes)] if self.turn < self.split_at else [*sides, set(self.cut)]
        side = self.chance.choice(sides)
        if not side:
            return
        at = max(self.nodes[number].clock for number in side)
        seen = {}
        for number in set(self.primaries) & side:
            node = self.nodes[number]
            node.clock = max(node.clock, at)
            seen[number] = node.sees(at)
        self.reads.append((at, seen))

    def finished(self) -> bool:
        staging = tx.ParticipantPhase.STAGING
        here = [self.nodes[n] for n in self.nodes.keys() - self.cut]
        undecided = [
            n for n in here if n.participant.phase is not staging and not n.participant.decided
        ]
        leading = 1 not in self.cut and self.report is None
        over = not self.cut or all(self.view[node.number].number == 4 for node in here)
        return not undecided and not leading and over

    def check(self) -> None:
        assert self.finished(), "somebody is still undecided"
        back = set() if self.void else self.returned
        whole = [self.nodes[n] for n in self.participants if n not in self.cut or n in back]
        outcomes = {node.committed_at for node in whole}
        assert len(outcomes) <= 1, f"participants disagree: {outcomes}"
        if self.report is not None and whole and not self.void:
            committed = self.report.error is None
            assert (outcomes != {None}) == committed, f"reported {self.report}, found {outcomes}"
        if not self.void:
            for at, seen in self.reads:
                if True in seen.values() and whole:
                    assert outcomes != {None}, f"the read at {at} saw what is gone"
        for at, seen in self.reads:
            for node in whole:
                answer = seen.get(node.number)
                if answer is not None:
                    assert answer == node.sees(at), f"the read at {at} changed afterwards"


def simulate(seed: int) -> Returns:
    simulation = Returns(seed)
    try:
        simulation.run()
        simulation.check()
    except AssertionError as failure:
        steps = "\n".join(simulation.log[-60:])
        raise AssertionError(f"seed {seed}: {failure}\n{steps}") from failure
    return simulation
