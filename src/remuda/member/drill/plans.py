"""GET_QUERY_PLAN_FRAGMENTS: the fragments that a query would run, and where."""

from __future__ import annotations

import json

from remuda.datatypes.view import MemberInfo
from remuda.errors import NotSupported, RemudaError
from remuda.member.base.core import Call, Core
from remuda.member.base.wing import Routes, Wing
from remuda.member.queries.page_forms import is_stock
from remuda.member.sessions.statement import readable
from remuda.member.statements.plans import Plans
from remuda.plan.explain.json import explain_json
from remuda.plan.physical import Physical, PhysicalPlan, Receive, Site, inputs_of
from remuda.query.ids import QueryId, new_query_id
from remuda.query.wire import encode_query_id
from remuda.rpc.drill_errors import encode_drill_error
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_metadata_pb2 import (
    FragmentHandle,
    GetQueryPlanFragments,
    PlanFragment,
    QueryPlanFragments,
)
from remuda.rpc.messages.user_pb2 import DrillbitEndpoint, RpcType
from remuda.rpc.transport import Request
from remuda.session.client_session import NO_SESSION
from remuda.session.dialect import STOCK_SESSION, postgres_text
from remuda.session.planning import PlannedChange, PlannedInsert, PlannedQuery
from remuda.sql.drill.schema import DRILL_RELEASE

State = user_pb2.QueryResult.QueryState


class DrillPlans(Wing):
    def __init__(self, core: Core, plans: Plans) -> None:
        self._core = core
        self._plans = plans

    def routes(self) -> Routes:
        def served(call: Call) -> None:
            self._core.serve(call, self.on_fragments(call))

        return Routes(calls={RpcType.GET_QUERY_PLAN_FRAGMENTS: served})

    async def on_fragments(self, call: Call) -> None:
        """Nothing runs. A fragment stands once for each member that would run it: partition
        pruning by values of parameters is not known here."""
        request = GetQueryPlanFragments.FromString(call.pbody)
        world = self._core.world
        query = new_query_id(self._core.number, world.clock.wall_micros(), world.chance.bits(48))
        response = QueryPlanFragments(status=State.COMPLETED, query_id=encode_query_id(query))
        try:
            self._core.require_serving()
            stock = isinstance(call, Request) and is_stock(call.channel)
            plan = await self._planned(request, call.user, stock=stock)
            response.fragments.extend(self._fragments(plan, query))
        except RemudaError as error:
            response.status = State.FAILED
            response.error.CopyFrom(encode_drill_error(error, str(query)))
        call.reply(RpcType.QUERY_PLAN_FRAGMENTS, response)

    async def _planned(
        self, request: GetQueryPlanFragments, user: str, *, stock: bool
    ) -> PhysicalPlan:
        if request.HasField("type") and request.type != user_pb2.SQL:
            kind = user_pb2.QueryType.Name(request.type)
            raise NotSupported(f"plans of type {kind} are not supported", hint="Send SQL.")
        session = STOCK_SESSION if stock else NO_SESSION
        seen = self._core.access.catalog(user)
        text = postgres_text(readable(request.query), session, seen)
        found = await self._plans.plan(text, None, local=False, user=user)
        self._core.access.check(user, found)
        if isinstance(found, PlannedInsert | PlannedChange):
            found = found.source
        if not isinstance(found, PlannedQuery):
            raise NotSupported(
                "the statement has no plan", hint="Queries and changes of rows have one."
            )
        return found.plan

    def _fragments(self, plan: PhysicalPlan, query: QueryId) -> list[PlanFragment]:
        texts = {
            made["Fragment"]: json.dumps(made, ensure_ascii=False)
            for made in explain_json(plan)["Fragments"]
        }
        foreman = endpoint(self._core.info)
        return [
            PlanFragment(
                handle=FragmentHandle(
                    query_id=encode_query_id(query),
                    major_fragment_id=fragment.id,
                    minor_fragment_id=minor,
                ),
                fragment_json=texts[fragment.id],
                leaf_fragment=not _receives(fragment.root),
                assignment=endpoint(member),
                foreman=foreman,
            )
            for fragment in plan.fragments
            for minor, member in enumerate(self._sites(fragment.site))
        ]

    def _sites(self, site: Site) -> list[MemberInfo]:
        core = self._core
        return [core.info] if site is Site.INITIATOR else list(core.view.members)


def _receives(node: Physical) -> bool:
    return isinstance(node, Receive) or any(_receives(child) for child in inputs_of(node))


def endpoint(member: MemberInfo) -> DrillbitEndpoint:
    return DrillbitEndpoint(
        address=member.host,
        user_port=member.user_port,
        control_port=member.control_port,
        data_port=member.data_port,
        version=DRILL_RELEASE,
    )
