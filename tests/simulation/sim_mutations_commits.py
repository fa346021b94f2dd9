"""Ways to break the rules of ``sim_rules_commits``: each patches the code and names the scenario
that must notice. Registered with those of ``sim_mutations``."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
from sim_mutations import Patch, mutation, nothing

from remuda.client.operations.row_writer import JobWriter
from remuda.cluster.movement import Move
from remuda.datatypes.timestamp import FOREVER
from remuda.errors import NotServed, StorageFull
from remuda.execution.context import ScanOf
from remuda.limits import PARTITIONS
from remuda.member.commits.job_rows import JobRows
from remuda.member.copies.copies import Copies
from remuda.member.copies.giving import Giving
from remuda.member.membership.takeover import Takeover
from remuda.member.queries.fragments import LocalSources
from remuda.member.sessions.pins import TransactionPins
from remuda.member.state.readiness import Readiness
from remuda.member.state.retained_partitions import GivenAway
from remuda.member.state.write_room import WriteRoom
from remuda.member.transactions.transactions import Transactions
from remuda.member.transactions.validation import Validation
from remuda.storage.maps.map_store import MapStore
from remuda.transaction import staged_commit
from remuda.transaction.parts import Parts


@mutation
def a_promoted_backup_goes_on_from_its_own_clock(patch: Patch) -> str:
    original = Takeover._over

    def over(self: Takeover) -> None:
        self._ceiling = self._ceiling_unheard = 0
        original(self)

    patch.setattr(Takeover, "_over", over)
    return "a_promoted_backup_starts_above_the_ceiling"


def _change_roles_at_once(patch: Patch) -> None:
    hold = Giving._hold_writers

    async def hold_writers(self: Giving, move: Move) -> None:
        if move.receiver is not None:
            await hold(self, move)
        else:
            await self._commits.hold()

    patch.setattr(Giving, "_hold_writers", hold_writers)


@mutation
def roles_change_while_writes_are_pending(patch: Patch) -> str:
    _change_roles_at_once(patch)
    return "a_primary_that_comes_back_commits_above_what_was_read"


@mutation
def timestamps_never_lapse(patch: Patch) -> str:
    patch.setattr(Parts, "_lapse", nothing)
    return "a_second_backup_commits_above_what_the_first_one_served"


@mutation
def copies_are_made_without_room(patch: Patch) -> str:
    patch.setattr(WriteRoom, "require_copy", nothing)
    return "copies_that_do_not_fit_wait_for_room"


@mutation
def a_copy_without_room_is_not_tried_again(patch: Patch) -> str:
    async def no_room(self: Giving, _move: object, error: StorageFull) -> None:
        self._refused = error.message
        await asyncio.Future()

    patch.setattr(Giving, "_no_room", no_room)
    return "copies_that_do_not_fit_wait_for_room"


@mutation
def who_takes_over_serves_nothing(patch: Patch) -> str:
    patch.setattr(Readiness, "partly", False)
    return "who_takes_over_serves_what_it_had"


@mutation
def who_takes_over_serves_everything(patch: Patch) -> str:
    patch.setattr(Readiness, "require_partitions", nothing)
    return "who_takes_over_serves_what_it_had"


@mutation
def a_primary_does_not_wait_for_its_backup(patch: Patch) -> str:
    original, alone = Parts.prepared_here, Parts.prepare_alone

    def now(self: Parts, address: Any, timestamp: int, out: Any) -> Any:
        part = self._parts[address]
        if not part.ended and part.one_phase:
            out += [*self._end(address, part, timestamp), *self._vote(address, part)]
        return out

    def prepared_here(self: Parts, address: Any, timestamp: int) -> Any:
        return now(self, address, timestamp, original(self, address, timestamp))

    def prepare_alone(self: Parts, address: Any, work: Any, timestamp: int) -> Any:
        return now(self, address, timestamp, alone(self, address, work, timestamp))

    patch.setattr(Parts, "prepared_here", prepared_here)
    patch.setattr(Parts, "prepare_alone", prepare_alone)
    return "what_is_acknowledged_is_on_the_backup"


@mutation
def reads_are_not_validated(patch: Patch) -> str:
    patch.setattr(Validation, "_check_read", nothing)
    return "who_rests_on_what_was_read_conflicts"


@mutation
def conditions_are_not_validated(patch: Patch) -> str:
    patch.setattr(Validation, "_check_scan", nothing)
    return "who_rests_on_a_condition_conflicts"


@mutation
def nobody_keeps_versions_for_others(patch: Patch) -> str:
    patch.setattr(TransactionPins, "oldest_read", lambda _self: None)
    return "versions_that_a_transaction_reads_are_kept"


@mutation
def collected_versions_are_read_all_the_same(patch: Patch) -> str:
    """As if the floor had never been raised."""
    original = MapStore.scan

    def scan(self: MapStore, *arguments: Any) -> Any:
        floor, self._upkeep.floor = self._upkeep.floor, 0
        try:
            return original(self, *arguments)
        finally:
            self._upkeep.floor = floor

    patch.setattr(MapStore, "scan", scan)
    return "what_was_collected_is_refused"


@mutation
def a_handover_ends_all_that_was_before(patch: Patch) -> str:
    """The receiver refuses whatever is older than the handover, for the whole map."""
    original = Copies._install

    def install(self: Copies, source: MapStore, target: MapStore, *more: Any) -> None:
        original(self, source, target, *more)
        target.raise_floor(target.mixed_until)

    patch.setattr(Copies, "_install", install)
    return "old_versions_move_with_their_partition"


@mutation
def scans_do_not_wait_for_rows_that_move(patch: Patch) -> str:
    patch.setattr(
        LocalSources,
        "ready",
        lambda self, map_id, at: not self._core.stores[map_id].pending_at_or_below(at),
    )
    return "old_versions_move_with_their_partition"


@mutation
def promoted_rows_begin_when_they_are_promoted(patch: Patch) -> str:
    latest: Any = lambda self, _partitions: np.full(PARTITIONS, self._latest)  # noqa: E731
    patch.setattr(MapStore, "last_ends_of", latest)
    return "old_versions_are_there_after_a_loss"


@mutation
def returned_rows_all_begin_at_the_handover(patch: Patch) -> str:
    """Also those that were written below it, and were undecided then: nothing is, where changes of
    roles wait for what is pending."""
    _change_roles_at_once(patch)
    patch.setattr(GivenAway, "take_keys", lambda *_: set())
    return "what_was_undecided_at_a_handover_is_told_after_a_return"


@mutation
def rows_are_read_where_they_were_and_where_they_are(patch: Patch) -> str:
    def of(_self: LocalSources, _store: MapStore, what: ScanOf) -> ScanOf:
        return what

    patch.setattr(LocalSources, "_of", of)
    return "old_versions_move_with_their_partition"


@mutation
def partitions_move_without_staged_rows(patch: Patch) -> str:
    async def nothing_sent(_self: JobRows, _receiver: int, _partitions: Any) -> int:
        return 0

    patch.setattr(JobRows, "send_all", nothing_sent)
    return "staged_rows_move_with_their_partition"


@mutation
def only_owners_take_rows_of_jobs(patch: Patch) -> str:
    async def here(self: JobRows, schema: Any, frame: Any, batch: Any) -> None:
        await self._on_copies(schema, frame, batch)

    patch.setattr(JobRows, "take", here)
    return "staged_rows_move_with_their_partition"


@mutation
def staged_rows_stay_in_their_backups(patch: Patch) -> str:
    patch.setattr(JobRows, "on_view", nothing)
    return "a_job_survives_the_loss_of_a_primary"


@mutation
def nobody_counts_the_rows_of_a_job(patch: Patch) -> str:
    original = staged_commit.Coordinator.__init__

    def init(self: Any, job: str, primaries: Any, parts: Any, _expected: Any = None) -> None:
        original(self, job, primaries, parts)

    patch.setattr(staged_commit.Coordinator, "__init__", init)
    return "a_job_that_lost_rows_is_not_committed"


@mutation
def receivers_get_what_was_there_only(patch: Patch) -> str:
    original = JobRows._others

    def others(self: JobRows, view: Any, partitions: Any) -> Any:
        receivers, self.receivers = self.receivers, {}
        try:
            return original(self, view, partitions)
        finally:
            self.receivers = receivers

    patch.setattr(JobRows, "_others", others)
    return "rows_that_arrive_while_their_partition_moves"


async def _given_up(_writer: JobWriter, _member: int, error: NotServed) -> None:
    raise error


@mutation
def writers_know_only_the_members_of_their_first_view(patch: Patch) -> str:
    patch.setattr(JobWriter, "_member_for", lambda _, frame: frame.owner)
    patch.setattr(JobWriter, "_pass_over", _given_up)
    return "writers_go_round_a_member_that_has_left"


@mutation
def bulk_writes_wait_for_writes_alone(patch: Patch) -> str:
    def writing(self: Transactions, map_id: int) -> bool:
        return self._core.stores[map_id].awaited != FOREVER

    patch.setattr(Transactions, "undecided", writing)
    return "a_bulk_write_waits_for_who_has_read_its_rows"
