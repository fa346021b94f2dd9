"""Bulk writes beside single writes of the same value of a unique index, in simulation: never are
both committed, whoever is lost. Mutations of the two rules for that must be noticed."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from cluster_of_staged_rows import DUPLICATE, Node, Simulation

from remuda.transaction import staged_commit as tx


@dataclass
class SingleWrite:
    """A transaction that writes the value on one member, after it has looked for it everywhere."""

    member: int
    snapshot: int | None = None
    committed: bool = False


@dataclass
class OfOneValue(Simulation):
    """The job writes the value on one member; all members are primaries of the map."""

    singles: list[SingleWrite] = field(default_factory=list)
    remembers: bool = True
    """Members refuse those that looked before the job was committed."""
    unique: bool = True
    """The rows of the job are compared."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.primaries = tuple(self.nodes)
        self.parts = tuple(
            (
                number,
                *(other for other in self.nodes if other != number and self.chance.random() < 0.4),
            )
            for number in self.nodes
        )
        if all(len(copies) == 1 for copies in self.parts) or self.chance.random() < 0.3:
            self.parts = ()
        self.coordinator = tx.Coordinator("1-a", self.primaries, self.parts, checked=self.unique)
        self.participants = self.coordinator.participants
        for node in self.nodes.values():
            node.refuses = node.misses = False
        at = max(node.clock for node in self.nodes.values())
        for _ in range(self.chance.randint(0, 3)):
            looked = at if self.chance.random() < 0.7 else None
            self.singles.append(SingleWrite(self.chance.choice(list(self.nodes)), looked))
        self.pace = self.chance.choice([0.03, 0.1, 0.3])

    def read(self) -> None:
        super().read()
        for single in self.singles:
            if self.chance.random() < self.pace:
                self.go_on(single)

    def go_on(self, single: SingleWrite) -> None:
        node = self.nodes[single.member]
        if single.committed or not node.alive:
            return
        if single.snapshot is None:
            at, seen = self.reads[-1]
            looked = [seen.get(number) for number in self.primaries]
            if True not in looked and None not in looked and not self.written:
                single.snapshot = at
        elif self.busy(node):
            return  # it waits behind the job
        elif self.written or (self.remembers and (node.committed_at or 0) > single.snapshot):
            single.snapshot = None  # refused: it looks again
        else:
            node.clock += 1
            single.committed = True
            self.log.append(f"single write on {node.number} at {node.clock}")

    @property
    def written(self) -> bool:
        """By a single write, which the guards of others meet."""
        return any(single.committed for single in self.singles)

    @staticmethod
    def busy(node: Node) -> bool:
        return node.prepared_at is not None and node.committed_at is None and not node.aborted

    def compare(self, number: int) -> None:
        there = any(s.committed and s.member == number for s in self.singles)
        self.take(number, tx.CheckedHere(DUPLICATE if there else None))

    def check(self) -> None:
        super().check()
        living = [node for node in self.nodes.values() if node.alive]
        both = self.written and any(node.committed_at is not None for node in living)
        lost = any(s.committed and not self.nodes[s.member].alive for s in self.singles)
        assert lost or not both, "a job and a single write have committed one value"
        if self.report is not None and self.report.error is DUPLICATE:
            assert self.written, "refused without a cause"


def simulated(seed: int, *, remembers: bool = True, unique: bool = True) -> OfOneValue:
    simulation = OfOneValue(seed, remembers=remembers, unique=unique)
    try:
        simulation.run()
        simulation.check()
    except AssertionError as failure:
        steps = "\n".join(simulation.log[-60:])
        raise AssertionError(f"seed {seed}: {failure}\n{steps}") from failure
    return simulation


@pytest.mark.soak
def test_never_two_rows_with_one_value_in_many_runs() -> None:
    for seed in range(400, 100_000):
        simulated(seed)


def test_never_two_rows_with_one_value() -> None:
    ends = [simulated(seed) for seed in range(400)]
    committed = [end for end in ends if end.report is not None and end.report.error is None]
    refused = [end for end in ends if end.report is not None and end.report.error is DUPLICATE]
    assert len(committed) > 66
    assert len(refused) > 10


def test_the_simulation_notices_rows_that_are_not_compared() -> None:
    with pytest.raises(AssertionError, match="one value"):
        for seed in range(2000):
            simulated(seed, unique=False)


def test_the_simulation_notices_members_that_forget_when_a_job_committed() -> None:
    with pytest.raises(AssertionError, match="one value"):
        for seed in range(5000):
            simulated(seed, remembers=False)


def test_the_simulation_notices_a_check_before_all_have_voted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mutation: each member compares as soon as it has voted."""
    original = OfOneValue.take

    def take(self: OfOneValue, number: int, event: tx.Event) -> None:
        if isinstance(event, tx.PreparedHere) and number not in early:
            early[number] = any(s.committed and s.member == number for s in self.singles)
        original(self, number, event)

    def compare(self: OfOneValue, number: int) -> None:
        self.take(number, tx.CheckedHere(DUPLICATE if early.get(number) else None))

    def busy(node: Node) -> bool:
        return False  # nothing waits behind the job

    early: dict[int, bool] = {}
    monkeypatch.setattr(OfOneValue, "take", take)
    monkeypatch.setattr(OfOneValue, "compare", compare)
    monkeypatch.setattr(OfOneValue, "busy", staticmethod(busy))
    with pytest.raises(AssertionError, match="one value"):
        for seed in range(2000):
            early.clear()
            simulated(seed)
