"""Ways to break how operators end work and drain members (``sim_rules_hands``)."""

from __future__ import annotations

import asyncio
from typing import Any

from sim_mutations import Patch, a_lost_initiator_is_waited_for, mutation

from remuda.cluster.draining import Drain
from remuda.member.sessions.client_table import ClientTable
from remuda.member.state import clients
from remuda.member.statements import control
from remuda.member.statements.control import Control
from remuda.member.transactions.key_locks import KeyLocks
from remuda.query import ending

MEMBERS = 3


def nothing(*_: object, **__: object) -> None:
    """Does nothing."""


@mutation
def a_cancel_is_answered_and_forgotten(patch: Patch) -> str:
    patch.setattr(Control, "_perform", nothing)
    return "a_statement_is_cancelled_from_another_member"


@mutation
def a_cancel_ends_the_statement_that_runs(patch: Patch) -> str:
    """As if the client was named, and not its statement."""

    def find(self: Any, _query: object) -> Any:
        running = ((c, s) for c in self._clients.values() for s in c.statements.values())
        return next(running, None)

    patch.setattr(ClientTable, "find", find)
    return "a_late_cancel_ends_no_later_statement"


@mutation
def a_cancel_ends_the_transaction_that_is_open(patch: Patch) -> str:
    def transaction(self: Any, _name: str) -> Any:
        return next(map(control._open, self._sessions), None)

    patch.setattr(Control, "transaction", transaction)
    return "a_late_cancel_ends_no_later_transaction"


@mutation
def numbers_of_connections_are_given_again_at_once(patch: Patch) -> str:
    original = clients.Pids.take

    def take(self: Any) -> int:
        self._last = 0
        return original(self)

    patch.setattr(clients.Pids, "take", take)
    return "a_late_signal_ends_no_later_connection"


@mutation
def a_cancel_waits_for_ever(patch: Patch) -> str:
    patch.setattr(control, "PATIENCE", 1000.0)
    return "a_lost_cancel_is_an_answer_for_its_asker"


@mutation
def work_is_ended_only_for_who_still_listens(patch: Patch) -> str:
    original = Control._on_end_work

    def later(self: Any, request: Any) -> None:
        def act() -> None:
            if len(self._core.live_members()) == MEMBERS:
                original(self, request)

        asyncio.get_running_loop().call_later(0.5, act)

    patch.setattr(Control, "_on_end_work", later)
    return "a_cancel_survives_the_crash_of_its_asker"


@mutation
def fragments_of_a_silent_initiator_go_on(patch: Patch) -> str:
    a_lost_initiator_is_waited_for(patch)
    return "a_cancel_of_a_crashed_members_statement_ends"


@mutation
def statements_are_cancelled_while_they_commit(patch: Patch) -> str:
    patch.setattr(ending.RunningStatement, "commits", False)
    return "a_statement_that_commits_is_not_cancelled"


@mutation
def transactions_are_cancelled_while_they_commit(patch: Patch) -> str:
    patch.setattr(ending.RunningTransaction, "commits", False)
    return "a_transaction_that_commits_is_not_cancelled"


@mutation
def cancelled_transactions_keep_their_place(patch: Patch) -> str:
    """The primary of the key is told when a transaction gives up locks, not that it waits."""
    original = KeyLocks.release

    def release(self: Any, owner: Any) -> None:
        owning = self._owning.get(owner)
        if owning is not None and owning.waiting is not None:
            owning.members.discard(owning.waits_at)
        original(self, owner)

    patch.setattr(KeyLocks, "release", release)
    return "a_transaction_that_waits_for_a_lock_is_cancelled"


@mutation
def members_are_drained_as_often_as_it_is_said(patch: Patch) -> str:
    patch.setattr(control, "decided", lambda *_, **__: Drain.ORDER)
    return "a_member_is_drained_once_from_another_one"


@mutation
def nobody_waits_to_hear_that_a_member_leaves(patch: Patch) -> str:
    async def heard(*_: object) -> None:
        """At once."""

    patch.setattr(Control, "_heard_leaving", heard)
    return "the_last_that_stays_is_not_drained"


@mutation
def orders_under_way_do_not_count(patch: Patch) -> str:
    original = control.decided
    patch.setattr(control, "decided", lambda *a, **_: original(*a, ordering=False))
    return "two_that_drain_each_other_do_not_both_leave"
