"""Atomic writes of one statement or request: staged on the owners, committed at one timestamp."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from remuda.datatypes.conformance import of_keys
from remuda.datatypes.gathering import Gathering
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import NOBODY, View
from remuda.errors import ViewChanged
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.commits.commits import Commits, Work
from remuda.member.commits.staged_rows import (
    PAUSE,
    TASK,
    RowsOfMember,
    stage_here,
    stage_there,
)
from remuda.member.state.lifetimes import refuse_bulk, refuse_bulk_removal
from remuda.member.state.routing import Router, Share
from remuda.storage.staging.row_ends import with_ends

ATTEMPTS = 8
SEARCHED_MAX = 512
"""A transaction looks for the values of unique indexes of each of so many rows; more are written in
bulk."""
PAGE_ROWS = 4096
PAGE_BYTES = 1 << 20
"""A page of this size is worth its round trips."""

Written = TypeVar("Written")


class Aside(Protocol):
    async def __call__(self, work: Callable[[], Written]) -> Written:
        """The result or the error of ``work``, off the loop."""


async def _at_once(work: Callable[[], Written]) -> Written:
    return work()


async def through_views(write: Callable[[int], Awaitable[Written]]) -> Written:
    """``write(attempt)`` stages rows and commits them; again when partitions have moved meanwhile,
    after which nothing of it is left. Raises ViewChanged after ``ATTEMPTS``."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return await write(attempt)
        except ViewChanged as error:
            if error.may_have_run:  # the participants have completed it without the coordinator
                raise
            await asyncio.sleep(PAUSE * (attempt + 1))
    return await write(ATTEMPTS - 1)


async def gathered(
    pages: AsyncGenerator[pa.RecordBatch], rows_enough: int = PAGE_ROWS, enough: int = PAGE_BYTES
) -> AsyncGenerator[pa.RecordBatch]:
    """The same rows, with small pages put together: staging a page takes a round trip to the owners
    and another one to their backups, however few rows it has. ``enough`` are bytes."""
    gathering = Gathering(rows_enough, enough)
    async with contextlib.aclosing(pages):
        async for page in pages:
            found = gathering.add(page)
            if found is not None:
                yield found
    rest = gathering.rest()
    if rest is not None:
        yield rest


class StagedWrite:
    """Rows gathered by this member. ``add`` any number of times, then ``commit`` or ``abort``.
    ``aside`` is where rows are cut into shares and encoded, if not on the loop."""

    def __init__(
        self,
        core: Core,
        peers: Peers,
        commits: Commits,
        schema: MapSchema,
        aside: Aside | None = None,
        *,
        keeps: bool = False,
    ) -> None:
        """``keeps``: the rows name the same parents as the rows that they replace."""
        self._keeps = keeps
        self._aside = aside or _at_once
        self._core = core
        self._peers = peers
        self._commits = commits
        self._schema = schema
        self._router = Router(schema)
        self._sequences: dict[int, int] = {}
        self._primaries: set[int] = set()
        self._partitions: set[int] = set()
        self._wrote = False
        """Rows, not only removals, were staged."""
        self.job = commits.new_job()
        if schema.replicated:
            core.require_all_reached()

    @property
    def schema(self) -> MapSchema:
        return self._schema

    @property
    def empty(self) -> bool:
        """Whether nothing was staged: there is nothing to commit then."""
        return not self._primaries and not (self._schema.replicated and self._sequences)

    async def add(self, batch: pa.RecordBatch, ends: npt.NDArray[np.int64] | None = None) -> None:
        """Stage the rows (engine form) on their owners; ``ends``: when each ends by itself. Raises
        the errors of ``Constraints.check``."""
        batch = self._checked(batch)
        if batch.num_rows:
            self._wrote = True
            await self._stage_all(with_ends(batch, ends), removal=False)

    async def put(self, batch: pa.RecordBatch, ttl: int | None) -> int:
        """``add`` and ``commit`` in one, for rows that are all there are: their primaries get them
        with the question whether they can commit, and so does a member that backs some up and is
        the primary of others."""
        batch = self._checked(batch)
        if not batch.num_rows:
            return 0
        self._wrote = True
        shares = await self._shares(batch)
        await self._stage_each([s for s in shares if not s.primaries], removal=False)
        rows = [RowsOfMember(self.job, self._schema, s) for s in shares if s.primaries]
        return await self.commit(ttl=ttl, rows=rows)

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._keeps:
            refuse_bulk(self._schema, "bulk writes")
        batch = self._core.constraints.with_row_ids(batch, self._schema, self._core.number)
        self._core.constraints.check(batch, self._schema)
        return batch

    async def remove(self, keys: Sequence[pa.Array]) -> None:
        """Stage the removal of the rows with these keys (key columns in engine form)."""
        refuse_bulk_removal(self._schema, "bulk deletes")
        batch = of_keys(keys, self._schema)
        if not batch.num_rows:
            return
        await self._stage_all(batch, removal=True)

    async def _stage_all(self, batch: pa.RecordBatch, *, removal: bool) -> None:
        await self._stage_each(await self._shares(batch), removal=removal)

    async def _shares(self, batch: pa.RecordBatch) -> list[Share]:
        """The rows that each copy gets."""
        core = self._core
        core.wal.require_room()
        view, members = core.view, core.live_members()
        shares, partitions = await self._aside(lambda: self._router.shares(batch, view, members))
        if core.view.absent:
            for partition in partitions:
                core.require_alive(core.view.owners[partition])
        self._partitions |= partitions
        self._primaries.update(share.member for share in shares if share.primaries)
        return shares

    async def _stage_each(self, shares: Sequence[Share], *, removal: bool) -> None:
        """All at a time; returns when each has answered, so that none arrives after an abort."""
        staged = [self._stage(share, removal=removal) for share in shares]
        for outcome in await asyncio.gather(*staged, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _stage(self, share: Share, *, removal: bool) -> None:
        member = share.member
        sequence = self._sequences.get(member, 0)
        self._sequences[member] = sequence + 1
        rows = RowsOfMember(self.job, self._schema, share, sequence, removal)
        if member == self._core.number:
            message = rows.message(self._core)
            stage_here(self._core, self._commits.participants, message, share.batch)
            return
        body = await self._aside(rows.encoded)
        await stage_there(self._core, self._peers, member, rows.message(self._core), body)

    async def commit(
        self,
        *,
        insert_only: bool = False,
        removed_keys: tuple[tuple[PhysicalValue, ...], ...] = (),
        in_turn: bool = False,
        unchanged_since: int | None = None,
        ttl: int | None = None,
        rows: Sequence[RowsOfMember] = (),
    ) -> int:
        """The number of entries written, and of ``removed_keys`` removed. ``rows`` of primaries are
        not staged yet. Raises UniqueViolation and the errors of ``Commits.commit``."""
        core, schema = self._core, self._schema
        unique = self._wrote and bool(schema.uniques)
        participants = core.live_members() if schema.replicated else tuple(sorted(self._primaries))
        if not participants:
            return 0
        if unique and not schema.replicated:
            core.require_all_reached()
            participants = owners(core.view)
        work = Work(
            job=self.job,
            schema=schema,
            tasks=(TASK,),
            insert_only=insert_only,
            removed_keys=removed_keys,
            unchanged_since=unchanged_since,
            ttl=ttl,
            unique=unique,
            references=self._wrote and not self._keeps and bool(schema.foreign_keys),
        )
        commit = self._commits.commit_in_turn if in_turn else self._commits.commit
        written = None if unique else self._partitions
        count = await commit(work, participants, written, None, rows)
        return count // len(participants) if schema.replicated else count

    def abort(self) -> None:
        self._commits.drop(self.job, tuple(self._sequences))


def owners(view: View) -> tuple[int, ...]:
    """The members that are the primary of a partition."""
    return tuple(sorted(set(view.owners) - {NOBODY}))
