"""Calls of sequences, made for rows that the initiator has (``plan.sequence_calls``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from remuda.catalog.catalog import Catalog
from remuda.catalog.own.numbers import OwnNumbers
from remuda.catalog.pg_objects import relations
from remuda.datatypes.identifiers import relation_parts
from remuda.datatypes.schema import PG_TEMP, PUBLIC, MapSchema, full_name
from remuda.datatypes.sequences import NumberBlock
from remuda.errors import (
    InvalidParameterValue,
    NumberNotDefined,
    SchemaChanged,
    UndefinedMap,
    WrongObjectType,
)
from remuda.member.base.core import Core
from remuda.member.sequences.states import NewState, Sequences, exhausted
from remuda.member.sessions.statement import Statement
from remuda.plan.sequence_calls import CURRVAL, LASTVAL, NEXTVAL, SETVAL, SequenceCall
from remuda.session.privileges import check_needs, need_of_call

TAKEN_MAX: Final = 65_536
"""Numbers that are taken at a time."""
_OWN: Final = f"{PG_TEMP}_"
"""How the name of the session's schema of temporary relations begins."""


class SequenceCalls:
    def __init__(self, core: Core, sequences: Sequences) -> None:
        self._core = core
        self._sequences = sequences

    async def made(
        self, statement: Statement, calls: Sequence[SequenceCall], page: pa.RecordBatch
    ) -> pa.RecordBatch:
        """``page`` with a column for the results of each call. Raises SequenceExhausted,
        NumberNotDefined, UndefinedMap, WrongObjectType, InvalidParameterValue."""
        work = _Work(self._core, self._sequences, statement, page, tuple(calls))
        if len(calls) == 1 and calls[0].function == NEXTVAL and calls[0].map_id:
            results = [await work.column(calls[0])]
        else:
            results = await work.rows()
        names = [*page.schema.names, *(f"number {place}" for place in range(len(calls)))]
        return pa.record_batch([*page.columns, *results], names=names)


@dataclass
class _Work:
    """The calls of one page."""

    core: Core
    sequences: Sequences
    statement: Statement
    page: pa.RecordBatch
    calls: tuple[SequenceCall, ...]
    stock: dict[int, Iterator[int]] = field(default_factory=dict)
    """Numbers of sequences that were taken for later rows."""

    async def column(self, call: SequenceCall) -> pa.Array:
        """One ``nextval`` for many rows."""
        schema = self.schema(call.map_id)
        places = self.places(call)
        parts: list[np.ndarray] = []
        for first in range(0, len(places), TAKEN_MAX):
            self.statement.check()
            wanted = min(TAKEN_MAX, len(places) - first)
            blocks = await self.taken(schema, wanted)
            parts += [_numbers(block) for block in blocks]
        values = np.zeros(self.page.num_rows, np.int64)
        missing = np.ones(self.page.num_rows, bool)
        if parts:
            values[places] = np.concatenate(parts)
            missing[places] = False
            self.statement.progress.took(schema.map_id, int(values[places[-1]]))
        return pa.array(values, pa.int64(), mask=missing)

    async def rows(self) -> list[pa.Array]:
        """All calls, row by row."""
        columns = [column.to_pylist() for column in self.page.columns]
        results: list[list[int | None]] = [[] for _ in self.calls]
        for row in range(self.page.num_rows):
            for call, found in zip(self.calls, results, strict=True):
                made = call.guard is None or columns[call.guard][row] is True
                found.append(await self.one(call, columns, row) if made else None)
        return [pa.array(found, pa.int64()) for found in results]

    async def one(self, call: SequenceCall, columns: list[list[object]], row: int) -> int | None:
        if call.function == LASTVAL:
            return last_number(self.core.catalog, self.statement)
        name = call.map_id if call.name is None else columns[call.name][row]
        if name is None:
            return None
        schema = self.schema(call.map_id) if call.map_id else self.named(call, name)
        if call.function == CURRVAL:
            return current_number(self.statement, schema)
        if call.function == SETVAL:
            assert call.value is not None and call.is_called is not None  # noqa: PT018
            value, called = columns[call.value][row], columns[call.is_called][row]
            return await self.set(schema, value, called)
        number = await self.next(schema, self.page.num_rows - row)
        self.statement.progress.took(schema.map_id, number)
        return number

    async def next(self, schema: MapSchema, rows_left: int) -> int:
        known = self.stock.get(schema.map_id)
        number = None if known is None else next(known, None)
        if number is not None:
            return number
        self.statement.check()
        alone = all(
            call.function in (NEXTVAL, CURRVAL, LASTVAL) and call.map_id and call.guard is None
            for call in self.calls
        )
        each = sum(c.function == NEXTVAL and c.map_id == schema.map_id for c in self.calls)
        wanted = min(each * rows_left, TAKEN_MAX) if alone else 1
        blocks = await self.taken(schema, wanted)
        self.stock[schema.map_id] = numbers = _each(blocks)
        return next(numbers)

    async def taken(self, schema: MapSchema, wanted: int) -> Sequence[NumberBlock]:
        statement = self.statement
        if schema.temporary:
            return own_numbers(statement, schema, wanted)
        taken = statement.progress.numbers_taken()
        blocks = taken.left(schema.map_id, wanted)
        missing = wanted - sum(block.count for block in blocks)
        if missing:
            new = await statement.interruptible(self.sequences.take(schema, missing))
            taken.take(schema.map_id, new)
            blocks += new
        return blocks

    async def set(self, schema: MapSchema, value: object, called: object) -> int | None:
        if value is None or called is None:
            return None
        options = schema.sequence
        assert options is not None and isinstance(value, int)  # noqa: PT018
        if not options.minimum <= value <= options.maximum:
            raise InvalidParameterValue(
                f'setval: value {value} is out of bounds for sequence "{schema.local}" '
                f"({options.minimum}..{options.maximum})"
            )
        if schema.temporary:
            _own_state(self.statement, schema).set(value, is_called=bool(called))
        else:
            self.statement.progress.sets_sequence()
            await self.sequences.set(schema.map_id, NewState(value, is_called=bool(called)))
        if called:
            self.statement.progress.took(schema.map_id, value)
        return value

    # --- names --------------------------------------------------------------------------------

    def schema(self, map_id: int) -> MapSchema:
        return sequence_of(self.core.catalog, self.statement, map_id)

    def named(self, call: SequenceCall, name: object) -> MapSchema:
        """By its OID, or by its name as text. Raises InsufficientPrivilege."""
        own = self.statement.session.definitions
        seen = self.core.access.catalog(self.statement.user, own)
        every = self.statement.with_temporary_names(seen)
        found = _by_oid(every, name) if isinstance(name, int) else _by_name(every, str(name))
        if found is None:
            raise UndefinedMap(f'relation "{name}" does not exist')
        if found.sequence is None:
            raise WrongObjectType(f'"{found.local}" is not a sequence')
        if found.map_id < 0:
            return self.schema(found.map_id)
        user = self.core.access.user(self.statement.user)
        if user is not None:
            check_needs(user, [need_of_call(call, found, seen)])
        return found

    def places(self, call: SequenceCall) -> np.ndarray:
        """The rows for which a call is made."""
        if call.guard is None:
            return np.arange(self.page.num_rows)
        wanted = self.page.column(call.guard).fill_null(False)
        return np.flatnonzero(wanted.to_numpy(zero_copy_only=False))


def sequence_of(catalog: Catalog, statement: Statement, map_id: int) -> MapSchema:
    """Raises SchemaChanged."""
    if map_id < 0:
        own = statement.own_sequence(map_id)
        schema = None if own is None else own.schema
    else:
        schema = catalog.find_id(map_id)
    if schema is None:
        raise _dropped()
    return schema


def own_numbers(statement: Statement, schema: MapSchema, wanted: int) -> Sequence[NumberBlock]:
    """Numbers of a temporary sequence, whose state is here. Raises SequenceExhausted."""
    assert schema.sequence is not None
    blocks = _own_state(statement, schema).take(schema.sequence, wanted)
    if sum(block.count for block in blocks) < wanted:
        raise exhausted(schema.local, schema.sequence)
    return blocks


def _own_state(statement: Statement, schema: MapSchema) -> OwnNumbers:
    found = statement.own_sequence(schema.map_id)
    if found is None or found.numbers is None:
        raise _dropped()
    return found.numbers


def current_number(statement: Statement, schema: MapSchema) -> int:
    """``currval``. Raises NumberNotDefined."""
    taken, sent = statement.progress.numbers, statement.sent.numbers
    found = taken.get(schema.map_id, sent.get(schema.map_id))
    if found is None:
        raise NumberNotDefined(
            f'currval of sequence "{schema.local}" is not yet defined in this session',
            hint="It is the number that the session's last nextval of the sequence has given.",
        )
    return found


def last_number(catalog: Catalog, statement: Statement) -> int:
    """``lastval``. Raises NumberNotDefined."""
    for known in (statement.progress.numbers, statement.sent.numbers):
        for map_id in reversed(known):
            if (catalog.find_id(map_id) or statement.own_sequence(map_id)) is not None:
                return known[map_id]
    raise NumberNotDefined("lastval is not yet defined in this session")


def _numbers(block: NumberBlock) -> np.ndarray:
    return block.first + np.arange(block.count, dtype=np.int64) * block.increment


def _each(blocks: Sequence[NumberBlock]) -> Iterator[int]:
    for block in blocks:
        for place in range(block.count):
            yield block.first + place * block.increment


def _dropped() -> SchemaChanged:
    return SchemaChanged("a sequence of the statement was dropped", hint="Run it again.")


def _by_name(catalog: Catalog, name: str) -> MapSchema | None:
    """``catalog`` lists the temporary relations of the session, which come first."""
    parts = relation_parts(name)
    schema, local = "" if len(parts) == 1 else parts[-2], parts[-1]
    own = next((each.name for each in catalog.namespaces if each.name.startswith(_OWN)), "")
    found = None
    if own and schema in ("", PG_TEMP):
        found = catalog.find(full_name(own, local))
    return found or catalog.find(full_name(schema or PUBLIC, local))


def _by_oid(catalog: Catalog, oid: int) -> MapSchema | None:
    for relation in relations(catalog):
        if relation.oid == oid and isinstance(relation.source, MapSchema):
            return relation.source
    return None
