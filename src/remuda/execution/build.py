"""From a physical plan to runnable fragment instances on one member."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa

from remuda.datatypes.sql import BOOLEAN, Kind
from remuda.errors import InternalError, InvalidOffset, InvalidRowCount
from remuda.execution.batch import Batch
from remuda.execution.build_aggregate import aggregate_operator
from remuda.execution.build_lookup import lookup_join
from remuda.execution.build_merge import merge_join
from remuda.execution.build_rounds import is_fixed, repeatable, rounds_operator
from remuda.execution.build_window import bound_window_calls
from remuda.execution.context import FragmentContext, FragmentListener
from remuda.execution.contract import Operator
from remuda.execution.evaluate.compile import Compiler, evaluate_constant
from remuda.execution.evaluate.predicate import Predicate
from remuda.execution.exchange.encoding import form_of
from remuda.execution.exchange.inbox import Inbox
from remuda.execution.exchange.outbox import Outbox
from remuda.execution.exchange.window import receives_of, stream_window
from remuda.execution.fragment import FragmentInstance
from remuda.execution.memory import Reservation
from remuda.execution.operators.expand import expand_operator
from remuda.execution.operators.filter import FilterOperator
from remuda.execution.operators.group_limit import group_limit_operator
from remuda.execution.operators.hash_join import LEFT_ONLY, HashJoinOperator, RightNulls
from remuda.execution.operators.index_scan import IndexScanOperator
from remuda.execution.operators.limit import LimitOperator
from remuda.execution.operators.lookup import KeyLookupOperator
from remuda.execution.operators.nested_loop_join import NestedLoopJoinOperator
from remuda.execution.operators.ordering import bound_keys, places_of
from remuda.execution.operators.partitioned_join import JoinSide, PartitionedJoinOperator
from remuda.execution.operators.project import ProjectOperator
from remuda.execution.operators.receive import MergeReceiveOperator, ReceiveOperator
from remuda.execution.operators.root import RootOperator
from remuda.execution.operators.scan import TableScanOperator
from remuda.execution.operators.send import SendOperator, Splitter
from remuda.execution.operators.shared_scan import SharedScan
from remuda.execution.operators.sort import SortOperator
from remuda.execution.operators.spool import (
    Spool,
    SpoolScanOperator,
    StoreOperator,
    spools_of,
)
from remuda.execution.operators.supplied import SuppliedOperator
from remuda.execution.operators.unfold import BoundSetCall, GivenRows, UnfoldOperator
from remuda.execution.operators.union import UnionOperator
from remuda.execution.operators.values import ValuesOperator
from remuda.execution.operators.window import WindowOperator
from remuda.execution.parallel import Split, exchange_kinds, split_of
from remuda.execution.pool import Scheduler
from remuda.execution.profile import OperatorProfile
from remuda.execution.profiled import ProfiledOperator
from remuda.execution.root_sink import RootSink
from remuda.execution.spill import Usage
from remuda.limits import BATCH_ROWS
from remuda.plan.expression import (
    Call,
    ColumnId,
    ColumnRef,
    Expression,
    SortKey,
    columns_of,
)
from remuda.plan.functions.set_functions import GIVEN_ROWS
from remuda.plan.logical import JoinKind, OutputColumn
from remuda.plan.physical import (
    ExchangeKind,
    ExpandRows,
    FilterRows,
    Fragment,
    GroupLimitRows,
    HashAggregate,
    HashJoin,
    IndexScan,
    KeyLookup,
    LimitRows,
    LookupJoin,
    MergeJoin,
    NestedLoopJoin,
    Physical,
    PhysicalPlan,
    Placement,
    ProjectRows,
    Receive,
    Root,
    Send,
    SortRows,
    SpoolScan,
    Store,
    SuppliedScan,
    TableScan,
    UnfoldRows,
    UnionRows,
    ValuesScan,
    WindowRows,
    inputs_of,
)
from remuda.query.ids import Endpoint
from remuda.query.stream import Grant


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
    """Builds the operators of one instance, resolving column ids to positions. ``shared`` are the
    scans that it shares with the other instances of its fragment; the first one makes them."""

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
        self._shared = shared
        self._scans = 0
        self._partitions = context.partitions.get(fragment.id)
        if context.sites.instances(fragment.id) > 1 and shared is None:
            owned = context.sites.owned(fragment.id, me, context.owners)
            self._partitions = owned if self._partitions is None else owned & self._partitions
        self._spools = spools
        self._usages: dict[int, Usage] = {}
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
        self._compilers: dict[tuple[ColumnId, ...], Compiler] = {}
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
            memory=self._reserve(send) if merged and len(receivers) > 1 else None,
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
        if not inputs:
            return self._leaf(node)
        match node:
            case FilterRows():
                predicate = Predicate(node.condition, self._compiler(node.input.output))
                return FilterOperator(inputs[0], predicate)
            case ProjectRows():
                return self._project(node, inputs[0])
            case LookupJoin():
                return lookup_join(node, inputs[0], self._context, self._partitions)
            case HashJoin() | NestedLoopJoin():
                return self._join(node, inputs[0], inputs[1])
            case HashAggregate():
                compiler = self._compiler(node.input.output)
                return aggregate_operator(node, inputs[0], compiler, lambda: self._reserve(node))
            case ExpandRows() | UnfoldRows() | GroupLimitRows():
                return self._repeat(node, inputs[0])
            case WindowRows():
                return self._window(node, inputs[0])
            case SortRows() | LimitRows():
                return self._arrange(node, inputs[0])
            case UnionRows():
                return UnionOperator(inputs)
            case _:
                return self._end(node, inputs[0])

    def _arrange(self, node: SortRows | LimitRows, source: Operator) -> Operator:
        if isinstance(node, SortRows):
            return self._sort(node, source)
        limit = self._row_count(node.limit, "LIMIT")
        return LimitOperator(source, limit, self._row_count(node.offset, "OFFSET") or 0)

    def _join(self, node: HashJoin | NestedLoopJoin, left: Operator, right: Operator) -> Operator:
        if isinstance(node, MergeJoin):
            return merge_join(node, left, right, self._context.parameters, self._reserve(node))
        if isinstance(node, HashJoin):
            return self._hash_join(node, left, right)
        return self._nested_loop_join(node, left, right)

    def _leaf(self, node: Physical) -> Operator:
        match node:
            case IndexScan():
                return IndexScanOperator(node, self._context, self._partitions)
            case TableScan():
                return self._table_scan(node)
            case KeyLookup():
                return KeyLookupOperator(node, self._context, self._partitions)
            case ValuesScan():
                return ValuesOperator(node)
            case SpoolScan():
                self._read_spools.append(self._spools[node.spool])
                return SpoolScanOperator(self._spools[node.spool], node.positions)
            case SuppliedScan():
                return SuppliedOperator(node, self._context)
            case Receive():
                return self._receive(node)
            case _:
                raise InternalError(f"{type(node).__name__} has no operator")

    def _table_scan(self, node: TableScan) -> Operator:
        shared = self._shared
        if shared is None or node.traits.distribution.placement is Placement.REPLICATED:
            return TableScanOperator(node, self._context, self._partitions)
        if self._scans == len(shared):
            shared.append(SharedScan())
        self._scans += 1
        return TableScanOperator(node, self._context, self._partitions, shared[self._scans - 1])

    def _end(self, node: Physical, source: Operator) -> Operator:
        """The root of a fragment."""
        match node:
            case Send():
                return self._send(node, source)
            case Store():
                return StoreOperator(source, self._spools[node.spool])
            case Root():
                return self._root_operator(node, source)
            case _:
                raise InternalError(f"{type(node).__name__} has no operator")

    def _compiler(self, *outputs: Sequence[OutputColumn]) -> Compiler:
        columns = tuple(column.id for output in outputs for column in output)
        known = self._compilers.get(columns)
        if known is None:
            positions = {identity: place for place, identity in enumerate(columns)}
            known = self._compilers[columns] = Compiler(positions, self._context.parameters)
        return known

    def _reserve(self, node: Physical) -> Reservation:
        instances = self._context.sites.instances(self._fragment.id)
        return Reservation(self._context.memory, type(node).__name__, self._usage(node), instances)

    def _usage(self, node: Physical) -> Usage:
        """What the reservations of the node's operator come to together."""
        if isinstance(node, Store):
            return self._spools[node.spool].usage
        known = self._usages.get(id(node))
        if known is None:
            known = self._usages[id(node)] = Usage()
        return known

    def _row_count(self, expression: Expression | None, clause: str) -> int | None:
        if expression is None:
            return None
        value = evaluate_constant(expression, self._context.parameters)
        if value is None:
            return None
        assert isinstance(value, int | float)
        count = int(value)
        if expression.type.kind is Kind.DECIMAL:
            count //= 10 ** (expression.type.scale or 0)
        if count < 0:
            kind = InvalidOffset if clause == "OFFSET" else InvalidRowCount
            raise kind(f"{clause} must not be negative")
        return count

    def _project(self, node: ProjectRows, source: Operator) -> Operator:
        compiler = self._compiler(node.input.output)
        places = places_of(node.input.output)
        columns: list[int | Callable[[Batch], pa.Array]] = [
            places[expression.column]
            if isinstance(expression, ColumnRef)
            else compiler.column(expression)
            for expression in node.expressions
        ]
        return ProjectOperator(source, columns)

    def _join_sides(
        self, node: HashJoin | NestedLoopJoin, condition: Expression | None
    ) -> tuple[list[int], list[OutputColumn], list[int]]:
        """(right positions to keep, those columns, output positions in left + kept)."""
        left, right = node.left.output, node.right.output
        used = columns_of(condition) if condition is not None else frozenset()
        if node.kind not in LEFT_ONLY:
            used |= {column.id for column in node.output}
        kept = [place for place, column in enumerate(right) if column.id in used]
        columns = [right[place] for place in kept]
        places = places_of([*left, *columns])
        output = node.output[:-1] if node.kind is JoinKind.MARK else node.output
        return kept, columns, [places[column.id] for column in output]

    def _unknown(
        self,
        node: HashJoin | NestedLoopJoin,
        condition: Expression | None,
        columns: Sequence[OutputColumn],
    ) -> Predicate | None:
        """For MARK joins: where ``condition`` is NULL."""
        if node.kind is not JoinKind.MARK or condition is None:
            return None
        test = Call(BOOLEAN, "is_null", (condition,))
        return Predicate(test, self._compiler(node.left.output, columns))

    def _hash_join(self, node: HashJoin, left: Operator, right: Operator) -> Operator:
        kept, columns, output = self._join_sides(node, node.residual)
        left_places, right_places = places_of(node.left.output), places_of(node.right.output)
        left_keys = [left_places[key] for key in node.left_keys]
        right_keys = [right_places[key] for key in node.right_keys]
        left_types = [column.type for column in node.left.output]
        right_types = [column.type for column in node.right.output]
        key_types = [right_types[key] for key in right_keys]
        residual = None
        if node.residual is not None:
            residual = Predicate(node.residual, self._compiler(node.left.output, columns))
        unknown = self._unknown(node, node.residual, columns)

        nulls = RightNulls() if node.null_aware else None
        fixed_right = is_fixed(node.right, self._context.rounds)

        def join(left: Operator, right: Operator) -> Operator:
            return HashJoinOperator(
                kind=node.kind,
                left=left,
                right=right,
                left_keys=left_keys,
                right_keys=right_keys,
                key_types=key_types,
                left_types=left_types,
                right_kept=kept,
                right_types=[column.type for column in columns],
                residual=residual,
                output=output,
                memory=self._reserve(node),
                unknown=unknown,
                null_aware=node.null_aware,
                nulls=nulls,
                fixed_right=fixed_right,
            )

        if self._context.memory.spill is None:
            return join(left, right)
        return PartitionedJoinOperator(
            join,
            JoinSide(left, left_types, left_keys),
            JoinSide(right, right_types, right_keys),
            key_types=key_types,
            memory=self._reserve(node),
            nulls=nulls,
            fixed_right=fixed_right,
        )

    def _nested_loop_join(self, node: NestedLoopJoin, left: Operator, right: Operator) -> Operator:
        kept, columns, output = self._join_sides(node, node.condition)
        condition = None
        if node.condition is not None:
            condition = Predicate(node.condition, self._compiler(node.left.output, columns))
        return NestedLoopJoinOperator(
            kind=node.kind,
            left=left,
            right=right,
            left_types=[column.type for column in node.left.output],
            right_kept=kept,
            right_types=[column.type for column in columns],
            condition=condition,
            output=output,
            memory=self._reserve(node),
            unknown=self._unknown(node, node.condition, columns),
            fixed_right=is_fixed(node.right, self._context.rounds),
        )

    def _repeat(self, node: ExpandRows | UnfoldRows | GroupLimitRows, source: Operator) -> Operator:
        """Rows as they are: several times, or only some of them."""
        if isinstance(node, ExpandRows):
            return expand_operator(node, source)
        if isinstance(node, GroupLimitRows):
            memory = self._reserve(node)
            return group_limit_operator(node, source, self._context.parameters, memory)
        return self._unfold(node, source)

    def _unfold(self, node: UnfoldRows, source: Operator) -> Operator:
        places = places_of(node.input.output)
        compiler = self._compiler(node.input.output)
        return UnfoldOperator(
            source,
            kept=[places[column.id] for column in node.output if column.id in places],
            calls=[
                GivenRows(call, (), self._context.parameters)
                if call.function == GIVEN_ROWS
                else BoundSetCall(call, [compiler.column(part) for part in call.arguments])
                for call in node.calls
            ],
            ordinality=node.ordinality,
            outer=node.outer,
            batch_rows=self._context.batch_rows or BATCH_ROWS,
        )

    def _window(self, node: WindowRows, source: Operator) -> Operator:
        partition = [SortKey(column) for column in node.partition]
        columns = node.input.output
        return WindowOperator(
            source,
            types=[column.type for column in columns],
            partition=bound_keys(partition, columns),
            order=bound_keys(node.order, columns),
            calls=bound_window_calls(node, self._compiler(columns), self._context.parameters),
            memory=self._reserve(node),
        )

    def _sort(self, node: SortRows, source: Operator) -> Operator:
        return SortOperator(
            source,
            bound_keys(node.keys, node.input.output),
            [column.type for column in node.input.output],
            self._row_count(node.limit, "LIMIT"),
            self._reserve(node),
        )

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
            memory=self._reserve(node),
        )

    def _root_operator(self, node: Root, source: Operator) -> Operator:
        if self._sink is None:
            raise InternalError("the root fragment needs a sink")
        source = rounds_operator(node, source, self._context, self._reserve(node))
        return RootOperator(source, self._sink, form_of(node.output))
