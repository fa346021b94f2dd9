"""A donor: a process that views have dropped, and that has copies which nobody else may have.

It serves nothing. It asks the members that it knows, and the address that it joined through, until
one of them answers in the name of a majority that none of its copies is wanted. A copy that it is
chosen to bring back (``member.copies.donations``) goes to the member that the answer names: first
it learns how bulk writes have ended that are in doubt, then it sends the rows with their history,
then its knowledge of transactions, which the receiver settles with the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Final

from remuda.config import split_address
from remuda.datatypes.view import View
from remuda.errors import MemberUnavailable, RemudaError
from remuda.member.base.core import Core
from remuda.member.base.peers import dial
from remuda.member.commits.commits_in_doubt import CommitsInDoubt
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.state.log import fields
from remuda.member.transactions.transactions import Transactions
from remuda.member.transactions.wire import fill_given
from remuda.rpc import arrow_stream, codec
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Channel
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import ALWAYS, joined, wire_batches

log = logging.getLogger(__name__)

Address = tuple[str, int]
TIMEOUT: Final = 30.0
TELL_FIRST: Final = 1.0
"""Seconds until the log repeats why a donor waits."""
TELL_MAX: Final = 300.0


class Progress:
    """The word to members while a donor gives copies: one that gets on is not replaced, however
    long its copies take."""

    def __init__(self, donor: Donor, partitions: Collection[int]) -> None:
        self._donor = donor
        self._partitions = partitions
        self._told = donor.now()

    async def made(self) -> None:
        """Some rows have arrived. Any of the members may be asked by other holders."""
        if self._donor.now() - self._told >= self._donor.tell_every:
            await self._donor.tell_progress(self._partitions)
            self._told = self._donor.now()


class Waits:
    """Why a donor waits: for users who ask, and in the log, which repeats it more and more rarely.
    Without a majority among the others it may wait for ever."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._causes: dict[str, str] = {}
        self._pause = TELL_FIRST
        self._next = 0.0

    @property
    def text(self) -> str:
        if not self._causes:
            return ""
        return "It waits: " + "; ".join(f"{at}: {why}" for at, why in self._causes.items())

    def heard(self) -> None:
        """A member has answered for a majority."""
        self._causes.clear()
        self._pause, self._next = TELL_FIRST, 0.0

    def note(self, address: str, error: RemudaError) -> None:
        self._causes[address] = error.message
        now = self._core.world.clock.monotonic()
        if now < self._next:
            return
        log.warning("a donor waits", extra=fields(asked=address, cause=error.message))
        self._next = now + self._pause
        self._pause = min(2 * self._pause, TELL_MAX)


class Donor:
    """The partitions of this process in ``core.view`` when it learned that it was dropped. Nothing
    changes its stores any more."""

    def __init__(
        self,
        core: Core,
        transactions: Transactions,
        jobs: CommitsInDoubt,
        catalog: CatalogService,
    ) -> None:
        self._core = core
        self._transactions = transactions
        self._jobs = jobs
        self._catalog = catalog
        self._view = core.view
        """The newest that it has heard of."""
        self._copies: dict[int, int] = {}
        """The partitions that it has, with their generations."""
        self._asking: asyncio.Task[None] | None = None
        self._over = False
        self._reason = ""
        """Why it was dropped; "" while it is a member."""
        self._waits = Waits(core)

    def begin(self, reason: str) -> None:
        """It was dropped: from now on it keeps what it has."""
        view, number = self._core.view, self._core.number
        self._view = view
        rows = enumerate(view.replicas)
        self._copies = {p: view.generation(p) for p, row in rows if number in row}
        self._reason = reason
        self._core.departure.donate()

    @property
    def refusal(self) -> MemberUnavailable | None:
        """The error that users hear; None while this process is a member."""
        if not self._reason:
            return None
        return MemberUnavailable(
            f"member {self._core.number} is not in the cluster any more: {self._reason}",
            detail=f"It keeps its copies of {len(self._copies)} partitions until a majority of the"
            f" others has answered that none of them is wanted. {self._waits.text}".rstrip(),
            hint="Ask another member. Where partitions are unreachable, leave this process alone: a"
            " signal ends it at once, and what only it has is unreachable then.",
            member=str(self._core.number),
        )

    async def run(self) -> None:
        """Return when none of the copies is wanted, or after ``end``."""
        if not self._copies or self._over:
            return
        log.warning("it keeps its copies until nobody wants them", extra=fields())
        self._asking = asyncio.get_running_loop().create_task(self._ask_again())
        await asyncio.wait([self._asking])

    def end(self) -> None:
        """The process is to end, whether others want its copies or not."""
        self._over = True
        if self._asking is not None:
            self._asking.cancel()

    async def _ask_again(self) -> None:
        while not await self._not_wanted():
            await asyncio.sleep(self._core.config.heartbeat_interval)

    async def _not_wanted(self) -> bool:
        for host, port in self._addresses():
            try:
                answer = await self._ask(host, port, self._copies)
                self._waits.heard()
                self._view = codec.decode_view(answer.view)
                self._catalog.install(answer.catalog)
                if not answer.wanted:
                    log.warning(
                        "none of its copies is wanted", extra=fields(view=self._view.number)
                    )
                    return True
                await self._give_all(answer)
            except RemudaError as error:  # another one is asked, then all again
                self._waits.note(f"{host}:{port}", error)
            else:
                return False
        return False

    def _addresses(self) -> Iterator[Address]:
        """Of those that may know, each once."""
        found: dict[Address, None] = {}
        for view in (self._view, self._core.view):
            for member in view.members:
                if member.uuid != self._core.uuid:
                    found[member.host, member.control_port] = None
        if self._core.config.join:
            found[split_address(self._core.config.join, "join")] = None
        yield from found

    async def _dial(self, host: str, port: int) -> Channel:
        """As a process that is no member."""
        core = self._core
        hello = control_pb2.ControlHandshake(
            member=codec.encode_member(replace(core.info, number=0)),
            context=common_pb2.Context(clock=core.clock.last),
        )
        return await dial(core, host, port, ChannelKind.CONTROL, hello)

    def _context(self) -> common_pb2.Context:
        return common_pb2.Context(clock=self._core.clock.last, view=self._view.number)

    async def _ask(
        self, host: str, port: int, copies: Collection[int], *, giving: bool = False
    ) -> control_pb2.Donation:
        message = control_pb2.Donation(
            context=common_pb2.Context(clock=self._core.clock.last),
            member=codec.encode_member(self._core.info),
            copies=self._named(copies),
            giving=giving,
        )
        channel = await self._dial(host, port)
        try:
            reply = await channel.request(RpcType.DONATE, message, timeout=TIMEOUT)
        finally:
            channel.close()
        return control_pb2.Donation.FromString(reply.pbody)

    def now(self) -> float:
        """Seconds."""
        return self._core.world.clock.monotonic()

    @property
    def tell_every(self) -> float:
        """Seconds between two words about what it gives: less than the time after which a silent
        donor is replaced."""
        return self._core.config.heartbeat_timeout / 2

    async def tell_progress(self, partitions: Collection[int]) -> None:
        """Tell all members that it gets on. A member that is not reached chooses nobody either."""
        for member in self._view.members:
            try:
                await self._ask(member.host, member.control_port, partitions, giving=True)
            except RemudaError as error:
                log.info("a donor was not heard", extra=fields(cause=error.message))

    def _named(self, partitions: Iterable[int]) -> list[common_pb2.Generation]:
        return [
            common_pb2.Generation(partition=p, generation=self._copies[p])
            for p in sorted(partitions)
        ]

    # --- giving -------------------------------------------------------------------------------

    async def _give_all(self, answer: control_pb2.Donation) -> None:
        by_receiver: dict[int, list[int]] = {}
        for each in answer.give:
            if each.partition in self._copies:
                by_receiver.setdefault(each.receiver, []).append(each.partition)
        if not by_receiver or not await self._settled():
            return
        for receiver, partitions in sorted(by_receiver.items()):
            await self._give(receiver, partitions)

    async def _give(self, receiver: int, partitions: list[int]) -> None:
        core, member = self._core, self._view.by_number[receiver]
        channel = await self._dial(member.host, member.control_port)
        try:
            begin = control_pb2.DonatedCopies(
                context=self._context(),
                donor=core.number,
                transfer=f"donor {core.number}-{core.world.chance.bits(96):024x}",
                copies=self._named(partitions),
            )
            await channel.request(RpcType.DONATE_COPIES, begin, timeout=TIMEOUT)
            rows = 0
            progress = Progress(self, partitions)
            for store, some in self._stores(frozenset(partitions)):
                rows += await self._send(channel, begin.transfer, store, some, progress)
            begin.complete = True
            for given in self._transactions.shell.given(partitions):
                fill_given(begin.parts.add(), given)
            begin.context.CopyFrom(self._context())
            await channel.request(RpcType.DONATE_COPIES, begin, timeout=TIMEOUT)
        finally:
            channel.close()
        log.warning(
            "copies given back",
            extra=fields(receiver=receiver, partitions=len(partitions), rows=rows),
        )

    def _stores(self, partitions: frozenset[int]) -> Iterator[tuple[MapStore, frozenset[int]]]:
        """Each store that has rows of them: this member was the primary of some, and backed up
        others."""
        core = self._core
        primary = core.primary_here or frozenset()
        for map_id, store in list(core.stores.items()):
            if store.schema.replicated:
                continue
            here = partitions & primary - core.unmoved.get(map_id, frozenset())
            if here:
                yield store, here
            behind = core.backup_stores.get(map_id)
            if behind is not None and partitions - here:
                yield behind, partitions - here

    async def _send(
        self,
        channel: Channel,
        transfer: str,
        store: MapStore,
        partitions: frozenset[int],
        progress: Progress,
    ) -> int:
        schema, sent = store.schema, 0
        message = control_pb2.CopyRows(
            context=self._context(),
            transfer=transfer,
            map_id=schema.map_id,
            schema_version=schema.version,
            low=ALWAYS,
            floor=store.floor,
        )
        for found in joined(store.extraction(partitions).versions()):
            for batch in wire_batches(found.on_wire()):
                body = arrow_stream.encode(batch.schema, [batch])
                await channel.request(RpcType.COPY_ROWS, message, [body], timeout=TIMEOUT)
                sent += batch.num_rows
                await progress.made()
        if not sent and store.floor:
            await channel.request(RpcType.COPY_ROWS, message, timeout=TIMEOUT)
        return sent

    # --- bulk writes in doubt -----------------------------------------------------------------

    async def _settled(self) -> bool:
        """Whether the end of every bulk write that was prepared here is known by now, and every
        member knows the end of those that have ended here."""
        elsewhere: set[str] = set()
        for member in self._view.members:
            elsewhere.update((await self._ask(member.host, member.control_port, ())).jobs)
        for job in self._jobs.to_tell(elsewhere):
            await self._tell(job, self._view)
        return not self._jobs.undecided()

    async def _tell(self, job: str, view: View) -> None:
        """Every member that took part: all of them decide with the same knowledge."""
        for number in self._jobs.who_knows(job):
            member = view.by_number.get(number)
            if member is None:
                continue
            message = self._jobs.told(job)
            message.context.CopyFrom(self._context())
            channel = await self._dial(member.host, member.control_port)
            try:
                reply = await channel.request(RpcType.DONATE_JOB, message, timeout=TIMEOUT)
            finally:
                channel.close()
            self._jobs.adopt(job, control_pb2.CommitStatusReply.FromString(reply.pbody))
