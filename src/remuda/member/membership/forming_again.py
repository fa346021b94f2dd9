"""Members that come back from their logs form their cluster again (the first member's side).

The first member gathers those that come, and the contents of their folders. The last view that may
have been decided says who had which copies; of each partition one copy is chosen, the primary's if
it is there. When all are here (or enough of them, and the others have not come for a while; or all
but those whose loss was accepted in words), they settle what is in doubt: a transaction that is
committed in one log is committed, one that is prepared in all chosen copies may have been answered
and is committed, all others are rolled back; a job of bulk rows stands where one log says so. The
new view has the chosen copies alone; backups are made from them afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from remuda.cluster.decree import majority
from remuda.cluster.versions import require_common
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import DataCorrupted, InvalidDefinition, MemberUnavailable
from remuda.limits import PARTITIONS
from remuda.member.journal.folder import Holders, lost_after
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2
from remuda.transaction.states import CATALOG

log = logging.getLogger(__name__)

PREPARED = control_pb2.PartMessage.PREPARED
COMMITTED = control_pb2.PartMessage.COMMITTED
ROLLED_BACK = control_pb2.PartMessage.ROLLED_BACK


@dataclass(frozen=True)
class Returned:
    """A member that is here again, and the contents of its folder."""

    info: MemberInfo
    state: control_pb2.LogState
    view: View
    """The last one that it was in."""
    lost: dict[int, Holders]
    """The last holders of the partitions that the view has lost."""
    accepted: View | None
    """A later one, which may have been decided."""
    left: set[int]
    """Partitions that it has given up since, or has been told to."""

    @property
    def newest(self) -> int:
        return self.view.number if self.accepted is None else self.accepted.number

    @property
    def least_version(self) -> int:
        """The version of the cluster as the folder knows it: it never falls."""
        return (self.view if self.accepted is None else self.accepted).version


def returned(info: MemberInfo, state: control_pb2.LogState) -> Returned:
    view = codec.decode_view(state.view)
    lost = {each.partition: Holders(each.view, tuple(each.members)) for each in state.lost}
    accepted = codec.decode_view(state.accepted) if state.HasField("accepted") else None
    if accepted is not None and accepted.number <= view.number:
        accepted = None
    info = replace(info, number=state.member)
    return Returned(info, state, view, lost, accepted, set(state.left))


@dataclass(frozen=True)
class Prospect:
    """The view that those that are here can make: ``copies`` are the chosen ones (0: there is
    none)."""

    view: View
    needed: frozenset[int]
    copies: tuple[int, ...]
    missing: frozenset[int]

    @property
    def gaps(self) -> int:
        return sum(copy == 0 for copy in self.copies)


class Gathering:
    """The members that have come so far. ``given_up``: members that the operator does not wait
    for."""

    def __init__(self, cluster: bytes, given_up: frozenset[int]) -> None:
        self.cluster = cluster
        self.given_up = given_up
        self.here: dict[int, Returned] = {}
        self._refused: dict[str, DataCorrupted] = {}
        """Processes whose logs are older than what the others know of them."""

    def require_this_cluster(self, message: control_pb2.Join) -> None:
        """Raises InvalidDefinition for a log of another cluster."""
        if message.HasField("log") and message.log.cluster_identity != self.cluster:
            raise InvalidDefinition(
                "data_dir of the member belongs to another cluster",
                detail=f"it is of cluster {message.log.cluster_identity.hex()}, this one is "
                f"{self.cluster.hex()}",
                hint="Start the member with its own folder, or with an empty one.",
            )

    def join(self, message: control_pb2.Join) -> MemberInfo:
        """The member with the number that it had. Raises MemberUnavailable for a new one, which
        may join when the cluster is there, InvalidDefinition for one of another cluster,
        DataCorrupted for one that was refused, VersionMismatch."""
        if not message.HasField("log"):
            raise MemberUnavailable(
                f"the cluster starts again from its logs: {self.progress()}",
                hint="A new member may join afterwards.",
            )
        self.require_this_cluster(message)
        if message.member.uuid in self._refused:
            raise self._refused[message.member.uuid]
        found = returned(codec.decode_member(message.member), message.log)
        others = [each for number, each in self.here.items() if number != found.info.number]
        least = max(each.least_version for each in (*others, found))
        require_common([found.info, *(each.info for each in others)], least)
        self.here[found.info.number] = found
        return found.info

    def prospect(self) -> Prospect:
        # Of two with one number, that one at most was served which members were in.
        each_last = [(self._last(each), each) for each in self.here.values()]
        view = max(each_last, key=lambda it: (it[0].number, it[0] is it[1].view))[0]
        rows = list(view.replicas)
        for partition, holders in self._lost().items():
            if not rows[partition]:
                rows[partition] = holders.members
        needed = frozenset(view.by_number).union(*rows)
        copies = tuple(
            next((m for m in row if m in self.here and partition not in self.here[m].left), 0)
            for partition, row in enumerate(rows)
        )
        return Prospect(view, needed, copies, needed - self.here.keys())

    def _last(self, each: Returned) -> View:
        """The last view that may have been decided, as far as it knows. That of a start was not, if
        a member of it does not know of it: nobody has served it, and others may have formed another
        one without this member."""
        view = each.accepted
        if view is None:
            return each.view
        others = (self.here[number] for number in view.by_number if number in self.here)
        if each.state.settled and any(other.newest < view.number for other in others):
            return each.view
        return view

    def older(self, found: Prospect) -> dict[int, DataCorrupted]:
        """Those whose logs end before what another one has noted of them, and the members that
        would be needed: the missing records would be lost, though the others' logs may have
        them."""
        wrong: dict[int, DataCorrupted] = {}
        here = sorted(found.needed & self.here.keys())  # what others have noted may be void
        for number in here:
            mine, end = self.here[number].state, self.here[number].state.log
            known, by = max(
                (
                    (note.sequence, other)
                    for other in here
                    for note in self.here[other].state.heard
                    if note.member == number and note.identity == end.identity
                ),
                default=(0, 0),
            )
            if known > end.sequence:
                wrong[number] = _older_log(number, mine.folder, end.sequence, known, by)
        return wrong

    def refuse(self, number: int, why: DataCorrupted) -> None:
        """The process is not here any more, and hears why when it asks again."""
        self._refused[self.here.pop(number).info.uuid] = why

    def settles(self, number: int, found: Prospect) -> None:
        """A member is about to be told of the decision: from now on, no copies can be chosen any
        more that it gives up."""
        self.here[number].left.update(p for p, copy in enumerate(found.copies) if copy != number)

    def _lost(self) -> dict[int, Holders]:
        """The holders of the last copies of lost partitions, as the member tells that saw them
        last."""
        found: dict[int, Holders] = {}
        for each in self.here.values():
            lost = lost_after(each.lost, each.view, self._last(each))
            for partition, holders in lost.items():
                known = found.get(partition)
                if known is None or known.view < holders.view:
                    found[partition] = holders
        return found

    def complete(self, *, patient: bool) -> Prospect | None:
        """The view to form now, if any. ``patient``: those that are missing may come."""
        found = self.prospect()
        if not found.missing - self.given_up:
            return found if self._replicated() else None
        voters = found.view.by_number.keys()
        enough = len(voters & self.here.keys()) >= majority(len(voters))
        if patient or not enough or found.gaps or not self._replicated():
            return None
        return found

    def require_logs(self) -> None:
        """Raises DataCorrupted when all are here, and no log has even the beginning of a cluster:
        to wait longer would not help."""
        if not self.prospect().missing and not self._replicated():
            raise DataCorrupted(
                "all members are back, and their logs are empty",
                detail="They ended before the cluster was there, and nothing was acknowledged; or"
                " the logs were taken out of their folders.",
                hint="Put the logs back, or start all members with empty folders.",
            )

    def _replicated(self) -> bool:
        return any(each.state.replicated for each in self.here.values())

    def progress(self) -> str:
        """The missing members, and the partitions that only they have."""
        found = self.prospect()
        if not found.missing:
            return "all members are back"
        names = ", ".join(str(number) for number in sorted(found.missing))
        text = (
            f"members {names} are not back yet"
            if len(found.missing) > 1
            else (f"member {names} is not back yet")
        )
        if found.gaps:
            text += f"; only they have {found.gaps} of {PARTITIONS} partitions"
        return text

    def new_view(self, found: Prospect, first: int) -> View:
        """With the chosen copies. The ``first`` member is in it in any case: when the others have
        gone on without it before, as a new one."""
        members = [
            each.info for number, each in sorted(self.here.items()) if number in found.needed
        ]
        last = found.view.last_number
        if first not in found.needed:
            last += 1
            members.append(replace(self.here[first].info, number=last))
        return replace(
            found.view,
            number=found.view.number + 1,
            members=tuple(members),
            replicas=tuple((copy,) if copy else () for copy in found.copies),
            missing=(),  # the operator waits for nobody else
            former=(),
            away=(),
            last_number=last,
            version=self._version(members),
        )

    def _version(self, members: Sequence[MemberInfo]) -> int:
        """That of the folders; folders of a release that is older than the one before these are
        read as their files allow, and go on in the lowest version that all members have."""
        known = (each.least_version for each in self.here.values())
        return max([*known, *(info.versions.lowest for info in members)])

    # --- what is in doubt ---------------------------------------------------------------------

    def in_doubt(self) -> control_pb2.Recover:
        """The records that every log is asked for."""
        asked = control_pb2.Recover()
        for each in self.here.values():
            asked.parts.extend(each.state.parts)
        jobs = sorted({job for each in self.here.values() for job in each.state.jobs})
        for job in jobs:
            asked.jobs.add(job=job)
        return asked

    def decide(self, found: Prospect, told: Iterable[control_pb2.Recover]) -> control_pb2.Recover:
        """How it all ends; the view is to be added."""
        ends: dict[tuple[int, int], int] = {}
        rolled_back: set[tuple[int, int]] = set()
        jobs: dict[str, int] = {}
        decided = control_pb2.Recover()
        for answer in told:
            for part in answer.parts:
                if part.state == COMMITTED:
                    ends[part.began, part.near] = part.timestamp
                else:
                    rolled_back.add((part.began, part.near))
            jobs |= {job.job: job.timestamp for job in answer.jobs}
            if answer.catalog.version > decided.catalog.version:
                decided.catalog.CopyFrom(answer.catalog)
        prepared = self._prepared(found.copies)
        notes = {(note.began, note.member): note.timestamp for note in decided.catalog.decided}
        for (began, near), parts in prepared.items():
            end = ends.get((began, near))
            partitions = next(iter(parts.values())).partitions
            wanted = self._expected(partitions, found)
            if CATALOG in partitions:
                end = end or notes.get((began, near)) or None
            elif end is None and (began, near) not in rolled_back and wanted <= parts.keys():
                end = max(part.timestamp for part in parts.values())
            for partition in parts:
                one = decided.parts.add(began=began, near=near, partition=partition)
                one.state = ROLLED_BACK if end is None else COMMITTED
                if end is not None:
                    one.timestamp = end
        for asked in self.in_doubt().jobs:
            one_job = decided.jobs.add(job=asked.job)
            if asked.job in jobs:
                one_job.timestamp = jobs[asked.job]
        return decided

    def _prepared(
        self, copies: tuple[int, ...]
    ) -> dict[tuple[int, int], dict[int, control_pb2.PartEnd]]:
        """Of each transaction: the parts that the chosen copies have, by partition."""
        found: dict[tuple[int, int], dict[int, control_pb2.PartEnd]] = {}
        for number, each in self.here.items():
            for part in each.state.parts:
                if _holder(part.partition, copies) == number:
                    found.setdefault((part.began, part.near), {})[part.partition] = part
        return found

    def _expected(self, partitions: Iterable[int], found: Prospect) -> set[int]:
        """Parts without which a transaction was never promised: those of copies that are here."""
        return {p for p in partitions if _holder(p, found.copies) in self.here}


def _holder(partition: int, copies: tuple[int, ...]) -> int:
    return copies[partition] if partition < PARTITIONS else partition - PARTITIONS


def _older_log(number: int, folder: str, end: int, known: int, by: int) -> DataCorrupted:
    return DataCorrupted(
        f"the log of member {number} in {folder} is older than the others know: it ends with record"
        f" {end}, and record {known} was on its disk",
        detail=f"Member {by} has noted that. The folder is an older copy, or its log was cut off:"
        f" writes behind record {end} that were acknowledged would be lost.",
        hint="Put the newer folder back, or start the member with an empty one: the others go on"
        " with their copies, and it gets its rows from them. Where they are too few for that, or"
        f" have no copies, start them with start_without={number}; what only this member had is"
        " lost then.",
    )
