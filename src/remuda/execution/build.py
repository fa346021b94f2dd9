"""From a physical plan to runnable fragment instances on one member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from remuda.errors import InternalError
from remuda.execution.context import FragmentContext, FragmentListener
from remuda.execution.contract import Operator
from remuda.execution.exchange.encoding import form_of
from remuda.execution.exchange.inbox import Inbox
from remuda.execution.exchange.outbox import Outbox
from remuda.execution.exchange.window import receives_of, stream_window
from remuda.execution.fragment import FragmentInstance
from remuda.execution.operator_builders import BuildContext, operator_builders
from remuda.execution.operators.ordering import bound_keys, places_of
from remuda.execution.operators.receive import MergeReceiveOperator, ReceiveOperator
from remuda.execution.operators.root import RootOperator
from remuda.execution.operators.send import SendOperator, Splitter
from remuda.execution.operators.shared_scan import SharedScan
from remuda.execution.operators.spool import (
    Spool,
    SpoolScanOperator,
    StoreOperator,
    spools_of,
)
from remuda.execution.parallel import Split, exchange_kinds, split_of
from remuda.execution.pool import Scheduler
from remuda.execution.profile import OperatorProfile
from remuda.execution.profiled import ProfiledOperator
from remuda.execution.restarts import repeatable, rounds_operator
from remuda.execution.root_sink import RootSink
from remuda.execution.spill import Usage
from remuda.plan.physical import (
    ExchangeKind,
    Fragment,
    Physical,
    PhysicalPlan,
    Receive,
    Root,
    Send,
    SpoolScan,
    Store,
    inputs_of,
)
from remuda.query.ids import Endpoint
from remuda.query.stream import Grant

OPERATOR_BUILDERS = operator_builders()


def build_fragments(
    plan: PhysicalPlan,
    context: FragmentContext,
    pool: Scheduler,
    listener: FragmentListener,
    *,
    sink: RootSink | None = None,
    inline: bool = False,
) -> tuple[FragmentInstance, ...]:
    """The instances of every fragment of ``plan`` whose sites include ``context.member``.

    ``sink`` is needed where fragment 0 (the root) runs. Nothing runs before ``schedule`` is called
    on the instances; batches may be delivered before that. Exchanges between fragments of the same
    member are wired here and never reach ``context.exchange``. ``inline``: slices run in the thread
    that schedules (for short queries on the loop).
    """
    here = [f for f in plan.fragments if context.sites.runs(f.id, context.member)]
    spools = spools_of(here, context)
    kinds = exchange_kinds(plan)
    builders: list[_FragmentBuilder] = []
    for fragment in here:
        count = context.sites.instances(fragment.id)
        shared: list[SharedScan] | None = None
        if count > 1 and split_of(fragment, kinds) is Split.CHUNKS:
            shared = []
        for instance in range(count):
            me = Endpoint(context.member, instance)
            builders.append(_FragmentBuilder(plan, fragment, me, context, sink, spools, shared))
    _connect(builders)
    return tuple(builder.instance(pool, listener, inline) for builder in builders)


def _connect(builders: Sequence[_FragmentBuilder]) -> None:
    """The streams between instances of this member."""
    inboxes: dict[int, dict[Endpoint, Inbox]] = {}
    outboxes: dict[int, dict[Endpoint, Outbox]] = {}
    for builder in builders:
        for edge, inbox in builder.inboxes.items():
            inboxes.setdefault(edge, {})[builder.me] = inbox
        if builder.outbox is not None:
            outboxes.setdefault(builder.outbox.edge, {})[builder.me] = builder.outbox
    for builder in builders:
        builder.local_outboxes = outboxes
        if builder.outbox is not None:
            builder.outbox.connect_local(inboxes.get(builder.outbox.edge, {}))


class _FragmentBuilder:
    """Builds the operators of one instance and connects its streams. ``shared``: those of its
    ``BuildContext``."""

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        plan: PhysicalPlan,
        fragment: Fragment,
        me: Endpoint,
        context: FragmentContext,
        sink: RootSink | None,
        spools: Mapping[int, Spool],
        shared: list[SharedScan] | None,
    ) -> None:
        self.me = me
        instances = context.sites.instances(fragment.id)
        partitions = context.partitions.get(fragment.id)
        if instances > 1 and shared is None:
            owned = context.sites.owned(fragment.id, me, context.owners)
            partitions = owned if partitions is None else owned & partitions
        self._operators = BuildContext(context, partitions, instances, shared)
        self._spools = spools
        self._read_spools: list[Spool] = []
        self._plan = plan
        self._fragment = fragment
        self._context = context
        self._sink = sink
        self._fragments = {other.id: other for other in plan.fragments}
        self.local_outboxes: Mapping[int, Mapping[Endpoint, Outbox]] = {}
        self.inboxes: dict[int, Inbox] = {
            receive.edge: self._inbox(receive) for receive in receives_of(fragment)
        }
        self.outbox: Outbox | None = None
        self._profiled: list[ProfiledOperator] = []
        if isinstance(fragment.root, Send):
            self.outbox = self._outbox(fragment.root)
        self._root = self._build(fragment.root)

    def instance(
        self, pool: Scheduler, listener: FragmentListener, inline: bool
    ) -> FragmentInstance:
        made = FragmentInstance(
            fragment=self._fragment.id,
            instance=self.me.instance,
            root=self._root,
            inboxes=self.inboxes,
            outbox=self.outbox,
            profiles=self._finished_profiles,
            context=self._context,
            pool=pool,
            listener=listener,
            inline=inline,
        )
        if self._sink is not None and isinstance(self._fragment.root, Root):
            self._sink.attach(made.schedule, self._context.memory)
        for spool in self._read_spools:
            spool.subscribe(made.schedule)
        return made

    def _finished_profiles(self) -> list[OperatorProfile]:
        wall = self._context.wall
        profiles = [operator.profile_now(wall) for operator in self._profiled]
        if isinstance(self._fragment.root, Root | Send):  # it passes on all that it gets
            profiles[0].rows, profiles[0].batches = profiles[1].rows, profiles[1].batches
        if self.outbox is not None:
            profiles[0].bytes = self.outbox.sent_bytes
        return sorted(profiles, key=lambda profile: profile.index)

    # --- edges --------------------------------------------------------------------------------

    def _inbox(self, receive: Receive) -> Inbox:
        context, me = self._context, self.me

        def send_grant(sender: Endpoint, grant: Grant) -> None:
            local = self.local_outboxes.get(receive.edge, {}).get(sender)
            if local is not None:
                local.post_grant(me, grant)
            else:
                context.exchange.send_flow_control(receive.edge, me.instance, sender, grant)

        return Inbox(
            edge=receive.edge,
            senders=context.sites.endpoints(receive.sender_fragment),
            ordered=bool(receive.collation or receive.traits.collation),
            window=stream_window(self._fragment, context.sites),
            form=form_of(receive.output),
            send_grant=send_grant,
            clock=context.clock,
        )

    def _outbox(self, send: Send) -> Outbox:
        receiver = self._fragments[send.receiver_fragment]
        receivers = self._context.sites.endpoints(receiver.id)
        merged = any(r.edge == send.edge and r.collation for r in receives_of(receiver))
        return Outbox(
            edge=send.edge,
            sender=self.me,
            receivers=receivers,
            memory=self._operators.reserve(send) if merged and len(receivers) > 1 else None,
            window=stream_window(receiver, self._context.sites),
            form=form_of(send.output),
            port=self._context.exchange,
        )

    # --- operators ----------------------------------------------------------------------------

    def _build(self, node: Physical) -> ProfiledOperator:
        profile = OperatorProfile(len(self._profiled), type(node).__name__)
        place = len(self._profiled)
        self._profiled.append(None)  # type: ignore[arg-type]  # keeps the place: pre-order
        inputs = [self._build(source) for source in inputs_of(node)]
        if self._context.rounds is None or isinstance(node, Root):
            operator = self._operator(node, inputs)
        else:
            operator = repeatable(node, inputs, partial(self._operator, node))
        made = ProfiledOperator(
            operator,
            profile,
            inputs,
            self._context.clock,
            self._context.analyze,
            self._usage(node),
        )
        self._profiled[place] = made
        return made

    def _operator(self, node: Physical, inputs: Sequence[Operator]) -> Operator:
        """Operators at the ends of a fragment use its streams and spools; the others know only
        their inputs and register their builders."""
        builder = OPERATOR_BUILDERS.get(type(node))
        if builder is not None:
            return builder(node, inputs, self._operators)
        match node:
            case SpoolScan():
                self._read_spools.append(self._spools[node.spool])
                return SpoolScanOperator(self._spools[node.spool], node.positions)
            case Receive():
                return self._receive(node)
            case Send():
                return self._send(node, inputs[0])
            case Store():
                return StoreOperator(inputs[0], self._spools[node.spool])
            case Root():
                return self._root_operator(node, inputs[0])
            case _:
                raise InternalError(f"{type(node).__name__} has no operator")

    def _usage(self, node: Physical) -> Usage:
        """The sum of all reservations of the node's operator."""
        if isinstance(node, Store):
            return self._spools[node.spool].usage
        return self._operators.usage(node)

    def _receive(self, node: Receive) -> Operator:
        inbox = self.inboxes[node.edge]
        if node.collation:
            return MergeReceiveOperator(inbox, bound_keys(node.collation, node.output))
        return ReceiveOperator(inbox)

    def _send(self, node: Send, source: Operator) -> Operator:
        assert self.outbox is not None
        splitter = None
        if node.kind is ExchangeKind.UNICAST and len(self.outbox.receivers) > 1:
            places = places_of(node.input.output)
            positions = [places[key] for key in node.hash_keys]
            splitter = Splitter(
                positions,
                [node.input.output[position].type for position in positions],
                self._context.sites.places(node.receiver_fragment, self._context.owners),
                self.outbox.receivers,
            )
        return SendOperator(
            source,
            kind=node.kind,
            splitter=splitter,
            outbox=self.outbox,
            form=form_of(node.output),
            memory=self._operators.reserve(node),
        )

    def _root_operator(self, node: Root, source: Operator) -> Operator:
        if self._sink is None:
            raise InternalError("the root fragment needs a sink")
        source = rounds_operator(node, source, self._context, self._operators.reserve(node))
        return RootOperator(source, self._sink, form_of(node.output))
