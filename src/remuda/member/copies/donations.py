"""Copies that come back, on the members: which copies of a former member are wanted, who gets them,
and how what is in doubt there has ended (``member.copies.donor`` is the other side).

A view chooses the donor of a partition, a later one names the member that has received its copy
(``cluster.next_view``). Each change is compare and set: of donors that come at the same time one is
chosen, and a copy that has been overtaken means nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final

from remuda.cluster.movement import table_to_reach
from remuda.cluster.next_view import Placement
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import ProtocolError, TransientError, ViewChanged
from remuda.member.base.core import Core
from remuda.member.base.wing import Routes, Wing
from remuda.member.commits.commits_in_doubt import CommitsInDoubt
from remuda.member.copies.receiving import Receiving
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.membership import Membership
from remuda.member.state.commit_work import TOLD
from remuda.member.state.log import fields
from remuda.member.transactions.transactions import Transactions
from remuda.member.transactions.wire import decode_given
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.transaction import staged_commit as tx

log = logging.getLogger(__name__)

WISH_EVERY: Final = 0.1
GRACE: Final = 2
"""Heartbeat intervals that the primary of the last view is waited for before another holder is
chosen: it has what asynchronous backups lack."""
SILENT: Final = 2
"""Heartbeat timeouts after which another donor may be chosen in place of one that does not come, or
does not get on with what it gives."""
PATIENCE_MAX: Final = 16
"""That time doubles with every change of the donor, up to so many times: where all are slow, one of
them must come to its end."""


class Donations(Wing):
    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        membership: Membership,
        receiving: Receiving,
        transactions: Transactions,
        jobs: CommitsInDoubt,
        catalog: CatalogService,
    ) -> None:
        self._core = core
        self._membership = membership
        self._receiving = receiving
        self._transactions = transactions
        self._jobs = jobs
        self._catalog = catalog
        self._since: dict[tuple[int, int, int], float] = {}
        """Since when a holder waits to be chosen: by partition, generation and chosen donor. From
        the last time on at which the chosen one got on."""
        self._changes: Counter[int] = Counter()
        """By partition: how often another donor was chosen."""
        self._complete: dict[int, Placement] = {}
        """Copies that are here, and that a view is asked to name."""

    # --- what is wanted -----------------------------------------------------------------------

    def on_ask(self, request: Request) -> None:
        """A former member asks. The answer counts, because a majority has just heard of this
        member in this view."""
        message = control_pb2.Donation.FromString(request.pbody)
        core, view = self._core, self._core.view
        core.require_serving()
        core.readiness.require_lease()
        core.observe(message.context)
        donor = codec.decode_member(message.member)
        present = view.by_number.get(donor.number)
        if present is not None and present.uuid == donor.uuid:
            raise ViewChanged(f"member {donor.number} is in view {view.number}")
        wanted = self._wanted(view, donor, message)
        if message.giving:
            self._got_on(view, donor.number, wanted)
        else:
            self._choose(view, donor.number, wanted)
        answer = control_pb2.Donation(
            context=core.context(),
            view=codec.encode_view(view),
            wanted=len(wanted),
            jobs=self._jobs.in_doubt_here(),
        )
        answer.catalog.CopyFrom(self._catalog.state())
        staying = tuple(n for n in view.by_number if n not in core.leaving)
        table = table_to_reach(view, staying or tuple(view.by_number), view.backups + 1)
        for partition in wanted:
            if view.unreachable[partition].donor == donor.number:
                answer.give.add(partition=partition, receiver=table[partition][0])
        request.reply(RpcType.DONATE, answer)

    def _wanted(self, view: View, donor: MemberInfo, message: control_pb2.Donation) -> list[int]:
        """Copies that may still be asked for: of the last view in which somebody had one, and not
        of a generation before."""
        if not any(m.number == donor.number and m.uuid == donor.uuid for m in view.former):
            return []
        return [
            each.partition
            for each in message.copies
            if each.partition in view.unreachable
            and donor.number in view.unreachable[each.partition].holders
            and each.generation == view.generation(each.partition)
        ]

    def _choose(self, view: View, donor: int, wanted: list[int]) -> None:
        """Ask for a view that chooses it, where nobody is chosen, or the chosen donor does not
        come."""
        now, config = self._core.world.clock.monotonic(), self._core.config
        places: list[Placement] = []
        for partition in wanted:
            missing, generation = view.unreachable[partition], view.generation(partition)
            if missing.donor == donor:
                continue
            since = self._since.setdefault((partition, generation, missing.donor), now)
            patience = GRACE * config.heartbeat_interval
            if missing.donor:
                factor = min(2 ** self._changes[partition], PATIENCE_MAX)
                patience = SILENT * config.heartbeat_timeout * factor
            if now >= since + patience or (not missing.donor and missing.holders[0] == donor):
                places.append(Placement(partition, (), (), generation, donor))
        self._membership.wish_places(places)

    def _got_on(self, view: View, donor: int, given: list[int]) -> None:
        """The donor is not silent, however long its copies take."""
        now = self._core.world.clock.monotonic()
        for partition in given:
            key = (partition, view.generation(partition), donor)
            if key in self._since:
                self._since[key] = now

    # --- what comes ---------------------------------------------------------------------------

    def on_copies(self, request: Request) -> None:
        """The beginning or the end of a transfer. Raises ViewChanged, TransientError, and
        ProtocolError for one of nothing, which no view would ever end."""
        message = control_pb2.DonatedCopies.FromString(request.pbody)
        if not message.copies:
            raise ProtocolError("a donor's transfer names no partition")
        core = self._core
        core.require_serving()
        core.observe(message.context)  # not its view: what counts is whom the present one chooses
        if message.complete:
            self._completed(request, message)
            return
        for each in message.copies:
            self._require_chosen(each.partition, each.generation, message.donor)
        # What is complete may be named by a view at any time: it must stay as it is.
        fresh = frozenset(e.partition for e in message.copies) - self._complete.keys()
        if len(fresh) < len(message.copies):
            raise TransientError("copies of these partitions are here, and a view is asked for")
        self._receiving.begin_from_donor(message.donor, message.transfer, fresh)
        core.wal.after(lambda: request.reply(RpcType.ACK, common_pb2.Ack(ok=True)))

    def _require_chosen(self, partition: int, generation: int, donor: int) -> None:
        place = Placement(partition, (), (self._core.number,), generation, donor)
        if not place.fits(self._core.view):
            raise ViewChanged(f"member {donor} is not to bring back partition {partition}")

    def _completed(self, request: Request, message: control_pb2.DonatedCopies) -> None:
        core = self._core
        coming = self._receiving.coming(message.transfer)
        if coming != {each.partition for each in message.copies}:
            raise TransientError(f"transfer {message.transfer} is not known any more")
        for part in message.parts:
            given = decode_given(part)
            if given.partition in coming and not self._transactions.shell.take(given):
                raise TransientError("a part writes a map that is not known here yet")
        for each in message.copies:
            self._complete[each.partition] = Placement(
                each.partition, (), (core.number,), each.generation, message.donor
            )
        log.warning(
            "copies have come back",
            extra=fields(donor=message.donor, partitions=len(message.copies)),
        )
        core.wal.after(lambda: request.reply(RpcType.ACK, common_pb2.Ack(ok=True)))
        core.wal.after(lambda: core.spawn(self._ask_for_view(), "view with copies of a donor"))

    async def _ask_for_view(self) -> None:
        """Until a view names the copies, or has overtaken them."""
        while self._complete and not self._core.stopping:
            self._membership.wish_places(tuple(self._complete.values()))
            await asyncio.sleep(WISH_EVERY)

    def routes(self) -> Routes:
        return Routes(
            control={
                RpcType.DONATE: self.on_ask,
                RpcType.DONATE_COPIES: self.on_copies,
                RpcType.DONATE_JOB: self.on_job,
            }
        )

    def on_view(self, _before: View, view: View) -> None:
        """A copy that another change has overtaken is discarded with its transfer."""
        self._complete = {p: place for p, place in self._complete.items() if place.fits(view)}
        away = view.unreachable
        chosen = {(p, view.generation(p), each.donor) for p, each in away.items()}
        for partition, _, donor in self._since.keys() - chosen:
            self._changes[partition] += donor != 0
        # Whoever is chosen again has all of its time again.
        self._since = {key: since for key, since in self._since.items() if key in chosen}
        for partition in self._changes.keys() - away.keys():
            del self._changes[partition]

    # --- bulk writes that are in doubt --------------------------------------------------------

    def on_job(self, request: Request) -> None:
        """The donor's knowledge counts here, and the end that it has had here counts there."""
        message = control_pb2.DonatedJob.FromString(request.pbody)
        core = self._core
        core.require_serving()
        core.observe(message.context)
        if message.donor not in {each.donor for each in core.view.unreachable.values()}:
            raise ViewChanged(f"member {message.donor} is not to bring anything back")
        timestamp = message.commit_timestamp if message.HasField("commit_timestamp") else None
        if timestamp is not None:
            core.observe_clock(timestamp)
        told = tx.DonorTold(message.donor, TOLD[message.state], timestamp)
        outcome, end = self._jobs.donor_told(message.job, told, tuple(message.participants))
        answer = control_pb2.CommitStatusReply(context=core.context(), state=outcome)
        if end is not None:
            answer.commit_timestamp = end
        core.wal.after(lambda: request.reply(RpcType.DONATE_JOB, answer))
