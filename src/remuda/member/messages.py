"""The messages that a member serves, each with the room that serves it."""

from __future__ import annotations

from functools import partial

from remuda.member.base.core import Call
from remuda.member.base.routes import CallHandler, RequestHandler
from remuda.member.commits.writes import on_stage_rows
from remuda.member.drill.metadata import DrillMetadata
from remuda.member.drill.server import on_server_meta
from remuda.member.rooms import Rooms
from remuda.member.statements.catalog_requests import CatalogRequests
from remuda.rpc.messages import data_pb2, user_pb2
from remuda.rpc.messages.control_pb2 import RpcType as ControlType
from remuda.rpc.messages.user_pb2 import RpcType as UserType


def membership_messages(rooms: Rooms) -> dict[int, RequestHandler]:
    """Of the control channel: those that form a cluster, served before the first view."""
    return {
        ControlType.JOIN: rooms.membership.joining.on_join,
        ControlType.MEET: rooms.membership.joining.on_meet,
        ControlType.VIEW_INSTALL: rooms.membership.joining.on_view_install,
        ControlType.RECOVER: rooms.membership.forming.on_recover,
        ControlType.HEARTBEAT: rooms.membership.on_heartbeat,
        ControlType.HEARTBEAT_ANSWER: rooms.membership.on_heartbeat_answer,
        ControlType.AGREE: rooms.membership.on_agree,
        ControlType.WISH: rooms.membership.on_wish,
        ControlType.CLOCK: rooms.membership.on_clock,
        ControlType.CATALOG_CHANGE: rooms.catalog.on_change,
        ControlType.CATALOG_INSTALL: rooms.catalog.on_install,
    }


def control_messages(rooms: Rooms, forward: RequestHandler) -> dict[int, RequestHandler]:
    """The others of the control channel; ``forward`` serves requests that members pass on."""
    return {
        ControlType.QUERY_START: rooms.queries.on_start,
        ControlType.QUERY_CANCEL: rooms.queries.on_cancel,
        ControlType.QUERY_CHECK: rooms.queries.on_check,
        ControlType.QUERY_CHECK_RESPONSE: rooms.queries.on_check_response,
        ControlType.FRAGMENT_DONE: rooms.queries.on_fragment_done,
        **rooms.statements.reads.routes(),
        **rooms.indexes.routes,
        ControlType.MAP_STATISTICS: rooms.statistics.on_request,
        ControlType.SYSTEM_STATE: rooms.system.on_request,
        **rooms.profiles.routes(),
        ControlType.COMMIT_PREPARE: rooms.commits.on_prepare,
        ControlType.COMMIT_KEEP: rooms.commits.on_keep,
        **rooms.commits.checks.routes(),
        ControlType.COPY_BEGIN: rooms.receiving.on_begin,
        ControlType.COPY_ROWS: rooms.receiving.on_rows,
        ControlType.COPY_COMPARE: rooms.receiving.on_compare,
        ControlType.COPY_REPLICATED: rooms.giving.on_replicated,
        ControlType.DONATE: rooms.donations.on_ask,
        ControlType.DONATE_COPIES: rooms.donations.on_copies,
        ControlType.DONATE_JOB: rooms.donations.on_job,
        ControlType.COMMIT_FINISH: rooms.commits.on_finish,
        **rooms.commits.turns.routes(),
        ControlType.COMMIT_STATUS: rooms.commits.on_status,
        ControlType.JOB_TOUCH: rooms.jobs.on_touch,
        ControlType.STAGE_ROWS: partial(
            on_stage_rows, rooms.core, rooms.commits, rooms.job_rows.on_rows
        ),
        ControlType.MOVES_PAUSE: rooms.job_rows.pauses.on_pause,
        ControlType.TRANSACTION_PIN: rooms.open.pins.on_pin,
        ControlType.PARTS: rooms.transactions.shell.on_messages,
        **rooms.transactions.locks.routes(),
        **rooms.snapshots.routes(),
        **rooms.activity.routes(),
        **rooms.postgres.routes(),
        **rooms.statements.by_key.routes(),
        **rooms.statements.sequences.routes(),
        ControlType.FORWARD: forward,
    }


def data_messages(rooms: Rooms) -> dict[int, RequestHandler]:
    """Rows between the fragments of queries."""
    return {
        data_pb2.RpcType.REQ_RECORD_BATCH: rooms.queries.on_batch,
        data_pb2.RpcType.DATA_ACK_WITH_CREDIT: rooms.queries.on_flow_control,
    }


def user_requests(rooms: Rooms) -> dict[int, RequestHandler]:
    """Requests of clients that need the connection of the client."""
    return {
        UserType.RUN_QUERY: rooms.run_queries.on_run_query,
        **rooms.open.requests(),
        **rooms.subscriptions.routes(),
        **rooms.statements.spark.services.routes(),
    }


def user_calls(rooms: Rooms) -> dict[int, CallHandler]:
    """Requests of clients that any member may pass on to another one."""
    return {
        UserType.CANCEL_QUERY: rooms.statements.on_cancel,
        UserType.CREATE_PREPARED_STATEMENT: lambda call: rooms.core.serve(
            call, rooms.preparing.on_prepare(call)
        ),
        UserType.RESUME_PAUSED_QUERY: rooms.statements.on_resume,
        UserType.GET_QUERY_PLAN_FRAGMENTS: lambda call: rooms.core.serve(
            call, rooms.drill_plans.on_fragments(call)
        ),
        UserType.GET_SERVER_META: on_server_meta,
        **DrillMetadata(rooms.core).routes(),
        **CatalogRequests(rooms.core, rooms.catalog, rooms.statistics).routes(),
        UserType.MAP_GET: rooms.maps.on_get,
        UserType.MAP_PUT: rooms.maps.on_put,
        UserType.MAP_REMOVE: rooms.maps.on_remove,
        UserType.MAP_SIZE: rooms.maps.on_size,
        UserType.MAP_PUT_BATCH: rooms.maps.on_put_batch,
        **rooms.changes.routes(),
        **rooms.expiry.routes(),
        **rooms.jobs.routes(),
        **rooms.read_leases.routes(),
        UserType.MEMBER_STATE: partial(_on_member_state, rooms),
    }


def _on_member_state(rooms: Rooms, call: Call) -> None:
    core = rooms.core
    state = user_pb2.MemberState(member=core.number, context=core.context())
    for name, value in sorted(rooms.gauges().items()):
        state.gauges.add(name=name, value=value)
    call.reply(UserType.MEMBER_STATE, state)
