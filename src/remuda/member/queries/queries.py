"""The shell around ``query.registry``: carries out its effects and feeds it events."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

from remuda.errors import InternalError, MemberUnavailable, RemudaError, ViewChanged
from remuda.execution.build import build_fragments
from remuda.execution.context import FragmentProfile
from remuda.execution.fragment import FragmentInstance
from remuda.execution.pool import Scheduler
from remuda.limits import ENDED_QUERY_IDS_KEPT, QUERY_CHECK_INTERVAL, STREAM_GAP_TIMEOUT
from remuda.member.base.core import Core, attempt, bug
from remuda.member.base.loop_handoff import Hop
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Requests, Routes, Wing
from remuda.member.queries.fragment_reports import decode_report, encode_report
from remuda.member.queries.fragments import (
    DataChannelPort,
    Listener,
    fragment_context,
)
from remuda.member.queries.overlays import decode_writes
from remuda.member.queries.query_start import QueryStart, StartDecoder, encode_start
from remuda.member.queries.query_state import (
    IncomingBatch,
    IncomingFlowControl,
    Initiated,
    Running,
    Sent,
)
from remuda.member.queries.short_plans import is_short
from remuda.member.state.log import fields
from remuda.plan.physical import PhysicalPlan, Send
from remuda.query import effects, events
from remuda.query.ids import Endpoint, QueryId, new_query_id
from remuda.query.registry import QueryRegistry
from remuda.query.stream import Grant
from remuda.query.wire import decode_query_id, encode_query_id
from remuda.rpc import codec
from remuda.rpc.connection import ChannelKind, Reply
from remuda.rpc.messages import common_pb2, control_pb2, data_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.messages.data_pb2 import RpcType as DataType
from remuda.rpc.transport import Request

log = logging.getLogger(__name__)


class Queries(Wing):
    def __init__(self, core: Core, peers: Peers, hop: Hop, pool: Scheduler) -> None:
        self._core = core
        self._peers = peers
        self._hop = hop
        self._pool = pool
        self._registry = QueryRegistry(core.number)
        self._running: dict[QueryId, Running] = {}
        self.readers = self._running.keys(), self.resolved  # see ``PendingParts.on_lower``
        self._initiated: dict[QueryId, Initiated] = {}
        self._sent: deque[Sent] = deque(maxlen=ENDED_QUERY_IDS_KEPT)
        self._decoder = StartDecoder()
        self._events: deque[events.Event] = deque()
        self._stepping = False
        self._ticker: asyncio.Task[None] | None = None
        core.memory.besides.append(lambda: self._registry.early_size)
        core.readiness.on_placed.append(self.placed)

    def routes(self) -> Routes:
        control: Requests = {
            RpcType.QUERY_START: self.on_start,
            RpcType.QUERY_CANCEL: self.on_cancel,
            RpcType.QUERY_CHECK: self.on_check,
            RpcType.QUERY_CHECK_RESPONSE: self.on_check_response,
            RpcType.FRAGMENT_DONE: self.on_fragment_done,
        }
        data: Requests = {
            DataType.REQ_RECORD_BATCH: self.on_batch,
            DataType.DATA_ACK_WITH_CREDIT: self.on_flow_control,
        }
        return Routes(control=control, data=data)

    def gauges(self) -> dict[str, int]:
        instances = (made for running in self._running.values() for made in running.instances)
        return {"queries": self.count, "fragments": sum(not made.ended for made in instances)}

    def start(self) -> None:
        """The first view is there: this member has its number."""
        self._registry = QueryRegistry(self._core.number)
        self.members_changed()

    def members_changed(self) -> None:
        """After a view, and when a member is heard again. Queries of members that have left end;
        others go on."""
        core = self._core
        self.happened(events.ViewInstalled(core.view.number, core.live_members()))

    # --- the initiator's side -----------------------------------------------------------------

    def new_id(self) -> QueryId:
        world = self._core.world
        return new_query_id(self._core.number, world.clock.wall_micros(), world.chance.bits(48))

    def begin(
        self,
        query: QueryId,
        start: QueryStart,
        on_end: Callable[[RemudaError | None], None],
        on_started: Callable[[], None] | None = None,
    ) -> Initiated:
        """Start everywhere. ``on_end`` is called once: after the root fragment has put its last
        page into the sink (None), or with the error that ended the query. ``on_started`` is called
        when all other members run their parts."""
        initiated = self._initiated[query] = Initiated(
            query,
            start.plan,
            on_end,
            starting={member for member in start.participants if member != self._core.number},
            on_started=on_started,
        )
        if start.runs is not None:
            start.runs.append(initiated)
        view = self._core.view.number
        if start.view not in (0, view):
            error = ViewChanged(f"view {view} came while a query of view {start.view} was prepared")
            self._ended(query, error)
            return initiated
        me = self._core.number
        owed = Counter[int]()
        for fragment, members in start.sites.items():
            for member in members:
                owed[member] += start.instances.get(fragment, 1)
        self.happened(
            events.Begin(
                query=query,
                participants=start.participants,
                fragments=start.fragments_of(me),
                root=start.plan.fragments[0].id,
                start=start,
                timeout=start.timeout,
                profiled=start.analyze,
                owed=owed,
                instances=start.instances,
            )
        )
        return initiated

    def all_started(self, query: QueryId) -> bool:
        """Whether all members are known to run their parts of a query of this member."""
        initiated = self._initiated.get(query)
        return initiated is None or not initiated.starting

    def _started_on(self, query: QueryId, member: int) -> None:
        initiated = self._initiated.get(query)
        if initiated is not None:
            initiated.started(member)

    def fail(self, query: QueryId, error: RemudaError) -> None:
        """End a query of this member; nothing happens if it has ended already."""
        self.happened(events.QueryFailed(query, error))

    def running(self) -> list[tuple[QueryId, tuple[FragmentInstance, ...]]]:
        """The fragments that run here now, by query."""
        return [(query, running.instances) for query, running in self._running.items()]

    # --- messages -----------------------------------------------------------------------------

    def on_start(self, request: Request) -> None:
        message = control_pb2.QueryStart.FromString(request.pbody)
        query = decode_query_id(message.query_id)
        sender = message.context.sender
        try:
            self._core.observe(message.context)
            self._core.observe_clock(message.read_timestamp)
            start = self._decoder.decode(message)
            if message.writes:
                start = replace(start, overlay=decode_writes(self._core, message))
        except RemudaError as error:
            self._refuse_start(query, sender, error)  # raises for a sender that is no member
            request.fail(error)
            return
        self.happened(
            events.StartReceived(
                query=query,
                sender=sender,
                view=message.context.view,
                participants=tuple(message.participants),
                fragments=start.fragments_of(self._core.number),
                start=start,
                instances=start.instances,
            )
        )
        request.reply(RpcType.ACK, common_pb2.Ack(ok=query in self._running))

    def _refuse_start(self, query: QueryId, to: int, error: RemudaError) -> None:
        self._send_cancel(effects.SendCancel(to, query, self._core.number, error))

    def _refuse_data(self, query: QueryId, error: RemudaError) -> None:
        """Of a message without an answer: the query that it belongs to must not wait for it."""
        if query.member == self._core.number or query in self._running:
            self.happened(events.QueryFailed(query, error))
        else:
            self._send_cancel(effects.SendCancel(query.member, query, self._core.number, error))

    def on_cancel(self, request: Request) -> None:
        message = control_pb2.QueryCancel.FromString(request.pbody)
        self.happened(
            events.CancelReceived(
                query=decode_query_id(message.query_id),
                sender=message.context.sender,
                cancel_initiator=message.cancel_initiator,
                error=codec.decode_error(message.error),
            )
        )

    def on_check(self, request: Request) -> None:
        message = control_pb2.QueryCheck.FromString(request.pbody)
        suspected = tuple(decode_query_id(query) for query in message.suspected)
        self.happened(events.CheckReceived(message.context.sender, suspected))

    def on_check_response(self, request: Request) -> None:
        message = control_pb2.QueryCheckResponse.FromString(request.pbody)
        inactive = tuple(decode_query_id(query) for query in message.inactive)
        self.happened(events.CheckResponseReceived(message.context.sender, inactive))
        for ended in message.ended:
            sender = Endpoint(ended.member, ended.instance)
            self._sender_ended(decode_query_id(ended.query_id), ended.fragment, sender)

    def on_fragment_done(self, request: Request) -> None:
        message = control_pb2.FragmentDone.FromString(request.pbody)
        sender = message.context.sender
        profile = decode_report(message)
        query = decode_query_id(message.query_id)
        if query not in self._initiated:
            self._core.listeners.late_report.tell(query, profile)
        self._started_on(query, sender)
        self.happened(
            events.FragmentDoneReceived(
                query,
                sender,
                message.fragment,
                profile if profile.operators else None,
                message.instance,
            )
        )
        self._sender_ended(query, message.fragment, Endpoint(sender, message.instance))

    def _sender_ended(self, query: QueryId, fragment: int, sender: Endpoint) -> None:
        """A sender has sent everything: a batch of it that has not come is a gap from now on."""
        running = self._running.get(query)
        if running is not None:
            edge = running.edges.get(fragment)
            for instance in running.instances:
                if edge in instance.receives:
                    instance.sender_ended(edge, sender)

    def on_batch(self, request: Request) -> None:
        message = data_pb2.FragmentRecordBatch.FromString(request.pbody)
        query = decode_query_id(message.query_id)
        context = message.context
        try:
            self._core.observe(context)
        except RemudaError as error:
            self._refuse_data(query, error)
            raise
        body = request.dbody
        batch = IncomingBatch(
            message.edge,
            Endpoint(context.sender, message.sending_minor_fragment_id),
            tuple(message.receiving_minor_fragment_id),
            message.ordinal,
            message.isLastBatch,
            body,
        )
        self.happened(events.BatchReceived(query, context.sender, len(body), batch))

    def on_flow_control(self, request: Request) -> None:
        message = data_pb2.FlowControl.FromString(request.pbody)
        query = decode_query_id(message.query_id)
        sender = message.context.sender
        grant = Grant(message.granted_bytes, message.ordinal, message.ok, message.receiver_finished)
        receiver = Endpoint(sender, message.receiver_instance)
        flow = IncomingFlowControl(message.edge, receiver, message.sender_instance, grant)
        self.happened(events.FlowControlReceived(query, sender, flow))

    # --- other events -------------------------------------------------------------------------

    def member_lost(self, number: int, error: RemudaError) -> None:
        self.happened(events.MemberLeft(number, error))

    def connection_broken(self, number: int, kind: ChannelKind, cause: RemudaError) -> None:
        """Batches that were under way to or from the member may be lost, so the queries that
        exchange batches with it fail, those included whose part here has just ended (design rule
        11)."""
        if kind is not ChannelKind.DATA:
            return
        error = MemberUnavailable(
            f"the data connection to member {number} broke: {cause.message}", member=str(number)
        )
        since = self._core.world.clock.monotonic() - STREAM_GAP_TIMEOUT
        concerned = [
            sent.query for sent in self._sent if sent.ended >= since and number in sent.receivers
        ]
        concerned += [
            query
            for query, running in self._running.items()
            if any(instance.needs(number) for instance in running.instances)
        ]
        for query in concerned:
            self.happened(events.QueryFailed(query, error))

    def resolved(self, map_id: int) -> None:
        """A prepared write of the map was decided: readers that wait for it may go on."""
        for running in list(self._running.values()):
            if map_id in running.map_ids:
                for instance in running.instances:
                    instance.schedule()

    def placed(self) -> None:
        """All rows that a view has given to this member are here."""
        for running in list(self._running.values()):
            for instance in running.instances:
                instance.schedule()

    def map_dropped(self, map_id: int) -> None:
        for query, running in list(self._running.items()):
            if map_id in running.map_ids:
                error = self._core.changed_map(map_id)
                self.happened(events.QueryFailed(query, error))

    def happened(self, event: events.Event) -> None:
        """Step the registry. Events that effects cause (a fragment that ends at once) wait their
        turn, so the registry is never entered twice."""
        self._events.append(event)
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._events:
                now = self._core.world.clock.monotonic()
                steps = self._registry.step(now, self._events.popleft())
                # Others begin their work before this member does its own.
                if len(steps) > 1:
                    steps = sorted(steps, key=lambda e: not isinstance(e, effects.SendStart))
                for effect in steps:
                    self._carry_out(effect)
        finally:
            self._stepping = False
        # What waits for a start, or swallows what comes for a cancelled query, is asked about, too.
        if self._ticker is None and len(self._registry):
            self._ticker = self._core.spawn(self._tick(), "query checks")

    async def _tick(self) -> None:
        """While there are queries: timeouts, checks, and a look at streams with gaps."""
        while True:
            if not len(self._registry):
                await self._core.pulse.next_beat()
                continue
            await asyncio.sleep(QUERY_CHECK_INTERVAL)
            attempt("query checks", lambda: self.happened(events.Tick()))
            for running in list(self._running.values()):
                for instance in running.instances:
                    attempt("check of streams", instance.check_streams)

    # --- effects ------------------------------------------------------------------------------

    def _carry_out(self, effect: effects.Effect) -> None:
        """A bug ends the query that it concerns, not what is to be done for others."""
        try:
            self._perform(effect)
        except Exception as error:  # noqa: BLE001 (the boundary, see bug)
            failure = bug(error, f"effect {type(effect).__name__}")
            query = getattr(effect, "query", None)
            if isinstance(query, QueryId):
                self._events.append(events.QueryFailed(query, failure))

    def _perform(self, effect: effects.Effect) -> None:  # noqa: C901, PLR0912 (an arm per effect)
        match effect:
            case effects.StartFragments():
                self._start(effect)
            case effects.DeliverBatch(query, IncomingBatch() as batch):
                self._deliver_batch(query, batch)
            case effects.DeliverFlowControl(query, IncomingFlowControl() as flow):
                self._deliver_flow_control(query, flow)
            case effects.CancelFragments(query, error):
                self._cancel_fragments(query, error)
            case effects.SendStart():
                self._send_start(effect)
            case effects.SendCancel():
                self._send_cancel(effect)
            case effects.SendCheck(to, suspected):
                check = control_pb2.QueryCheck(
                    context=self._core.context(), suspected=map(encode_query_id, suspected)
                )
                self._peers.send_control(to, RpcType.QUERY_CHECK, check)
            case effects.SendCheckResponse(to, inactive, ended):
                response = control_pb2.QueryCheckResponse(
                    context=self._core.context(), inactive=map(encode_query_id, inactive)
                )
                for query, member, fragment, number in ended:
                    response.ended.add(
                        query_id=encode_query_id(query),
                        member=member,
                        fragment=fragment,
                        instance=number,
                    )
                self._peers.send_control(to, RpcType.QUERY_CHECK_RESPONSE, response)
            case effects.SendFragmentDone(
                to, query, fragment, FragmentProfile() | None as profile, instance
            ):
                if profile is None:
                    profile = FragmentProfile(fragment, self._core.number, (), 0.0, 0, instance)
                self._send_fragment_done(to, query, profile)
            case effects.ReportProfile(query, _, _, FragmentProfile() | None as profile):
                # None: the report was repeated, and the profile is not kept for that.
                if profile is not None and query in self._initiated:
                    self._initiated[query].profiles.append(profile)
            case effects.CompleteQuery(query):
                self._ended(query, None)
            case effects.FailQuery(query, _, error):
                self._ended(query, error)
            case effects.Forget(query):
                self._forget(query)
                if query in self._initiated:
                    self._ended(query, InternalError(f"query {query} ended without an answer"))
            case effects.WakeAt(time, query):
                self._wake_at(time, query)
            case effects.Discard(query, what, size):
                log.debug("discarded", extra=fields(query=str(query), what=what, bytes=size))
            case _:
                log.error("effect not understood", extra=fields(effect=effect))

    def _forget(self, query: QueryId) -> None:
        running = self._running.pop(query, None)
        if running is not None:
            receivers = {to for instance in running.instances for to in instance.receivers}
            receivers.discard(self._core.number)
            if receivers:
                now = self._core.world.clock.monotonic()
                self._sent.append(Sent(query, frozenset(receivers), now))

    def _start(self, effect: effects.StartFragments) -> None:
        query, start = effect.query, effect.start
        assert isinstance(start, QueryStart)
        try:
            self._check_dependencies(start.plan)
            running = self._build(query, start)
        except RemudaError as error:
            self.happened(events.QueryFailed(query, error))
            return
        except Exception as error:
            log.exception("fragments could not be built", extra=fields(query=str(query)))
            failure = InternalError(f"{type(error).__name__}: {error}")
            self.happened(events.QueryFailed(query, failure))
            return
        self._running[query] = running
        for instance in running.instances:
            instance.schedule()

    def _check_dependencies(self, plan: PhysicalPlan) -> None:
        for dependency in plan.dependencies:
            self._core.readable(dependency.map_id, dependency.schema_version)

    def _build(self, query: QueryId, start: QueryStart) -> Running:
        core = self._core
        plan = start.plan
        here = [f for f in plan.fragments if core.number in start.sites.get(f.id, ())]
        senders = {f.root.edge: f.id for f in here if isinstance(f.root, Send)}
        port = DataChannelPort(
            core,
            self._peers,
            self._hop,
            query=query,
            senders=senders,
            happened=self.happened,
        )
        instances = build_fragments(
            plan,
            fragment_context(core, query, start, port),
            self._pool,
            Listener(self._hop, query, self.happened),
            sink=start.sink,
            inline=is_short(plan, core.stores),
        )
        return Running(
            instances,
            {(edge, made.instance): made for made in instances for edge in made.receives},
            {(edge, made.instance): made for made in instances for edge in made.sends},
            {f.id: f.root.edge for f in plan.fragments if isinstance(f.root, Send)},
            frozenset(dependency.map_id for dependency in plan.dependencies),
            start.read_timestamp,
        )

    def _deliver_batch(self, query: QueryId, batch: IncomingBatch) -> None:
        running = self._running.get(query)
        if running is None:
            return
        for number in batch.receivers:
            instance = running.receives.get((batch.edge, number))
            if instance is not None:
                instance.on_batch(batch.edge, batch.sender, batch.ordinal, batch.last, batch.body)

    def _deliver_flow_control(self, query: QueryId, flow: IncomingFlowControl) -> None:
        running = self._running.get(query)
        instance = running.sends.get((flow.edge, flow.sender)) if running else None
        if instance is not None:
            instance.on_flow_control(flow.edge, flow.receiver, flow.grant)

    def _cancel_fragments(self, query: QueryId, error: RemudaError) -> None:
        running = self._running.get(query)
        if running is not None:
            for instance in running.instances:
                instance.cancel(error)

    def _send_start(self, effect: effects.SendStart) -> None:
        start = effect.start
        assert isinstance(start, QueryStart)
        message = encode_start(
            effect.query, start, self._core.context(), self._core.catalog.version
        )
        try:
            self._core.require_alive(effect.to)
        except RemudaError as error:
            self.happened(events.QueryFailed(effect.query, error))
            return

        def answered(reply: Reply | RemudaError) -> None:
            if not isinstance(reply, RemudaError) and common_pb2.Ack.FromString(reply.pbody).ok:
                self._started_on(effect.query, effect.to)  # refusals go their own way

        self._peers.request_nowait(effect.to, RpcType.QUERY_START, message, (), answered)

    def _send_cancel(self, effect: effects.SendCancel) -> None:
        message = control_pb2.QueryCancel(
            context=self._core.context(),
            query_id=encode_query_id(effect.query),
            cancel_initiator=effect.cancel_initiator,
            error=codec.encode_error(effect.error),
        )
        self._peers.send_control(effect.to, RpcType.QUERY_CANCEL, message)

    def _send_fragment_done(self, to: int, query: QueryId, profile: FragmentProfile) -> None:
        message = encode_report(query, profile, self._core.context())
        self._peers.send_control(to, RpcType.FRAGMENT_DONE, message)

    def _wake_at(self, time: float, query: QueryId) -> None:
        initiated = self._initiated.get(query)
        if initiated is not None:
            delay = max(0.0, time - self._core.world.clock.monotonic())
            loop = asyncio.get_running_loop()
            expired = events.Expired(query)
            initiated.timer = loop.call_later(delay + 0.001, self.happened, expired)

    def _ended(self, query: QueryId, error: RemudaError | None) -> None:
        initiated = self._initiated.pop(query, None)
        if initiated is not None:
            if initiated.timer is not None:
                initiated.timer.cancel()
            on_end = initiated.ended()
            self._snapshot(initiated)
            on_end(error)
            self._core.listeners.query_ended.tell(query)

    def _snapshot(self, initiated: Initiated) -> None:
        """The profiles of fragments here that did not report: those of a query that fails,
        and those that ended in another thread just before the root did."""
        running = self._running.get(initiated.query)
        if running is not None:
            me = self._core.number
            reported = {(p.fragment, p.instance) for p in initiated.profiles if p.member == me}
            initiated.profiles += [
                made.profile()
                for made in running.instances
                if (made.fragment, made.instance) not in reported
            ]

    # --- state --------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        return len(self._running.keys() | self._initiated.keys())

    def oldest_read(self) -> int | None:
        """The lowest timestamp that a query on this member reads at."""
        return min((running.read_timestamp for running in self._running.values()), default=None)

    def stop(self, error: RemudaError) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        for query in list(self._initiated):
            self.fail(query, error)
        for query in list(self._running):
            self._cancel_fragments(query, error)
