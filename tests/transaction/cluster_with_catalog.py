"""Transactions whose last part is the catalog, while members are lost, in one thread from one seed.

As in ``cluster_of_copies``, but each transaction has definitions as well. The catalog is a register
that a majority keeps: an edit is made in one step, by a member of the newest view. Edits and their
answers come late or never, some are refused, and near members are lost at any step.
"""

from __future__ import annotations

from cluster_of_copies import KEYS, RESEND, TROUBLE, Cluster, Member, ViewOfCopies, Violation, Work
from histories import Outcome

from remuda.errors import DuplicateMap, OutcomeUnknown, RemudaError
from remuda.transaction import states as tx
from remuda.transaction.near import Near
from remuda.transaction.states import CATALOG, State, TransactionId

ROLLED_BACK = -1


class ViewWithCatalog(ViewOfCopies):
    def primary(self, partition: int) -> int | None:
        return min(self.members) if partition == CATALOG else super().primary(partition)

    def backups(self, partition: int) -> tuple[int, ...]:
        return () if partition == CATALOG else super().backups(partition)


class MemberWithCatalog(Member):
    world: ClusterWithCatalog

    def perform(self, effects: list[tx.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, tx.DecideHere):
                self.world.note(f"{self.number} v{self.view.number} {effect}")
                self.world.asked.add(effect.transaction)
                self.ask(effect)
            else:
                super().perform([effect])

    def ask(self, effect: tx.DecideHere) -> None:
        """Send the edit, and again until there is an answer."""
        near = self.nears.get(effect.transaction)
        if near is None or near.state is not State.PREPARING or not self.serving:
            return
        if self.world.random.random() < 0.1:
            self.perform(near.on_doubt(OutcomeUnknown("no answer")))
        self.world.send_edit(self, effect)
        self.world.at(RESEND, ("ask", self, effect))
        self.world.may_lose_soon(self.number)

    def answered(self, transaction: TransactionId, cause: RemudaError | None) -> None:
        near = self.nears.get(transaction)
        if near is not None and self.serving:
            self.perform(near.on_catalog(self.world.now, cause))

    def receive(self, sender: int, message: object) -> None:
        match message:
            case tx.Inquire(partition=partition) if partition == CATALOG:
                self.world.late(("resolve", self, self.view.number, sender, message))
            case tx.Finish(transaction, partition) if partition == CATALOG:
                self.world.forget(transaction)
            case _:
                super().receive(sender, message)

    def tick(self) -> None:
        super().tick()
        for transaction in self.world.decided.keys() - self.nears.keys():
            if transaction.near == self.number:
                self.world.forget(transaction)

    def reported(self, report: tx.Report) -> None:
        if report.transaction in self.clients:
            super().reported(report)


class ClusterWithCatalog(Cluster):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        first = self.views[0]
        self.views = [ViewWithCatalog(first.number, first.members, first.table)]
        self.members = {number: self.make_member(number) for number in first.members}
        self.decided: dict[TransactionId, int] = {}
        """The notes of the catalog: commit timestamps, or ROLLED_BACK."""
        self.made: set[TransactionId] = set()
        """Whose definitions are there."""
        self.names: set[TransactionId] = set()
        """Whose definitions nobody can make any more, since a name is taken."""
        self.asked: set[TransactionId] = set()
        self.moved: set[TransactionId] = set()
        """Whose edits were made for an earlier version of the catalog: they are made no more."""

    def make_member(self, number: int) -> Member:
        return MemberWithCatalog(self, number, self.views[0])

    def make_near(self, member: Member, transaction: TransactionId, work: dict[int, Work]) -> Near:
        with_catalog = {**work, CATALOG: Work({}, {})}
        return Near(
            member.number, transaction, with_catalog, member.view, resend=RESEND, last=CATALOG
        )

    def lose(self, number: int, crash: bool) -> None:
        before = self.views[-1]
        super().lose(number, crash)
        if self.views[-1] is not before:
            new = self.views.pop()
            self.views.append(ViewWithCatalog(new.number, new.members, new.table))
            told = self.views[-1]
            self.queue = [
                (
                    at,
                    place,
                    (what[0], told) if isinstance(what, tuple) and new is what[-1] else what,
                )
                for at, place, what in self.queue
            ]

    # --- the catalog --------------------------------------------------------------------------

    def late(self, what: object) -> None:
        """Mostly within a moment, sometimes much later, sometimes never."""
        draw = self.random.random() if self.now < TROUBLE else 1.0
        if draw > 0.15:
            self.at(self.random.uniform(0.0, 4.0 if draw < 0.4 else 0.3), what)

    def send_edit(self, member: MemberWithCatalog, effect: tx.DecideHere) -> None:
        self.late(("edit", member, member.view.number, effect))

    def edit(self, member: MemberWithCatalog, effect: tx.DecideHere) -> None:
        """At the coordinator, by a majority of the newest view."""
        transaction, timestamp = effect.transaction, effect.timestamp
        if transaction not in self.decided and self.random.random() < 0.1:
            self.names.add(transaction)
        if transaction in self.moved:
            return
        cause: RemudaError | None = None
        if self.is_made(transaction):
            pass
        elif transaction in self.names or transaction in self.decided:
            cause = DuplicateMap("the name is taken")
        else:
            self.decided[transaction] = timestamp
            self.made.add(transaction)
            self.names.add(transaction)  # by itself
        self.late(("answered", member, transaction, cause))

    def is_made(self, transaction: TransactionId) -> bool:
        """By its note."""
        return self.decided.get(transaction, ROLLED_BACK) != ROLLED_BACK

    def resolve(self, member: MemberWithCatalog, sender: int, message: tx.Inquire) -> None:
        """A member asks how a transaction has ended, whose near member is lost."""
        transaction = message.transaction
        if transaction not in self.decided:
            self.moved.add(transaction)
        at = self.decided.setdefault(transaction, ROLLED_BACK)
        state = State.ROLLED_BACK if at == ROLLED_BACK else State.COMMITTED
        told = tx.Told(transaction, CATALOG, message.asking, state, max(at, 0))
        self.send(member, sender, told)

    def forget(self, transaction: TransactionId) -> None:
        """All its parts have ended everywhere."""
        self.decided.pop(transaction, None)

    def happen(self, what: object) -> None:
        newest = self.views[-1].number
        match what:
            case ("ask", MemberWithCatalog() as member, tx.DecideHere() as effect):
                member.ask(effect)
            case ("edit", MemberWithCatalog() as member, int() as number, effect):
                if number == newest:  # it is let in, and waits for those before it
                    self.late(("make", member, effect))
            case ("make", MemberWithCatalog() as member, tx.DecideHere() as effect):
                self.edit(member, effect)
            case ("answered", MemberWithCatalog() as member, transaction, cause):
                member.answered(transaction, cause)  # type: ignore[arg-type]
            case ("resolve", MemberWithCatalog() as member, int() as number, int() as sender, ask):
                if number == newest and member.serving and member.view.number == number:
                    self.resolve(member, sender, ask)  # type: ignore[arg-type]
            case _:
                super().happen(what)

    def check(self) -> None:
        super().check()
        for member in self.members.values():
            for client in self.clients:
                if client.transaction is None:
                    continue
                made = client.transaction in self.made
                if made and client.outcome is Outcome.ABORTED:
                    raise Violation(f"{client.transaction} has failed, and its definitions stay")
                if not made and client.outcome is Outcome.COMMITTED:
                    raise Violation(f"{client.transaction} has committed without definitions")
                for key, (_, values) in member.lists.items():
                    if member.number not in self.views[-1].table[key // KEYS]:
                        continue
                    there = client.number in values
                    if there and not made:
                        raise Violation(f"rows of {client.transaction} without its definitions")
                    if made and not there and key in client.appends and self.has_all(key):
                        raise Violation(f"definitions of {client.transaction} without its rows")
        alive = self.views[-1].members
        left = [transaction for transaction in self.decided if transaction.near in alive]
        if left:
            raise Violation(f"the catalog still notes {left}")

    def has_all(self, key: int) -> bool:
        """Whether the rows of a key were never all lost, and then written anew."""
        return bool(self.views[-1].table[key // KEYS])
