"""The shell of ``cluster.membership``: the members of the cluster, and whether this one may serve.

Heartbeats, messages about the next view, and connections that break go into the state machine; its
effects are carried out here. A view is installed in one step: ``core.view`` changes, then the
listeners of views are told.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from functools import partial

from remuda.cluster import agreement as ag
from remuda.cluster import membership as ms
from remuda.cluster.membership import Times
from remuda.cluster.next_view import Placement, next_view
from remuda.config import split_address
from remuda.datatypes.timestamp import from_micros
from remuda.datatypes.view import MemberInfo, View
from remuda.errors import (
    MemberGivenUp,
    MemberUnavailable,
    NobodyListens,
    RemudaError,
    TransientError,
    ViewChanged,
)
from remuda.member.base.core import Core, attempt
from remuda.member.base.leavers import Leavers
from remuda.member.base.peers import Peers, dial
from remuda.member.base.pulse import REST_MAX
from remuda.member.base.wing import Routes, Wing
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.clock_rounds import ClockRounds
from remuda.member.membership.forming import Forming
from remuda.member.membership.joining import Joining
from remuda.member.membership.meeting import Meetings
from remuda.member.membership.membership_history import MembershipHistory
from remuda.member.membership.membership_messages import (
    decode_agreement,
    decode_log_end,
    decode_wish,
    encode_agreement,
    encode_log_end,
    encode_wish,
)
from remuda.member.membership.recovery import Recovery
from remuda.member.membership.takeover import Takeover
from remuda.member.state.log import fields
from remuda.rpc import codec
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request

log = logging.getLogger(__name__)

TICKS = 2
"""Per heartbeat interval; until a view has given its first lease, as often as heartbeats then go
out."""
LOST_NAMES_KEPT = 100
PARTING = 1.0
"""Seconds for which a member that has left in order may answer what it was asked before."""
PROBES = 4
"""Per heartbeat interval, of a member that could not be reached."""


class Membership(Wing):
    def __init__(
        self, core: Core, peers: Peers, catalog: CatalogService, recovery: Recovery | None
    ) -> None:
        self._core = core
        self._peers = peers
        self._catalog = catalog
        meetings = Meetings(core)
        self.forming = Forming(core, meetings, self._begin, catalog, recovery)
        why_not = self._why_not_joined
        self.joining = Joining(core, peers, self.forming, meetings, self.step, why_not)
        self._machine: ms.Membership | None = None
        self._events: deque[ms.Event] = deque()
        self._stepping = False
        self._ticking: asyncio.Task[None] | None = None
        self._takeover = Takeover(core)
        self._left = asyncio.Event()
        self._leaving = False
        self._expected_until = 0
        """The timestamp until which this member is expected back when it leaves."""
        self._drained = False
        self._tell_again = 0.0
        self.leavers = Leavers(core)
        rounds = ClockRounds(core, peers, self._heartbeat, self._reported)
        self.on_clock, self.clocks = rounds.on_clock, rounds.clocks
        self.history = MembershipHistory(core)
        self._refused: dict[int, str] = {}
        """Why the last heartbeat of a member was refused."""
        self._told: dict[int, float] = {}
        """When a member of another view was last answered."""
        core.listeners.broken.add(self._broken)
        core.listeners.other_view.add(self._other_view)
        core.readiness.explain_lack_by(self._no_lease)

    def routes(self) -> Routes:
        return Routes(
            forming={
                RpcType.JOIN: self.joining.on_join,
                RpcType.MEET: self.joining.on_meet,
                RpcType.VIEW_INSTALL: self.joining.on_view_install,
                RpcType.RECOVER: self.forming.on_recover,
                RpcType.HEARTBEAT: self.on_heartbeat,
                RpcType.HEARTBEAT_ANSWER: self.on_heartbeat_answer,
                RpcType.AGREE: self.on_agree,
                RpcType.WISH: self.on_wish,
                RpcType.CLOCK: self.on_clock,
            }
        )

    async def form(self) -> None:
        """Return when a view is installed here. Raises MemberUnavailable after join_timeout."""
        await self.forming.form()

    # --- the state machine ------------------------------------------------------------------------

    def _begin(self, view: View) -> None:
        """The first view of this process."""
        core, config = self._core, self._core.config
        times = Times(
            interval=config.heartbeat_interval,
            timeout=config.heartbeat_timeout,
            lease=config.lease_seconds,
            retry=config.heartbeat_interval / 2,
        )
        now = core.world.clock.monotonic()
        self._machine = ms.Membership(core.number, view, now=now, times=times, next_view=next_view)
        core.view = view
        self._log(view)
        self.history.begun(view)
        self._minimum(view)
        self._refresh(self._machine)
        self._ticking = core.spawn(self._tick(), "heartbeats")
        self.forming.formed.set()
        self.step(ms.Tick())

    def step(self, event: ms.Event) -> None:
        """Give the machine an event; an effect that causes another event waits for its turn."""
        machine = self._machine
        if machine is None or self._core.stopping:
            return
        self._events.append(event)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._events:
                now = self._core.world.clock.monotonic()
                for effect in machine.step(now, self._events.popleft()):
                    attempt(f"membership: {effect}", partial(self._perform, effect))
                self._refresh(machine)
        finally:
            self._stepping = False

    async def _tick(self) -> None:
        interval = self._core.config.heartbeat_interval
        asked = self._core.world.clock.monotonic()
        while True:
            self.step(ms.Tick())
            self._core.pulse.beat()
            machine = self._machine
            now = self._core.world.clock.monotonic()
            if self._core.readiness.hopeless and now >= asked + self._core.config.heartbeat_timeout:
                asked = now
                self._core.spawn(self._ask_where_it_joined(), "asking where it joined")
            quick = machine is not None and not machine.lease.granted
            await asyncio.sleep(min(interval / (ms.FIRST_BEATS if quick else TICKS), REST_MAX))

    def _perform(self, effect: ms.Effect) -> None:
        core = self._core
        match effect:
            case ms.SendBeat(to, sent):
                # Who takes over after a loss starts above what this clock can reach in a lease from
                # now on (``takeover``): it must not hear an old one.
                self._core.timestamp()
                beat = self._heartbeat()
                beat.sent = sent
                if (mine := core.wal.on_disk()) is not None:
                    beat.log.CopyFrom(encode_log_end(mine))
                self._peers.send_membership(to, RpcType.HEARTBEAT, beat)
            case ms.AnswerBeat(to, sent):
                answer = control_pb2.Heartbeat(context=core.context(), sent=sent)
                answer.catalog_version = core.catalog.version
                self._peers.send_membership(to, RpcType.HEARTBEAT_ANSWER, answer)
            case ag.Send(to, message):
                reason = core.view.cause_of_departure(to) or core.lost.get(to, "")
                encoded = encode_agreement(message, core.context(), reason)
                if isinstance(message, ag.Accepted | ag.Decided):
                    self._catalog.votes.tell(encoded)
                send = partial(self._peers.send_membership, to, RpcType.AGREE, encoded)
                if isinstance(message, ag.Promise | ag.Accept | ag.Accepted):
                    core.wal.after(send)  # rests on a vote that must be on the disk first
                else:
                    send()
            case ms.PassOn(to, wish):
                self._peers.send_membership(to, RpcType.WISH, encode_wish(wish, core.context()))
            case ms.Meet(to, info):
                self.joining.meet(to, info)
            case ms.Suspect(member, cause):
                self._suspected(member, cause)
            case ag.Install(view):
                self._install(view)
            case ag.Persist(number, vote=vote):
                # A process that starts again is another member: its promises do not outlive it. The
                # view that it has accepted may have been decided, and does.
                if vote is not None:
                    core.wal.voted(vote.value)
                    self._catalog.votes.leave(number)

    def _refresh(self, machine: ms.Membership) -> None:
        """The machine's state, as far as the rest of the member sees it."""
        core = self._core
        suspected = machine.suspected
        for number in [n for n in core.lost if n in core.view.by_number and n not in suspected]:
            del core.lost[number]
            log.warning("member heard again", extra=fields(peer=number))
            core.listeners.heard.tell(number)
        readiness = core.readiness
        if not machine.member:
            readiness.lease(float("-inf"))
        elif len(core.view.members) == 1:
            readiness.lease(float("inf"))
        else:
            readiness.lease(machine.lease.until(core.world.clock.monotonic()))
        reached = len(core.view.members) - len(suspected)
        readiness.hopeless = reached * 2 <= len(core.view.members)

    # --- views --------------------------------------------------------------------------------

    def _install(self, view: View) -> None:
        core, machine = self._core, self._machine
        assert machine is not None
        if not machine.member:
            self._dropped(view)
            return
        emptied = view.emptied_since(core.view.number)
        core.wal.partitions_taken([p for p in emptied if core.number in view.replicas[p]])
        core.wal.view_changed(core.view, view)
        before, core.view = core.view, view
        core.catalog_news.view_changed(view.by_number)
        gone = [number for number in before.by_number if number not in view.by_number]
        fresh = [number for number in gone if number not in core.lost]
        for number in fresh:
            core.lost[number] = view.cause_of_departure(number) or ms.LEFT
        self._forget_old(view)
        self._log(view)
        self._minimum(view)
        self._takeover.view_installed(before, view, machine.takeover_at, machine.dropped_until)
        core.listeners.view.tell(before, view)
        for number in fresh:
            self._tell_lost(number)
        loop = asyncio.get_running_loop()
        for number in gone:
            if number in self.leavers.members:  # it answers what was sent to it before
                loop.call_later(PARTING, self._peers.forget, number)
            else:
                loop.call_soon(self._peers.forget, number)

    def _forget_old(self, view: View) -> None:
        """Causes of losses are kept for errors, the last ones."""
        gone = [number for number in self._core.lost if number not in view.by_number]
        for number in gone[:-LOST_NAMES_KEPT]:
            del self._core.lost[number]

    def _minimum(self, view: View) -> None:
        least = self._core.config.minimum_members
        if len(view.members) < least:
            self._core.readiness.hold(
                "minimum_members",
                f"view {view.number} has {len(view.members)} members, minimum_members is {least}",
            )
        else:
            self._core.readiness.release("minimum_members")

    def _log(self, view: View) -> None:
        log.info(
            "view installed",
            extra=fields(
                view=view.number,
                members=" ".join(str(number) for number in view.by_number),
                partitions=len(view.partitions_of(self._core.number)),
                backups=len(view.backed_up_by(self._core.number)),
                version=view.version,
                lost=len(view.lost),
            ),
        )

    def _dropped(self, view: View) -> None:
        """A view without this member was decided."""
        self._left.set()
        if not self._leaving:
            cause = view.cause_of_departure(self._core.number)
            self._given_up(cause or f"view {view.number} does not have it")

    def _given_up(self, cause: str, by: str = "the others") -> None:
        number = self._core.number
        self._peers.given_up(
            MemberGivenUp(f"member {number} was given up by {by}: {cause}", member=str(number))
        )

    def wish_places(self, places: Sequence[Placement]) -> None:
        """Copies that are complete (or are to go) wish to be in the next view; those that no longer
        fit the view are dropped. Ask again until a view shows them."""
        self.step(ms.PlaceAsked(tuple(places)))

    def wish_version(self, version: int) -> None:
        """Wish for a view with this version of the cluster. Ask again until a view shows it."""
        self.step(ms.VersionAsked(version))

    # --- leaving ------------------------------------------------------------------------------

    def announce_leave(self) -> None:
        """Tell the others that this member wants to leave: it is to keep no copy of anything."""
        self.leavers.note(
            self._core.number, leaves=True, at_work=False, returning=self._returns_within > 0
        )
        if self._machine is not None:
            self._machine.beat_soon()
        self.step(ms.Tick())

    def tell_drained(self, drained: bool) -> None:
        """The others learn with the next heartbeat whether this member, which leaves, has open
        work."""
        if drained is not self._drained:
            self._drained = drained
            if self._machine is not None:
                self._machine.beat_soon()

    def ask_to_leave(self) -> None:
        """Ask for a view without this member; ask again until it has ``left``."""
        core = self._core
        if not self._leaving and self._returns_within:
            self._expected_until = core.timestamp() + from_micros(int(self._returns_within * 1e6))
        self._leaving = True
        self.step(ms.LeaveAsked(core.number, self._expected_until))

    @property
    def _returns_within(self) -> float:
        """Seconds after a leave in order; 0: it is not expected back."""
        config = self._core.config
        return config.return_within if config.data_dir else 0.0

    def tell_view(self) -> None:
        """Tell the others that this member has installed its view, or, when it has left, the view
        without it to those that are not known to have it; not too often."""
        now = self._core.world.clock.monotonic()
        if self._machine is not None and now >= self._tell_again:
            self._tell_again = now + self._core.config.heartbeat_interval / 10
            self._machine.beat_soon()
            self.step(ms.Tick())

    @property
    def left(self) -> bool:
        """Whether a view without this member was decided."""
        return self._left.is_set()

    @property
    def heard_by_all(self) -> bool:
        """Whether every other member that is heard knows that this one has installed its view."""
        return self._machine is not None and not self._machine.unheard_by

    @property
    def all_know(self) -> bool:
        """Whether every member of the view without this one has installed it, as far as it is
        heard."""
        return self._machine is not None and self._machine.unaware <= self._peers.gone_on

    def has_left(self) -> None:
        self._left.set()

    @property
    def leaving(self) -> bool:
        """It wants to go: that others give it up is what it has asked for."""
        return self._leaving

    # --- messages -----------------------------------------------------------------------------

    def _why_not_joined(self, info: MemberInfo) -> str:
        return "" if self._machine is None else self._machine.why_not_joined(info)

    def on_agree(self, request: Request) -> None:
        message = control_pb2.Agreement.FromString(request.pbody)
        decoded = decode_agreement(message)
        if self._machine is None:
            if isinstance(decoded, ag.Decided):
                self.forming.decided.set()
            return
        if isinstance(decoded, ag.Decided) and not self._leaving and self._drops_me(decoded.value):
            # Before its clock is looked at: a member whose own calendar is wrong must hear it, too.
            cause = message.reason or decoded.value.cause_of_departure(self._core.number)
            self._given_up(cause, f"member {message.context.sender}")
            return
        self._core.observe_peer(message.context)
        told = ag.Received(message.context.sender, decoded)
        if self._catalog.votes.lacks(message):
            self._core.spawn(self._read_catalog(told), "reading the catalog before a view")
        else:
            self.step(told)

    async def _read_catalog(self, told: ag.Received) -> None:
        """A member that decides or installs a view knows every catalog that may have been decided
        in the view before. If it cannot read it, a later message says the same."""
        try:
            await self._catalog.votes.read_from(told.sender)
        except TransientError as error:
            cause = {"peer": told.sender, "cause": error.message}
            log.info("the catalog was not read before a view", extra=fields(**cause))
        else:
            self.step(told)

    def _drops_me(self, view: View) -> bool:
        core = self._core
        return view.number > core.view.number and core.number not in view.by_number

    def on_wish(self, request: Request) -> None:
        self.step(decode_wish(control_pb2.MembershipWish.FromString(request.pbody)))

    def on_heartbeat(self, request: Request) -> None:
        message = control_pb2.Heartbeat.FromString(request.pbody)
        context, core = message.context, self._core
        try:
            core.observe_peer(context)
        except RemudaError as error:
            self._refused[context.sender] = error.message
            raise
        self._refused.pop(context.sender, None)
        self._takeover.heard(context.sender, context.view)
        self.step(ms.Beat(context.sender, context.view, message.sent))
        self._reported(message)
        if message.HasField("log"):
            core.wal.heard(decode_log_end(message.log))
        self.leavers.note(
            context.sender,
            leaves=message.leaving,
            at_work=message.leaving and not message.drained,
            returning=message.returning,
        )
        self._catalog.heard(message)

    def on_heartbeat_answer(self, request: Request) -> None:
        message = control_pb2.Heartbeat.FromString(request.pbody)
        context = message.context
        self._core.observe_peer(context)
        self._takeover.heard(context.sender, context.view)
        self._catalog.heard(message)  # before the lease that this answer may renew
        self.step(ms.BeatAnswer(context.sender, context.view, message.sent))

    def _other_view(self, sender: int, view: int) -> None:
        """Something came from a member in another view: one of the two is told, not too often."""
        now = self._core.world.clock.monotonic()
        if now >= self._told.get(sender, now):
            self._told[sender] = now + self._core.config.heartbeat_interval / 10
            self.step(ag.HeardOf(sender, view))

    def _heartbeat(self) -> control_pb2.Heartbeat:
        memory = self._core.memory
        return control_pb2.Heartbeat(
            context=self._core.context(),
            memory_held=memory.total,
            memory_limit=memory.limit,
            catalog_version=self._core.catalog.version,
            leaving=self._core.number in self.leavers.members,
            drained=self._drained,
            returning=self._core.number in self.leavers.returning,
        )

    def _reported(self, message: control_pb2.Heartbeat) -> None:
        sender, held = message.context.sender, message.memory_held
        self._core.listeners.memory.tell(sender, held, message.memory_limit)

    # --- losses -------------------------------------------------------------------------------

    def _broken(self, number: int, _kind: ChannelKind, error: RemudaError) -> None:
        """A broken connection is suspicion at once: the member is alive if it can be reached."""
        core = self._core
        if number in core.view.by_number and number not in core.lost and core.serving:
            core.spawn(self._probe(number, error.message), f"probe of member {number}")

    async def _probe(self, number: int, cause: str) -> None:
        """Look for the member until it is heard or dropped: a port may be closed for a moment."""
        core = self._core
        while not await self._reaches(number, cause):
            await asyncio.sleep(core.config.heartbeat_interval / PROBES)
            if number not in core.lost or number not in core.view.by_number:
                return

    async def _reaches(self, number: int, cause: str) -> bool:
        """Whether the member answers; the machine hears of a silence."""
        core = self._core
        member = core.view.by_number.get(number)
        if member is None:
            return True
        hello = control_pb2.ControlHandshake(
            member=codec.encode_member(core.info), context=core.context()
        )
        try:
            channel = await dial(core, member.host, member.control_port, ChannelKind.CONTROL, hello)
        except (MemberGivenUp, ViewChanged) as error:
            self._alive(error)
            return True
        except RemudaError as error:
            refused = isinstance(error, NobodyListens)
            self.lose(number, f"{cause}; {error.message}", refused=refused)
            return False
        self.step(ms.Reached(number))
        message = control_pb2.Heartbeat(context=core.context(), probe=True)
        try:
            await channel.request(RpcType.CLOCK, message, timeout=core.config.heartbeat_timeout)
        except (MemberGivenUp, ViewChanged) as error:
            self._alive(error)
        except TransientError as error:
            self.lose(number, f"{cause}; {error.message}")
            return False
        finally:
            channel.close()
        return True

    async def _ask_where_it_joined(self) -> None:
        """The members of its last view may all have been replaced by others, at other addresses:
        the process that answers at the address that this member joined through knows whether it was
        given up."""
        core = self._core
        if not core.config.join:
            return
        host, port = split_address(core.config.join, "join")
        hello = control_pb2.ControlHandshake(
            member=codec.encode_member(core.info), context=core.context()
        )
        try:
            channel = await dial(core, host, port, ChannelKind.CONTROL, hello)
        except (MemberGivenUp, ViewChanged) as error:
            self._alive(error)
        except RemudaError as error:  # asked again
            log.debug("no answer where it joined: %s", error.message)
        else:
            channel.close()

    def _alive(self, refusal: RemudaError) -> None:
        """A probe was refused by a member that is there."""
        if isinstance(refusal, MemberGivenUp):
            self._peers.given_up(refusal)

    def lose(self, number: int, cause: str, *, refused: bool = False) -> None:
        """``number`` is suspected until it is heard. ``refused``: nobody listens at its address."""
        self.step(ms.Unreachable(number, cause, refused))

    def _suspected(self, number: int, cause: str) -> None:
        core = self._core
        if number in core.lost or core.stopping:
            return
        refused = self._refused.pop(number, None)
        if refused is not None:
            cause = f"{cause}; its heartbeats are refused: {refused}"
        log.warning("member lost", extra=fields(peer=number, cause=cause))
        core.lost[number] = cause
        self.history.note("suspected", core.view.number, subject=number, cause=cause)
        self._tell_lost(number)
        self._peers.forget(number)

    def silence(self, number: int) -> float | None:
        """Seconds since ``number`` was heard; 0 for this member itself, None for a stranger."""
        now = self._core.world.clock.monotonic()
        return None if self._machine is None else self._machine.silence(now, number)

    def tell_losses(self) -> None:
        """The losses that the wings have not heard of, because they have just begun."""
        for number in list(self._core.lost):
            self._tell_lost(number)

    def _tell_lost(self, number: int) -> None:
        cause = self._core.lost[number]
        error = MemberUnavailable(f"member {number} is lost: {cause}", member=str(number))
        self._core.listeners.lost.tell(number, error)

    def _no_lease(self) -> str:
        machine, view = self._machine, self._core.view
        if machine is None or not machine.member:
            return "it is not a member of the cluster"
        suspected = machine.suspected
        names = "; ".join(f"member {n} is lost: {why}" for n, why in suspected.items())
        reached = len(view.members) - len(suspected)
        return (
            f"it is not heard by a majority of the {len(view.members)} members of view "
            f"{view.number}, of which it reaches {reached}" + (f" ({names})" if names else "")
        )

    def close(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        self._takeover.close()
