"""Ways to break how members leave (``sim_rules_leaving``)."""

from __future__ import annotations

import asyncio
import sys

from sim_mutations import Patch, mutation

import remuda.cluster.leaving as leaving_module
from remuda.execution.memory import Reservation
from remuda.member.base.leavers import Leavers
from remuda.member.commits.jobs import Jobs
from remuda.member.membership.membership import Membership
from remuda.member.open_work import OpenWork
from remuda.member.sessions import replanning as planned_again
from remuda.member.state.departure import Departure
from remuda.member.statements import write_statements
from remuda.query.registry import QueryRegistry
from remuda.rpc.transport import Channel


def nothing(*_: object, **__: object) -> None:
    """Does nothing."""


@mutation
def open_work_is_not_looked_at(patch: Patch) -> str:
    patch.setattr(OpenWork, "counts", lambda _: {})
    return "who_leaves_waits_for_what_is_open"


@mutation
def queries_need_members_that_are_done(patch: Patch) -> str:
    patch.setattr(QueryRegistry, "_done", lambda *_: False)
    return "a_slow_reader_elsewhere_survives_a_leave"


@mutation
def leaving_members_begin_new_work(patch: Patch) -> str:
    patch.setattr(Departure, "require_staying", nothing)
    return "who_leaves_begins_nothing_new"


@mutation
def open_work_is_not_ended(patch: Patch) -> str:
    patch.setattr(OpenWork, "end", nothing)
    return "what_is_open_at_the_deadline_is_rolled_back"


@mutation
def nobody_learns_who_leaves(patch: Patch) -> str:
    patch.setattr(Membership, "announce_leave", nothing)
    return "two_that_leave_at_once_lose_nothing"


@mutation
def other_leavers_are_not_waited_for(patch: Patch) -> str:
    patch.setattr(Leavers, "at_work", property(lambda _: False))
    return "members_that_all_leave_wait_for_open_work_of_each_other"


@mutation
def clients_are_told_nothing(patch: Patch) -> str:
    patch.setattr(Channel, "part", nothing)
    return "a_client_learns_that_its_request_was_not_received"


@mutation
def results_on_their_way_are_forgotten(patch: Patch) -> str:
    patch.setattr(Channel, "awaits", False)
    return "who_has_not_acknowledged_a_result_hears_no_goodbye"


@mutation
def goodbyes_are_said_to_busy_clients(patch: Patch) -> str:
    patch.setattr(OpenWork, "busy", lambda _: set())
    return "whose_statement_runs_to_the_end_hears_no_goodbye"


@mutation
def a_member_goes_without_the_view(patch: Patch) -> str:
    patch.setattr(leaving_module, "DROPPED_AT_LAST", leaving_module.DROPPED_WITHIN)
    return "of_two_members_none_goes_before_the_view_without_it"


@mutation
def a_leave_waits_for_no_heartbeat(patch: Patch) -> str:
    patch.setattr(Membership, "heard_by_all", True)
    return "nobody_waits_for_the_lease_of_a_member_that_has_left"


@mutation
def writes_that_lose_a_member_fail(patch: Patch) -> str:
    patch.setattr(planned_again, "_wrote_nothing", lambda *_: False)
    return "a_write_that_loses_a_participant_runs_again"


@mutation
def jobs_are_left_to_themselves(patch: Patch) -> str:
    patch.setattr(Jobs, "end_open", nothing)
    return "a_job_whose_coordinator_leaves_is_rolled_back"


@mutation
def a_cancelled_statement_keeps_its_memory(patch: Patch) -> str:
    class Kept(Reservation):
        def clear(self) -> None:
            if not isinstance(sys.exception(), asyncio.CancelledError):
                super().clear()

    patch.setattr(write_statements, "Reservation", Kept)
    return "a_member_that_stops_keeps_nothing_of_its_statements"
