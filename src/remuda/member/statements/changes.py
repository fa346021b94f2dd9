"""UPDATE, DELETE, MERGE, TRUNCATE, INSERT with ON CONFLICT or RETURNING: all or nothing.

A statement that reads the map that it changes takes the map's turn first, so that no other atomic
write comes between its read timestamp and its commit. Single entries may still be written in
between: the owners find that out when they prepare, and the statement is run again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.values import PhysicalValue, array_to_values
from remuda.errors import (
    CardinalityViolation,
    LimitExceeded,
    SerializationFailure,
    UniqueViolation,
    ViewChanged,
)
from remuda.execution.memory import Reservation
from remuda.limits import RETURNING_SIZE_MAX
from remuda.member.base.core import Core, to_its_end
from remuda.member.base.peers import Peers
from remuda.member.commits.commits import Commits, Work
from remuda.member.commits.writes import StagedWrite, through_views
from remuda.session.planning import PlannedChange
from remuda.sql.scope.statements import Arbiter, MergeAction, Repeats

ATTEMPTS: Final = 20
CONFLICT_ATTEMPTS: Final = 3
"""So often in succession a statement with ON CONFLICT DO UPDATE may meet one value that came since
it read. Then it is its own rows that have it."""
_BYTES_PER_KEY: Final = 160

Source: TypeAlias = tuple[int, AsyncGenerator[pa.RecordBatch]]
"""The read timestamp of a statement's query, and its pages in engine form."""


@dataclass
class Changed:
    """``returned`` are the columns of RETURNING, in engine form."""

    rows: int = 0
    returned: list[list[pa.Array]] = field(default_factory=list)

    def keep(self, columns: list[pa.Array], size: int) -> int:
        """More columns of RETURNING; ``size`` are the bytes of the earlier ones. Raises
        LimitExceeded."""
        size += sum(column.nbytes for column in columns)
        if size > RETURNING_SIZE_MAX:
            raise LimitExceeded(f"RETURNING gives more than {RETURNING_SIZE_MAX} bytes")
        self.returned.append(columns)
        return size


Answer: TypeAlias = Callable[[int, Changed], Awaitable[Changed]]
"""Asked before the commit, with the read timestamp and the changes, for the rows that the client
gets."""


class Changes:
    def __init__(self, core: Core, peers: Peers, commits: Commits) -> None:
        self._core = core
        self._peers = peers
        self._commits = commits

    async def run(  # noqa: PLR0917 (a statement, and how it runs)
        self,
        change: PlannedChange,
        source: Callable[[int], Awaitable[Source]],
        turn: Callable[[int, str], Awaitable[None]],
        check: Callable[[], None],
        commits: Callable[[], None],
        answer: Answer | None,
        held: Reservation,
    ) -> Changed:
        """``source(attempt)`` runs the query of the statement; ``turn`` waits for the turn of a map
        for a job, which is ended here; ``check`` raises when the statement is not wanted any more;
        ``commits`` is called before the commit begins; ``held`` counts what is kept until its end.
        Raises what the owners refuse, and OutOfMemory."""
        if not change.reads_target:

            async def again(attempt: int) -> Changed:
                check()
                return await self._attempt(
                    change, await source(attempt), turn, check, commits, answer, held
                )

            return await through_views(again)
        schema = change.schema
        job = self._commits.new_job()
        await turn(schema.map_id, job)
        conflicts = _Conflicts(change)
        try:
            for attempt in range(ATTEMPTS):
                check()
                try:
                    return await self._attempt(
                        change, await source(attempt), None, check, commits, answer, held
                    )
                except (SerializationFailure, ViewChanged) as error:
                    if attempt == ATTEMPTS - 1 or error.may_have_run:
                        raise
                except UniqueViolation as error:
                    if not conflicts.may_be_new(error):
                        raise
                    if attempt == ATTEMPTS - 1:
                        raise _met_again(schema) from error
        finally:
            self._commits.end_turn(schema.map_id, job)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(  # noqa: PLR0917
        self,
        change: PlannedChange,
        source: Source,
        turn: Callable[[int, str], Awaitable[None]] | None,
        check: Callable[[], None],
        commits: Callable[[], None],
        answer: Answer | None,
        held: Reservation,
    ) -> Changed:
        """``turn`` None: this statement has the turn of the map."""
        at, pages = source
        schema = change.schema
        arrow = engine_schema(schema)
        width, keys = change.written, change.written + change.removed
        keeps = change.keeps_uniques
        write = StagedWrite(self._core, self._peers, self._commits, schema, keeps=keeps)
        chosen = Chooser(schema, change)
        changed = Changed()
        size = 0
        try:
            async with contextlib.aclosing(pages):
                async for page in pages:
                    columns = chosen.of(page)
                    rows = len(columns[0])
                    changed.rows += rows
                    if not rows:
                        continue
                    if change.chooses:
                        written, removed = chosen_rows(columns[:keys], width)
                    else:
                        written, removed = columns[:width], columns[width:keys]
                    if written:
                        await write.add(pa.record_batch(written, schema=arrow))
                    if removed:
                        await write.remove(removed)
                    if change.returning:
                        size = changed.keep(columns[keys:], size)
                    held.resize(size + chosen.bytes)
            check()
            if answer is not None:
                changed = await answer(at, changed)
            if turn is None:
                commits()
                await write.commit(insert_only=change.insert_only, in_turn=True, unchanged_since=at)
            elif not write.empty:
                await self.in_turn(write, turn, commits, insert_only=change.insert_only)
        except BaseException:
            write.abort()
            raise
        return changed

    async def in_turn(
        self,
        write: StagedWrite,
        turn: Callable[[int, str], Awaitable[None]],
        commits: Callable[[], None],
        *,
        insert_only: bool,
    ) -> int:
        """Wait for the turn of the map and commit: the number of entries written. The commit goes
        on to its end when the caller is cancelled, and keeps the turn for as long."""
        schema, job = write.schema, write.job
        await turn(schema.map_id, job)
        commit = partial(write.commit, insert_only=insert_only, in_turn=True)
        return await self._committed(schema, job, commits, commit)

    async def _committed(
        self,
        schema: MapSchema,
        job: str,
        commits: Callable[[], None],
        commit: Callable[[], Coroutine[Any, Any, int]],
    ) -> int:
        """The turn is ended here, whatever happens."""

        async def in_turn() -> int:
            try:
                return await commit()
            finally:
                self._commits.end_turn(schema.map_id, job)

        try:
            commits()
        except BaseException:
            self._commits.end_turn(schema.map_id, job)
            raise
        what = f'the commit of a write of map "{schema.name}"'
        return await to_its_end(asyncio.ensure_future(in_turn()), what)

    async def truncate(
        self,
        schema: MapSchema,
        turn: Callable[[int, str], Awaitable[None]],
        commits: Callable[[], None],
    ) -> None:
        core = self._core
        core.require_all_reached()
        core.store(schema.map_id, schema.version)

        async def truncate(_attempt: int) -> int:
            work = Work(job=self._commits.new_job(), schema=schema, tasks=(), overwrite=True)
            await turn(schema.map_id, work.job)
            commit = partial(self._commits.commit_in_turn, work, tuple(core.view.by_number))
            return await self._committed(schema, work.job, commits, commit)

        await through_views(truncate)


class _Conflicts:
    """Refusals of a statement with ON CONFLICT: a row may have come since the statement read, which
    the next attempt will see."""

    def __init__(self, change: PlannedChange) -> None:
        self._schema = change.schema
        self._ignores = change.repeats is Repeats.FIRST
        offset = 1 if change.chooses else 0
        self._arbiters = {
            frozenset(change.schema.columns[place - offset].name for place in arbiter.positions)
            for arbiter in change.arbiters
        }
        self._last = ""
        self._times = 0

    def may_be_new(self, error: UniqueViolation) -> bool:
        """Whether another attempt may succeed."""
        refused = self._columns_of("" if error.subject is None else error.subject.constraint)
        if refused not in self._arbiters:
            return False
        self._times = self._times + 1 if error.detail == self._last else 1
        self._last = error.detail
        return self._ignores or self._times <= CONFLICT_ATTEMPTS

    def _columns_of(self, constraint: str) -> frozenset[str]:
        if constraint == self._schema.primary_key:
            return frozenset(self._schema.key)
        for index in self._schema.uniques:
            if index.name == constraint:
                return frozenset(index.names)
        return frozenset()


def _met_again(schema: MapSchema) -> SerializationFailure:
    return SerializationFailure(
        f'rows with values of a statement with ON CONFLICT were written to map "{schema.name}" '
        "again and again since it had read",
        hint="Run the statement again.",
    )


_WRITES: Final = pa.array([MergeAction.INSERT.value, MergeAction.UPDATE.value], pa.int32())
_REMOVES: Final = pa.array([MergeAction.UPDATE.value, MergeAction.DELETE.value], pa.int32())


def updated_rows(columns: list[pa.Array]) -> tuple[list[pa.Array], list[pa.Array]]:
    """Of rows of MERGE: those that get new values, and all others."""
    updates = pc.equal(columns[0], MergeAction.UPDATE.value)
    others = pc.invert(updates)
    return [c.filter(updates) for c in columns], [c.filter(others) for c in columns]


def chosen_rows(columns: list[pa.Array], width: int) -> tuple[list[pa.Array], list[pa.Array]]:
    """Of rows of MERGE (see ``ChangeStatement.chooses``): the written and the removed ones."""
    action = columns[0]
    writes, removes = pc.is_in(action, _WRITES), pc.is_in(action, _REMOVES)
    written = [column.filter(writes) for column in columns[1:width]]
    return written, [column.filter(removes) for column in columns[width:]]


class Chooser:
    """Leaves out, or refuses, rows that a statement comes to a second time."""

    def __init__(self, schema: MapSchema, change: PlannedChange) -> None:
        self._repeats = change.repeats
        self._merges = change.verb == "MERGE"
        keys = (
            tuple(range(change.written, change.written + change.removed))
            if change.removed
            else schema.key_positions
        )
        self._arbiters = change.arbiters or (Arbiter(keys),)
        offset = 1 if change.chooses else 0
        self._types = [
            [schema.columns[position - offset].type for position in arbiter.positions]
            if change.arbiters
            else [schema.columns[position].type for position in schema.key_positions]
            for arbiter in self._arbiters
        ]
        self._seen: list[set[tuple[PhysicalValue, ...]]] = [set() for _ in self._arbiters]

    @property
    def bytes(self) -> int:
        """The memory of the keys in bytes, roughly."""
        return sum(map(len, self._seen)) * _BYTES_PER_KEY

    def of(self, page: pa.RecordBatch) -> list[pa.Array]:
        columns: list[pa.Array] = list(page.columns)
        if self._repeats is Repeats.NEVER:
            return columns
        lists = [
            zip(
                *(
                    [_comparable(value) for value in array_to_values(columns[position], sql_type)]
                    for position, sql_type in zip(arbiter.positions, types, strict=True)
                ),
                strict=True,
            )
            for arbiter, types in zip(self._arbiters, self._types, strict=True)
        ]
        kept: list[int] = []
        for index, keys in enumerate(zip(*lists, strict=True)):
            # NULL is in no key of another row, or in the key that a row gets when it is stored.
            compared = [
                (key, seen)
                for key, seen, arbiter in zip(keys, self._seen, self._arbiters, strict=True)
                if None not in key or not arbiter.nulls_distinct
            ]
            if all(key not in seen for key, seen in compared):
                kept.append(index)
                for key, seen in compared:
                    seen.add(key)
            elif self._repeats is Repeats.REFUSE:
                raise self._second_time()
        if len(kept) == page.num_rows:
            return columns
        indexes = pa.array(kept, pa.int64())
        return [column.take(indexes) for column in columns]

    def _second_time(self) -> CardinalityViolation:
        if self._merges:
            return CardinalityViolation(
                "MERGE command cannot affect row a second time",
                hint="Ensure that not more than one source row matches any one target row.",
            )
        return CardinalityViolation(
            "ON CONFLICT DO UPDATE command cannot affect row a second time",
            hint="Ensure that no rows proposed for insertion within the same command have "
            "duplicate constrained values.",
        )


def _comparable(value: PhysicalValue) -> PhysicalValue:
    """NaN becomes text, which is equal to itself."""
    return "NaN" if value != value else value  # noqa: PLR0124
