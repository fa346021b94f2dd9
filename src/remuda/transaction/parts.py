"""The parts of transactions on a member that keeps their partitions (design rule 17). Pure.

A part is prepared by the primary of its partition and kept by the backups; a backup that is
promoted goes on with the parts that it has kept. The life of a part::

    (unknown) --validated here, or kept--> PREPARING --all backups keep it--> PREPARED
    PREPARED --Finish--> COMMITTED or ROLLED_BACK, then the backups, then the answer
    PREPARING, in one phase --all backups have committed--> COMMITTED, then the answer
    PREPARING --a backup has no room--> ROLLED_BACK, on all backups, then the refusal

A part is *settled* when all backups have it in its state; before that nobody else is told of it.

When the near member is lost, each member that is the primary of prepared parts asks the primaries
of all others, and tells them how it ended. A primary that has not prepared its part rolls it back
on all its copies before it says so; so either all parts are prepared, or somebody has finished, or
one will never be prepared, and everyone who asks finds the same. While a partition is unreachable,
nobody knows what its copies know: parts in doubt stay so, and ends are kept for its return.

A timestamp holds for as long as its primary is the primary. A backup that is promoted after a third
member was the primary does not know whether that one knew of the part: if not, it has served reads
above the timestamp, at which nothing may change any more (design rule 16). So the part has *lapsed*
until the near member says what it knows: how the part ends, or that nobody has voted for it, and
then it is prepared anew.

Ends are remembered until ``forget`` says that nobody can ask any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from remuda.errors import JobAborted, RemudaError
from remuda.transaction.part import Part, due
from remuda.transaction.part_table import Address
from remuda.transaction.recovered_parts import RecoveredParts
from remuda.transaction.states import (
    BackupEnded,
    BackupFinish,
    BackupFinished,
    BackupForget,
    BackupPrepare,
    BackupPrepared,
    BackupRefused,
    Effect,
    Finish,
    Finished,
    GivenPart,
    HoldHere,
    Inquire,
    KeepHere,
    Layout,
    Message,
    Prepare,
    PrepareHere,
    ResolveHere,
    Send,
    SettledHere,
    State,
    Told,
    Vote,
    made,
)

__all__ = ["Address", "Parts"]


class Parts(RecoveredParts):
    """The life of the parts on member ``me``."""

    # --- events -------------------------------------------------------------------------------

    def on_message(self, sender: int, message: Message) -> list[Effect]:
        """From a member that is in the same view."""
        match message:
            case Prepare():
                return [e for p in sorted(message.work) for e in self._prepare(message, p)]
            case Finish():
                return self._finish(sender, message)
            case BackupPrepare():
                return self._keep(sender, message)
            case BackupPrepared():
                return self._kept(sender, message)
            case BackupRefused():
                return self._not_kept(sender, message)
            case BackupFinish():
                return self._backup_finish(sender, message)
            case BackupFinished():
                return self._backup_finished(sender, message)
            case BackupEnded():
                return self._backup_ended(sender, message)
            case BackupForget():
                return self._backup_forget(message)
            case Inquire():
                return self._inquired(sender, message)
            case Told():
                return self._told(message)
            case Finished():
                return self._other_finished(message)
            case _:
                raise AssertionError(f"{message} is for the near member")

    def prepared_here(self, address: Address, timestamp: int) -> list[Effect]:
        """The answer to ``PrepareHere``: the part is registered."""
        part = self._parts[address]
        part.prepare_timestamp = timestamp
        part.lapsed = False
        return self._spread(address, part)

    def refused_here(self, address: Address, refusal: RemudaError) -> list[Effect]:
        """The other answer: nothing of it is registered, or, of a part that has lapsed, nothing may
        stay so."""
        part = self._parts[address]
        if part.lapsed:
            return self._take_back(address, part, refusal)
        part.state, part.refusal = State.ROLLED_BACK, refusal
        transaction, partition = address
        return self._send(transaction.near, Vote(transaction, partition, refusal=refusal))

    def refuse_to_keep(
        self, sender: int, message: BackupPrepare, refusal: RemudaError
    ) -> list[Effect]:
        """Instead of ``on_message``, on a backup that has no room for a part that it does not know.
        Nobody can have decided that part, because this backup has not kept it. Nothing of it is
        registered. The refusal is for good: the primary may ask twice, and hear the two answers in
        any order."""
        transaction, partition = message.transaction, message.partition
        address = (transaction, partition)
        assert address not in self._parts, "what this backup has kept may be decided"
        if self._is_forgotten(transaction):
            return self.on_message(sender, message)
        part = Part(State.ROLLED_BACK, message.partitions, refusal=refusal)
        self._parts[address] = part
        return self._send(sender, BackupRefused(transaction, partition, refusal))

    def on_layout(self, layout: Layout) -> list[Effect]:
        """Another view: primaries and backups may be others, and near members may be lost."""
        before, self.layout = self.layout, layout
        if not layout.alive(self.me):
            return []
        out: list[Effect] = []
        for address, part in self._parts.items():
            self._lapse(address, part, before)
            promoted = self._primary(address) and before.primary(address[1]) != self.me
            if promoted:  # the old primary may not have reached all the others
                part.settled = False
                part.answered.clear()
                if part.state is State.PREPARED:
                    part.state = State.PREPARING
                elif part.state is State.COMMITTED and part.work is not None:
                    out.append(HoldHere(*address, part.work))
        for address, part in self._parts.items():
            if part.lapsed and self._primary(address) and not layout.alive(address[0].near):
                part.lapsed = False
                if not part.promised:  # nobody can have counted on it
                    out += self._end(address, part, None)
        return [*out, *self._go_on()]

    def _lapse(self, address: Address, part: Part, before: Layout) -> None:
        """In one phase, each copy commits as soon as it has the part, and shows it: there is one
        backup then, and changes of roles wait for what is pending (``member.copies.giving``)."""
        if part.ended or part.settled or part.one_phase or part.pledged:
            return
        former, primary = before.primary(address[1]), self.layout.primary(address[1])
        if former != primary != self.me or self.layout.number > before.number + 1:
            part.lapsed = True

    def on_tick(self, now: float) -> list[Effect]:
        """Send again what is unanswered, more and more rarely."""
        if now - self._sent < self._resend or not self.layout.alive(self.me):
            return []
        self._sent = now
        return self._go_on(due=due)

    def _go_on(self, due: Callable[[Part], bool] = lambda _: True) -> list[Effect]:
        out: list[Effect] = []
        for address, part in list(self._parts.items()):
            if not due(part):
                continue
            if self._primary(address):
                out += self._spread(address, part)
                out += self._recover(address, part)
            elif not self.layout.alive(address[0].near):
                out += self._ask_primary(address, part)
        return out

    def forget(self, near: int, below: int, in_doubt: frozenset[int] = frozenset()) -> list[Effect]:
        """Every transaction of ``near`` that began before ``below`` is finished everywhere, but for
        those that began at ``in_doubt``.

        Everywhere is every copy of its partitions. A member that had one until it was moved was not
        told the end: the parts that it still holds are let go, not applied."""
        self._forgotten[near] = max(below, self._forgotten.get(near, 0))
        self._unfinished[near] = in_doubt
        gone = [
            a
            for a in self._parts
            if a[0].near == near and a[0].began < below and a[0].began not in in_doubt
        ]
        out: list[Effect] = []
        for address in gone:
            part = self._parts.pop(address)
            if not part.ended:
                out.append(ResolveHere(*address, None))
            elif not part.settled:  # a promoted primary was still asking the other copies
                out.append(SettledHere(*address))
        return out

    def let_go(self, partitions: Collection[int]) -> list[Effect]:
        """This member is about to get new copies of these partitions. Its knowledge of parts from
        the time of former copies is out of date, and must not be applied to the new ones."""
        gone = [address for address in self._parts if address[1] in partitions]
        out: list[Effect] = []
        for address in gone:
            if self._parts.pop(address).ended:
                out.append(SettledHere(*address))
            else:
                out.append(ResolveHere(*address, None))
        return out

    # --- copies that come back ------------------------------------------------------------------

    def given(self, partitions: Collection[int]) -> list[GivenPart]:
        """On a donor: the states of its parts of these partitions. A part that it had not
        prepared on all copies may have been answered by the others of that time, so it counts as
        prepared, unless it has lapsed before anybody could count on it. A last part that it was
        about to commit does so only if the others are still prepared."""
        return [
            _given(address, part)
            for address, part in self._parts.items()
            if address[1] in partitions
        ]

    def take(self, given: GivenPart) -> list[Effect]:
        """On the member that is about to get a donor's copy, and has none of its own: as a backup
        that has kept the part. The next layout makes it the primary, which settles the rest."""
        transaction, partition = address = (given.transaction, given.partition)
        if self._is_forgotten(transaction) and given.state is not State.PREPARED:
            return []
        part = Part(given.state, given.partitions, given.work, given.one_phase, promised=True)
        self._parts[address] = part
        if given.state is State.PREPARED:
            part.prepare_timestamp = given.timestamp
            return [KeepHere(transaction, partition, given.timestamp, given.work)]
        part.commit_timestamp = given.timestamp if part.state is State.COMMITTED else None
        return []

    # --- the primary: prepare -----------------------------------------------------------------

    def _prepare(self, message: Prepare, partition: int) -> list[Effect]:
        transaction = message.transaction
        address = (transaction, partition)
        part = self._parts.get(address)
        if part is None:
            if self._is_forgotten(transaction) or not self._primary(address):
                return []
            if message.companions and not self._keeps(transaction, message.companions):
                return []
            work = message.work[partition]
            one_phase = message.one_phase and len(self.layout.backups(partition)) < 2
            part = Part(State.PREPARING, message.partitions, work, one_phase)
            part.companions = message.companions
            self._parts[address] = part
            return [made(PrepareHere, (transaction, partition, work))]
        if part.state is State.PREPARING:
            if part.lapsed and self._primary(address):  # nobody has voted for it
                return [PrepareHere(transaction, partition, part.work)]
            return self._spread(address, part)
        if part.withdrawn and not part.settled:
            return self._withdraw(address, part)
        return self._vote(address, part)

    def _vote(self, address: Address, part: Part) -> list[Effect]:
        transaction, partition = address
        if part.state is State.ROLLED_BACK:
            refusal = part.refusal or JobAborted("the transaction was rolled back meanwhile")
            return self._send(transaction.near, Vote(transaction, partition, refusal=refusal))
        if part.state is State.PREPARED:
            at = part.prepare_timestamp
            vote = made(Vote, (transaction, partition, at, False, None, ()))
            return self._send(transaction.near, vote)
        ended = self._ended_companions(transaction, part) if part.companions else ()
        at = part.commit_timestamp or 0
        vote = made(Vote, (transaction, partition, at, True, None, ended))
        return self._send(transaction.near, vote)

    # --- the primary: backups -----------------------------------------------------------------

    def _spread(self, address: Address, part: Part) -> list[Effect]:
        """Tell the state to the backups that are not known to have it; go on if there are none."""
        transaction, partition = address
        if part.settled:
            return self._tell(part)
        if part.lapsed:
            return []
        missing = [to for to in self.layout.backups(partition) if to not in part.answered]
        if not missing:
            part.settled = True
            return self._on_settled(address, part)
        message: Message
        if part.state is State.PREPARING:
            one_phase = part.one_phase and part.decided is None
            at = part.prepare_timestamp
            message = made(
                BackupPrepare, (transaction, partition, at, part.partitions, part.work, one_phase)
            )
        else:
            message = made(BackupFinish, (transaction, partition, part.commit_timestamp))
        return [made(Send, (to, message)) for to in missing]

    def _on_settled(self, address: Address, part: Part) -> list[Effect]:
        if part.state is not State.PREPARING:
            done = [made(SettledHere, address)] if part.state is State.COMMITTED else []
            return [*done, *self._tell(part)]
        if part.decided is not None:
            return [*self._end(address, part, part.decided), *self._spread(address, part)]
        if not part.one_phase:
            part.state, part.promised = State.PREPARED, True
            return [*self._vote(address, part), *self._recover(address, part)]
        out = self._end(address, part, part.prepare_timestamp)
        part.settled = True  # the backups have committed, too
        out.append(made(SettledHere, address))
        if part.companions:
            out += self._end_companions(address[0], part)
        return [*out, *self._vote(address, part), *self._tell(part)]

    def _kept(self, sender: int, message: BackupPrepared) -> list[Effect]:
        address = (message.transaction, message.partition)
        part = self._parts.get(address)
        if part is None or part.state is not State.PREPARING or not self._primary(address):
            return []
        part.answered.add(sender)
        return self._spread_rest(address, part)

    def _not_kept(self, sender: int, message: BackupRefused) -> list[Effect]:
        address = (message.transaction, message.partition)
        part = self._parts.get(address)
        if part is None or part.state is not State.PREPARING or not self._primary(address):
            return []
        if part.pledged and part.pledged != self.layout.number:
            return []  # in that view, the last part may have been committed
        return self._take_back(address, part, message.refusal, sender)

    def _take_back(
        self, address: Address, part: Part, refusal: RemudaError, *refused: int
    ) -> list[Effect]:
        """Roll back what backups may have kept, but for those that have ``refused`` it."""
        out = self._end(address, part, None)
        part.refusal, part.withdrawn = refusal, True
        part.answered.update(refused)
        return [*out, *self._withdraw(address, part)]

    def _withdraw(self, address: Address, part: Part) -> list[Effect]:
        """Refuse the part when no copy can commit it any more: the user hears of a refusal at once,
        and a backup that has kept the part might be promoted."""
        transaction, partition = address
        assert part.refusal is not None
        part.to_tell[Vote(transaction, partition, refusal=part.refusal)] = transaction.near
        return self._spread(address, part)

    def _backup_finished(self, sender: int, message: BackupFinished) -> list[Effect]:
        transaction, partition = address = (message.transaction, message.partition)
        part = self._parts.get(address)
        if part is None and not self.layout.alive(transaction.near) and self._primary(address):
            return self._send(sender, BackupForget(transaction, partition))
        if part is None or not part.ended or not self._primary(address):
            return []
        part.answered.add(sender)
        return self._spread_rest(address, part)

    def _backup_ended(self, sender: int, message: BackupEnded) -> list[Effect]:
        address = (message.transaction, message.partition)
        part = self._parts.get(address)
        if part is None or part.state is not State.PREPARING or not self._primary(address):
            return []
        if part.pledged and message.timestamp is not None:
            part.answered.add(sender)
            return self._commit_when_kept(address, part, message.timestamp)
        return [*self._end(address, part, message.timestamp), *self._spread(address, part)]

    def _commit_when_kept(self, address: Address, part: Part, timestamp: int) -> list[Effect]:
        """Not all backups are known to have the part, which they must before they can end it."""
        part.decided = timestamp
        return self._spread(address, part)

    def _spread_rest(self, address: Address, part: Part) -> list[Effect]:
        """One more backup has answered: the others have been told already."""
        done = part.answered.issuperset(self.layout.backups(address[1]))
        return self._spread(address, part) if done else []

    def _tell(self, part: Part) -> list[Effect]:
        waiting, part.to_tell = part.to_tell, {}
        return [e for message, to in waiting.items() for e in self._send(to, message)]

    # --- the primary: the end -----------------------------------------------------------------

    def _finish(self, sender: int, message: Finish) -> list[Effect]:
        transaction, partition = address = (message.transaction, message.partition)
        answer = made(Finished, (transaction, partition))
        if self._is_forgotten(transaction):
            return self._send(sender, answer)
        if not self._primary(address):
            return []
        part = self._parts.get(address)
        if part is None:
            # What commits was prepared here, or by a primary that has handed the partition over
            # since: when nothing was pending there, and with the rows.
            if not self.layout.alive(transaction.near) or message.timestamp is not None:
                return self._send(sender, answer)
            part = self._parts[address] = Part(State.ROLLED_BACK)  # for a late Prepare
        part.to_tell[answer] = sender
        out: list[Effect] = []
        if not part.ended:
            if part.pledged and part.state is State.PREPARING and message.timestamp is not None:
                part.answered.update(message.copies)
                if not part.answered.issuperset(self.layout.backups(partition)):
                    return self._commit_when_kept(address, part, message.timestamp)
            out = self._end(address, part, message.timestamp)
            part.answered.update(message.copies)
        return [*out, *self._spread(address, part)]

    # --- the backup ---------------------------------------------------------------------------

    def _keep(self, sender: int, message: BackupPrepare) -> list[Effect]:
        transaction, partition, at = message.transaction, message.partition, message.timestamp
        address = (transaction, partition)
        answer = self._send(sender, BackupPrepared(transaction, partition))
        if self._is_forgotten(transaction):
            return answer
        part = self._parts.get(address)
        out: list[Effect] = []
        if part is not None and part.ended:
            if part.commit_timestamp == at and message.one_phase:
                return answer
            return self._send(sender, BackupEnded(transaction, partition, part.commit_timestamp))
        if part is not None and part.prepare_timestamp == at:
            part.promised, part.lapsed = True, False
            return answer
        if part is not None:  # prepared anew, by a primary that had not heard of the first time
            out = self._end(address, part, None)
        part = self._parts[address] = Part(
            State.PREPARED, message.partitions, message.work, message.one_phase, at
        )
        part.promised = not message.one_phase
        out.append(KeepHere(transaction, partition, at, message.work))
        if message.one_phase:
            out += [*self._end(address, part, at), SettledHere(*address)]
        return [*out, *answer]

    def _backup_finish(self, sender: int, message: BackupFinish) -> list[Effect]:
        transaction, partition = message.transaction, message.partition
        address = (transaction, partition)
        answer = self._send(sender, BackupFinished(transaction, partition))
        if self._is_forgotten(transaction):
            return answer
        part = self._parts.get(address)
        if part is None:
            # What commits was kept here, or had ended before this copy was made, and came with it.
            if self.layout.alive(transaction.near) and message.timestamp is None:
                self._parts[address] = Part(State.ROLLED_BACK)  # for a late BackupPrepare
            return answer
        if part.ended:
            return answer
        out = self._end(address, part, message.timestamp)
        if part.state is State.COMMITTED:
            out.append(SettledHere(*address))
        return [*out, *answer]

    def _backup_forget(self, message: BackupForget) -> list[Effect]:
        part = self._parts.get((message.transaction, message.partition))
        if part is not None and part.ended:
            del self._parts[message.transaction, message.partition]
        return []

    def _ask_primary(self, address: Address, part: Part) -> list[Effect]:
        """On a backup, when the near member is lost: does the primary know of the part?"""
        transaction, partition = address
        if part.ended:
            return self._to_primary(partition, BackupFinished(transaction, partition))
        return self._to_primary(partition, Inquire(transaction, partition, partition))


def _given(address: Address, part: Part) -> GivenPart:
    state, timestamp, work = part.state, part.commit_timestamp or 0, None
    if part.lapsed and not part.promised:
        state = State.ROLLED_BACK
    elif not part.ended:
        state, timestamp, work = State.PREPARED, part.prepare_timestamp, part.work
    alone = part.one_phase and len(part.partitions) == 1
    return GivenPart(*address, state, part.partitions, timestamp, work, alone)
