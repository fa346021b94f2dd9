"""The start of a query: known to the initiator, sent to the participants as QUERY_START."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableSequence
from dataclasses import dataclass, field

from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import View
from remuda.errors import ProtocolError
from remuda.execution.context import SuppliedRows
from remuda.execution.instances import Sites
from remuda.execution.overlay import MapWrites
from remuda.execution.root_sink import RootSink
from remuda.execution.rounds import Rounds
from remuda.member.queries.overlays import encode_writes
from remuda.member.queries.query_state import Initiated
from remuda.plan.codec import decode_plan, encode_plan
from remuda.plan.physical import Fragment, PhysicalPlan, Pruning, Site
from remuda.query.ids import QueryId
from remuda.query.wire import encode_query_id
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2, control_pb2

DECODED_PLANS = 1000

Route = Callable[[Fragment, Pruning], frozenset[int] | None]
"""The partitions of pruning keys; None for so many that they are not worth being told apart."""


@dataclass(frozen=True)
class QueryStart:
    """One execution of a plan. ``partitions[f]`` limits the scans of fragment ``f``."""

    plan: PhysicalPlan
    parameters: tuple[PhysicalValue, ...]
    read_timestamp: int
    sites: Mapping[int, tuple[int, ...]]
    partitions: Mapping[int, frozenset[int]] = field(default_factory=dict)
    instances: Mapping[int, int] = field(default_factory=dict)
    """How many instances of a fragment each of its members runs, where it is not one."""
    analyze: bool = False
    timeout: float | None = None
    sink: RootSink | None = field(default=None, compare=False)
    encoded: bytes = b""
    view: int = 0
    """The view that ``sites`` and ``partitions`` come from: it must be the same when it begins."""
    overlay: tuple[MapWrites, ...] = field(default=(), compare=False)
    """The uncommitted writes of its transaction."""
    supplied: Mapping[str, SuppliedRows] = field(default_factory=dict, compare=False)
    """The rows that the initiator has made of the relations that the plan reads besides maps."""
    rounds: Rounds | None = field(default=None, compare=False)
    """The plan is the step of a recursive query, and all rounds of it are to run here."""
    runs: MutableSequence[Initiated] | None = field(default=None, compare=False)
    """Told of the query when it begins, at the initiator."""

    @property
    def participants(self) -> tuple[int, ...]:
        return tuple(sorted({member for members in self.sites.values() for member in members}))

    @property
    def placed(self) -> Sites:
        return Sites(self.sites, self.instances)

    def fragments_of(self, member: int) -> tuple[int, ...]:
        return tuple(f for f, members in self.sites.items() if member in members)


@dataclass
class Placed:
    """Where the fragments of a plan run, and over which partitions if not all; ``whole``: some
    fragment runs over all of them."""

    sites: dict[int, tuple[int, ...]]
    partitions: dict[int, frozenset[int]]
    whole: bool = False


def place(plan: PhysicalPlan, view: View, initiator: int, route: Route) -> Placed:
    """A pruned fragment runs on the owners of its keys; when no key can match, the initiator alone
    finds that out. Sites may have NOBODY, for partitions that are lost."""
    placed = Placed({}, {})
    everyone = view.primaries or (initiator,)
    for fragment in plan.fragments:
        if fragment.site is Site.INITIATOR:
            placed.sites[fragment.id] = (initiator,)
        elif fragment.pruning is None:
            placed.sites[fragment.id] = everyone
            placed.whole = True
        else:
            partitions = route(fragment, fragment.pruning)
            if partitions is None:
                placed.sites[fragment.id] = everyone
                placed.whole = True
                continue
            owners = {view.owners[p] for p in partitions}
            placed.sites[fragment.id] = tuple(sorted(owners)) or (initiator,)
            placed.partitions[fragment.id] = partitions
    return placed


def place_here(plan: PhysicalPlan, initiator: int, partitions: frozenset[int] | None) -> Placed:
    """Everything on the initiator, over its own partitions or the given ones (Spark reads)."""
    limits = {} if partitions is None else {f.id: partitions for f in plan.fragments}
    return Placed({fragment.id: (initiator,) for fragment in plan.fragments}, limits)


def encode_start(
    query: QueryId, start: QueryStart, context: common_pb2.Context, catalog_version: int
) -> control_pb2.QueryStart:
    encoded = start.encoded or encode_plan(start.plan)
    message = control_pb2.QueryStart(
        context=context,
        query_id=encode_query_id(query),
        plan_digest=hashlib.sha256(encoded).digest(),
        plan=encoded,
        parameters=codec.encode_values(start.parameters),
        participants=start.participants,
        read_timestamp=start.read_timestamp,
        catalog_version=catalog_version,
        sites=[
            control_pb2.FragmentSites(
                fragment=fragment,
                members=members,
                limited=fragment in start.partitions,
                partitions=start.partitions.get(fragment, ()),
                instances=start.instances.get(fragment, 1),
            )
            for fragment, members in start.sites.items()
        ],
        analyze=start.analyze,
    )
    if start.timeout is not None:
        message.timeout = start.timeout
    encode_writes(message, start.overlay)
    return message


class StartDecoder:
    """Decodes QUERY_START; a plan seen before is not decoded again."""

    def __init__(self) -> None:
        self._plans: OrderedDict[bytes, PhysicalPlan] = OrderedDict()

    def decode(self, message: control_pb2.QueryStart) -> QueryStart:
        """Raises ProtocolError when the plan cannot be read."""
        plan = self._plans.get(message.plan_digest)
        if plan is None:
            plan = decode_plan(message.plan)
            self._plans[message.plan_digest] = plan
            if len(self._plans) > DECODED_PLANS:
                self._plans.popitem(last=False)
        else:
            self._plans.move_to_end(message.plan_digest)
        if {site.fragment for site in message.sites} != {f.id for f in plan.fragments}:
            raise ProtocolError("a query's start does not say where each of its fragments runs")
        return QueryStart(
            plan=plan,
            parameters=codec.decode_values(message.parameters),
            read_timestamp=message.read_timestamp,
            sites={site.fragment: tuple(site.members) for site in message.sites},
            partitions={
                site.fragment: frozenset(site.partitions) for site in message.sites if site.limited
            },
            instances={
                site.fragment: site.instances for site in message.sites if site.instances > 1
            },
            analyze=message.analyze,
            timeout=message.timeout if message.HasField("timeout") else None,
        )
