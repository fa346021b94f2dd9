"""Ways to break the rules: each patches the code and names the scenario that must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import remuda.member.base.peers as peers_module
import remuda.member.membership.catalog_service as catalog_module
import remuda.member.membership.catalog_votes as votes_module
import remuda.member.sessions.replanning as planned_again_module
import remuda.member.statements.statements as statements_module
import remuda.query.stream as stream_module
from remuda.cluster.agreement import Agreement
from remuda.cluster.decree import Proposal
from remuda.cluster.membership import Times
from remuda.datatypes.view import View
from remuda.execution.exchange.inbox import Inbox
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.commits.participants import CommitParticipants
from remuda.member.leaving import Leaving
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.clock_rounds import ClockRounds
from remuda.member.membership.membership import Membership
from remuda.member.membership.takeover import Takeover
from remuda.member.queries.fragments import LocalSources
from remuda.member.queries.queries import Queries
from remuda.member.state.readiness import Readiness
from remuda.query import effects as do
from remuda.query.registry import QueryRegistry
from remuda.query.state import Phase, QueryState
from remuda.query.stream import ReceiverStream, SenderStream
from remuda.rpc.connection import ChannelKind

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], str]
MUTATIONS: list[Mutation] = []


def mutation(change: Mutation) -> Mutation:
    MUTATIONS.append(change)
    return change


def nothing(*_: Any, **__: Any) -> Any:
    return []


# ---- start and early messages ----


@mutation
def any_view_may_start(patch: Patch) -> str:
    original = QueryRegistry._start_received

    def started(self, now, event):
        self.view = event.view
        return original(self, now, event)

    patch.setattr(QueryRegistry, "_start_received", started)
    return "a_start_from_another_view_is_refused"


@mutation
def suspicions_are_not_waited_for(patch: Patch) -> str:
    patch.setattr(planned_again_module, "SUSPICION_PATIENCE", 0.0)
    return "statements_wait_until_a_crashed_member_is_dropped"


@mutation
def everybody_is_admitted(patch: Patch) -> str:
    patch.setattr(QueryRegistry, "_refusal", lambda self, event: None)
    return "admission_comes_before_any_start"


@mutation
def senders_share_a_stream(patch: Patch) -> str:
    original = Inbox.on_encoded

    def first(self, sender, *arguments):
        return original(self, next(iter(self._streams)), *arguments)

    patch.setattr(Inbox, "on_encoded", first)
    return "a_stream_belongs_to_its_sender"


@mutation
def early_batches_are_dropped(patch: Patch) -> str:
    original = QueryRegistry._data

    def data(self, now, query, delivery, size, what):
        state = self._queries.get(query)
        if state is None or state.phase is Phase.EARLY:
            return [do.Discard(query, what, size)]
        return original(self, now, query, delivery, size, what)

    patch.setattr(QueryRegistry, "_data", data)
    return "batches_before_the_start_are_kept"


@mutation
def early_batches_are_kept_without_bound(patch: Patch) -> str:
    original = QueryRegistry._data

    def data(self, *arguments):
        self._early_size_max = 10**9
        return original(self, *arguments)

    patch.setattr(QueryRegistry, "_data", data)
    return "early_batches_are_bounded"


@mutation
def early_batches_of_own_queries_are_kept(patch: Patch) -> str:
    original = QueryRegistry._data

    def data(self, now, query, delivery, size, what):
        if query.member == self.member and query not in self._queries:
            state = self._queries[query] = QueryState(query, Phase.EARLY, moved=now, asked=now)
            state.early.append(delivery)
            return []
        return original(self, now, query, delivery, size, what)

    patch.setattr(QueryRegistry, "_data", data)
    return "a_batch_of_an_own_forgotten_query_is_dropped"


# ---- cancel ----


@mutation
def an_early_cancel_leaves_no_surrogate(patch: Patch) -> str:
    original = QueryRegistry._cancel_received

    def cancelled(self, now, event):
        state = self._queries.get(event.query)
        if event.query.member != self.member:
            out = [] if state is None else [*self._stop(state, event.error)]
            if state is not None:
                out += self._forget(state)
            self._ended.pop(event.query, None)
            return out
        return original(self, now, event)

    patch.setattr(QueryRegistry, "_cancel_received", cancelled)
    return "a_cancel_before_its_start_leaves_a_surrogate"


@mutation
def a_broadcast_names_the_initiator(patch: Patch) -> str:
    original = QueryRegistry._fail_everywhere

    def fail(self, state, cancel_initiator, error):
        return original(self, state, self.member, error)

    patch.setattr(QueryRegistry, "_fail_everywhere", fail)
    return "a_cancel_keeps_its_cause"


@mutation
def everyone_broadcasts_a_cancel(patch: Patch) -> str:
    original = QueryRegistry._cancel_here

    def cancel(self, now, state, error):
        out = original(self, now, state, error)
        for member in self.members - {self.member, state.id.member}:
            out.append(do.SendCancel(member, state.id, self.member, error))
        return out

    patch.setattr(QueryRegistry, "_cancel_here", cancel)
    return "a_cancel_takes_two_steps"


@mutation
def a_lost_initiator_is_waited_for(patch: Patch) -> str:
    original = QueryRegistry._without

    def without(self, member, error):
        kept = {q: s for q, s in self._queries.items() if q.member == member}
        for query in kept:
            del self._queries[query]
        out = original(self, member, error)
        self._queries.update(kept)
        return out

    patch.setattr(QueryRegistry, "_without", without)
    return "without_initiator_participants_end_by_themselves"


# ---- check ----


@mutation
def an_initiator_never_asks(patch: Patch) -> str:
    original = QueryRegistry._suspect

    def suspect(self, state, suspects):
        return [] if state.id.member == self.member else original(self, state, suspects)

    patch.setattr(QueryRegistry, "_suspect", suspect)
    return "a_lost_start_is_noticed"


@mutation
def only_what_runs_is_asked_about(patch: Patch) -> str:
    def length(self):
        return sum(state.phase is Phase.RUNNING for state in self._queries.values())

    patch.setattr(QueryRegistry, "__len__", length)
    patch.setattr("sim_rules.Play.idle", lambda play, number: not play.registry(number)._queries)
    return "what_never_started_is_asked_about"


@mutation
def nobody_asks(patch: Patch) -> str:
    patch.setattr(QueryRegistry, "_suspect", nothing)
    return "a_lost_cancel_is_healed"


@mutation
def gaps_are_borne(patch: Patch) -> str:
    patch.setattr(ReceiverStream, "lost", lambda self, now: False)
    return "a_lost_batch_fails_its_query"


@mutation
def nobody_tells_who_has_sent_everything(patch: Patch) -> str:
    patch.setattr(QueryRegistry, "_ended_instances", nothing)
    return "a_lost_last_batch_between_participants_is_noticed"


@mutation
def grants_count_as_progress(patch: Patch) -> str:
    """Two members of a dead query keep it alive by repeating grants to each other."""
    original = QueryRegistry._flow_control_received

    def flow(self, now, event):
        state = self._queries.get(event.query)
        if state is not None:
            state.moved = now
        return original(self, now, event)

    patch.setattr(QueryRegistry, "_flow_control_received", flow)
    return "two_members_that_wait_for_each_other_are_noticed"


# ---- streams ----


@mutation
def repeated_batches_are_counted(patch: Patch) -> str:
    original = ReceiverStream.receive

    def receive(self, ordinal, size, last, payload, now):
        seen = ordinal < self._next or ordinal in self._above
        return [payload] if seen else original(self, ordinal, size, last, payload, now)

    patch.setattr(ReceiverStream, "receive", receive)
    return "repeated_batches_count_once"


@mutation
def a_stream_ends_by_its_flag(patch: Patch) -> str:
    ended = property(lambda self: self._last_ordinal is not None)
    patch.setattr(ReceiverStream, "ended", ended)
    return "a_stream_ends_by_count"


@mutation
def no_stream_is_ordered(patch: Patch) -> str:
    original = ReceiverStream.__init__

    def made(self, window, ordered, *arguments):
        original(self, window, False, *arguments)

    patch.setattr(ReceiverStream, "__init__", made)
    return "an_ordered_stream_is_handed_out_in_order"


# ---- credit ----


@mutation
def grants_add_up(patch: Patch) -> str:
    original = SenderStream.on_flow_control

    def flow(self, granted_bytes, *arguments, **options):
        more = self.granted_bytes + max(0, granted_bytes - self.window)
        return original(self, more, *arguments, **options)

    patch.setattr(SenderStream, "on_flow_control", flow)
    return "a_repeated_grant_is_harmless"


@mutation
def credit_is_ignored(patch: Patch) -> str:
    patch.setattr(SenderStream, "may_send", lambda self, size: not self.ended and not self.failed)
    return "a_slow_client_keeps_senders_within_their_windows"


@mutation
def a_grant_is_sent_once(patch: Patch) -> str:
    patch.setattr(stream_module, "QUERY_SUSPECT_AFTER", 10**9)
    return "a_lost_grant_is_repeated"


@mutation
def batches_expect_an_answer(patch: Patch) -> str:
    def send(self, number, rpc_type, body, dbody, failed):
        if number not in self._core.lost and not self._core.stopping:
            self.peer(number, ChannelKind.DATA).use(
                lambda channel: channel.request_nowait(rpc_type, body, dbody, nothing), failed
            )

    patch.setattr(Peers, "send_data", send)
    return "batches_are_not_answered"


@mutation
def a_limit_is_kept_secret(patch: Patch) -> str:
    def finish(self, now):
        self.finished = True
        self._release()

    patch.setattr(ReceiverStream, "finish", finish)
    return "senders_stop_when_no_more_rows_are_needed"


@mutation
def grants_wait_for_the_whole_window(patch: Patch) -> str:
    original = ReceiverStream.grant

    def grant(self, now):
        freed = self.consumed_bytes + self.window - self.granted_bytes
        return None if freed < self.window else original(self, now)

    patch.setattr(ReceiverStream, "grant", grant)
    return "small_windows_do_not_stall_an_ordered_merge"


# ---- connections, views, reads, commits ----


@mutation
def a_broken_connection_is_ignored(patch: Patch) -> str:
    patch.setattr(Queries, "connection_broken", nothing)
    return "a_broken_connection_fails_its_queries"


@mutation
def nobody_hears_that_it_was_given_up(patch: Patch) -> str:
    patch.setattr(Peers, "given_up", nothing)
    return "a_member_that_was_given_up_stops"


@mutation
def refused_handshakes_of_lost_members_are_forgotten(patch: Patch) -> str:
    original = Peers._broken

    def broken(self, number, kind, error):
        if number not in self._core.lost:
            original(self, number, kind, error)

    patch.setattr(Peers, "_broken", broken)
    return "a_refused_handshake_says_that_it_was_given_up"


@mutation
def only_members_of_the_last_view_are_asked(patch: Patch) -> str:
    async def ask(self):
        """Nobody."""

    patch.setattr(Membership, "_ask_where_it_joined", ask)
    return "a_member_asks_again_where_it_joined"


@mutation
def a_read_takes_the_clock_of_its_own_member(patch: Patch) -> str:
    async def clocks(self, members):
        """No round."""

    patch.setattr(ClockRounds, "clocks", clocks)
    return "a_read_lies_above_all_clocks"


@mutation
def readers_wait_for_nobody(patch: Patch) -> str:
    patch.setattr(LocalSources, "ready", lambda self, map_id, at: True)
    return "a_reader_waits_for_what_is_prepared_below_it"


@mutation
def any_schema_will_do(patch: Patch) -> str:
    patch.setattr(Core, "schema", lambda self, name, map_id=0, version=0: self.catalog.get(name))
    return "a_put_for_an_older_schema_is_refused"


@mutation
def nobody_asks_how_a_write_was_decided(patch: Patch) -> str:
    patch.setattr(CommitParticipants, "_ask_status", nothing)
    return "without_coordinator_prepared_writes_are_decided"


# ---- views, leases, fencing ----


@mutation
def one_vote_is_a_majority(patch: Patch) -> str:
    patch.setattr(Proposal, "_needed", 1)
    return "a_minority_gets_no_view"


@mutation
def leases_are_ignored(patch: Patch) -> str:
    patch.setattr(Readiness, "lease", lambda self, until: None)
    return "two_members_that_lose_one_stop_writing"


@mutation
def a_catalog_change_needs_nobody(patch: Patch) -> str:
    for module in (catalog_module, votes_module):
        patch.setattr(module, "agreed", lambda *_: True)
    return "a_catalog_change_needs_a_majority"


@mutation
def a_joiner_gets_no_catalog(patch: Patch) -> str:
    patch.setattr(CatalogService, "install", nothing)
    return "a_joiner_has_the_catalog"


@mutation
def a_new_view_ends_all_queries(patch: Patch) -> str:
    original = QueryRegistry._view_installed

    def installed(self, now, event):
        self.members |= {0}
        for state in self._queries.values():
            state.participants = (*state.participants, 0)
        return original(self, now, event)

    patch.setattr(QueryRegistry, "_view_installed", installed)
    return "a_query_goes_on_in_the_next_view"


@mutation
def lower_views_are_served(patch: Patch) -> str:
    patch.setattr(Core, "observe_member", Core.observe_peer)
    return "a_message_of_a_lower_view_is_refused"


@mutation
def a_backup_takes_over_at_once(patch: Patch) -> str:
    patch.setattr(Takeover, "view_installed", nothing)
    return "a_backup_takes_over_when_the_lease_is_over"


@mutation
def a_refused_connection_proves_a_crash(patch: Patch) -> str:
    patch.setattr(Times, "grace", 0.0)
    return "a_member_whose_connections_are_reset_stays"


@mutation
def a_port_closed_for_one_heartbeat_proves_a_crash(patch: Patch) -> str:
    patch.setattr(Times, "grace", property(lambda self: self.interval))
    return "a_member_with_short_heartbeats_stays_after_resets"


@mutation
def a_probe_is_made_once(patch: Patch) -> str:
    patch.setattr(Membership, "lose", lambda self, number, cause, *, refused=False: None)
    return "a_crash_is_found_by_its_closed_port"


@mutation
def takeover_counts_from_the_view(patch: Patch) -> str:
    patch.setattr(Agreement, "_quiet_of", lambda self, now, value: ())
    return "a_crash_is_found_by_its_closed_port"


@mutation
def views_forget_why(patch: Patch) -> str:
    patch.setattr(View, "cause_of_departure", lambda self, number: "")
    return "a_dropped_member_is_told_the_true_cause"


@mutation
def who_leaves_just_goes(patch: Patch) -> str:
    async def leave(self):
        pass

    patch.setattr(Leaving, "leave", leave)
    return "who_leaves_is_let_go"


@mutation
def another_view_ends_a_query(patch: Patch) -> str:
    patch.setattr(planned_again_module, "PATIENCE", 0.0)
    return "a_query_that_has_told_nothing_is_run_again_in_the_next_view"


@mutation
def another_view_is_waited_for_without_end(patch: Patch) -> str:
    patch.setattr(statements_module, "pause_before_next", lambda *_: 0.01)
    return "another_view_is_not_waited_for_without_end"


@mutation
def refused_messages_are_told_for_ever(patch: Patch) -> str:
    patch.setattr(peers_module, "may_be_heard_later", lambda _: True)
    return "nothing_is_told_again_to_a_member_that_refuses_it_for_good"


@mutation
def messages_are_told_again_at_a_constant_rate(patch: Patch) -> str:
    patch.setattr(peers_module, "TELL_AGAIN_MAX", peers_module.TELL_AGAIN)
    return "what_is_not_heard_is_told_again_ever_more_rarely"
