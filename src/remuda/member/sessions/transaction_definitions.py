"""Definitions in open transactions, on their near member (decision 0109).

New maps are made in the catalog of all at once, under names that nobody sees. All other edits wait
in the transaction (``catalog.own.definitions``) for the one edit that commits them. A transaction
that ends otherwise leaves maps without names. They are dropped here, or by the coordinator for
members that are lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from remuda.catalog.catalog import Catalog, next_map
from remuda.catalog.edits import DecidedTransaction, DropMap, Edit, PutMap
from remuda.catalog.own.definitions import (
    OwnDefinitions,
    defines_types,
    is_made,
    made_name,
    maker_of,
    same_form,
)
from remuda.datatypes.schema import PUBLIC, MapSchema
from remuda.datatypes.view import View
from remuda.errors import (
    ActiveTransaction,
    JobAborted,
    OutcomeUnknown,
    RemudaError,
    SchemaChanged,
    SerializationFailure,
    TransientError,
)
from remuda.member.base.core import Core
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.sessions.committing import Committing
from remuda.member.sessions.open_transaction import BLIND, OpenTransaction
from remuda.member.state.log import fields
from remuda.session.client_session import ClientSession
from remuda.session.planning import (
    Planned,
    PlannedChange,
    PlannedExplain,
    PlannedInsert,
    PlannedQuery,
    maps_read,
)
from remuda.session.settings import SETTINGS, TRANSACTIONAL
from remuda.sql.scope.statements import (
    CatalogStatement,
    CopyStatement,
    CreateAsStatement,
    CreateIndexStatement,
    CreateMapStatement,
    DropIndexStatement,
    InsertStatement,
    TruncateStatement,
)
from remuda.storage.chunks.layout import Layout
from remuda.transaction.own_writes import Key, Row
from remuda.transaction.states import TransactionId

log = logging.getLogger(__name__)

ATTEMPTS: Final = 50
"""So often an edit is made again because the catalog has changed meanwhile."""
PAUSE: Final = 0.002
DOUBT_PAUSE: Final = 0.1
DOUBT_PATIENCE: Final = 30.0
"""Seconds for which the coordinator is asked whether an edit was made."""
SWEEP_PAUSE: Final = 1.0
DEFINITIONS: Final = (
    CatalogStatement, CreateMapStatement, CreateAsStatement, CreateIndexStatement,
    DropIndexStatement, TruncateStatement,
)  # fmt: skip


def are_transactional(session: ClientSession) -> bool:
    """Whether definitions of a session become a part of its transaction."""
    return session.value(SETTINGS["definitions_in_transactions"]) == TRANSACTIONAL


def can_be_transactional(found: Planned) -> bool:
    """Whether a statement is a definition that can become a part of a transaction."""
    match found:
        case CreateIndexStatement(concurrently=concurrently):
            return not concurrently
        case DropIndexStatement(concurrently=concurrently):
            return not concurrently
        case CatalogStatement(edits=edits):
            return not defines_types(edits)
        case _:
            return isinstance(found, DEFINITIONS)


class TransactionDefinitions:
    def __init__(
        self,
        core: Core,
        catalog: CatalogService,
        committing: Committing,
        is_open: Callable[[str], bool],
    ) -> None:
        """``is_open``: whether the transaction of a name is open here."""
        self._core = core
        self._committing = committing
        self._catalog = catalog
        self._is_open = is_open
        self._numbers = count(1)
        self._answered: list[DecidedTransaction] = []
        """Transactions whose notes in the catalog nobody needs any more."""
        self.on_committed: list[Callable[[Collection[int]], None]] = []
        """Called with the maps that a transaction has changed, when it has committed."""
        self._begun = False
        self._sweeping = False
        core.listeners.view.add_later(self._on_view)
        core.listeners.installed.add_later(self._look_for_left)

    def begin(self) -> None:
        """At the start: drop the maps that a member of the same number has left before."""
        self._begun = True
        self._look_for_left()

    # --- definitions ----------------------------------------------------------------------------

    async def define(
        self,
        transaction: OpenTransaction,
        edits: Sequence[Edit],
        version: int,
        rows: Mapping[Key, Row] | None = None,
    ) -> None:
        """Make ``edits``, which were bound to the catalog of the transaction at ``version``, a part
        of the transaction. The rows that it has written to maps of its own follow them. ``rows``:
        of the only new map. Raises SchemaChanged when the catalog has another version,
        SerializationFailure, ActiveTransaction for what cannot be done in a transaction, and the
        errors of definitions."""
        now = self._core.catalog
        if now.version != version:
            raise SchemaChanged("the catalog was changed by another statement meanwhile")
        own = transaction.definitions or OwnDefinitions.over_catalog(now)
        before = own.over(now)
        self._require_possible(edits)
        places = [place for place, edit in enumerate(edits) if _is_new(edit, before, own)]
        wanted = [_following(before, _schema(edits[place])) for place in places]
        made = await self._make(transaction, wanted)
        rest: list[Edit] = []
        moved: list[tuple[MapSchema, MapSchema]] = []
        for place, edit in enumerate(edits):
            if place not in places:
                rest.append(edit)
                continue
            schema = _schema(edit)
            hidden = made[places.index(place)]
            was = before.find_id(schema.map_id) if schema.map_id else None
            if was is not None:
                rest.append(DropMap(was.name))
                moved.append((was, hidden))
            rest.append(PutMap(_shown(hidden, schema)))
        self._require_unchanged(before, own, edits)
        following = own.with_edits(self._core.catalog, rest, [schema.map_id for schema in made])
        transaction.check()
        for was, hidden in moved:
            self._move(transaction, was, hidden)
        for hidden in made if rows else ():
            transaction.write(hidden.map_id, hidden.version, rows or {}, BLIND, made=True)
        transaction.defines(following)

    def _require_unchanged(
        self, before: Catalog, own: OwnDefinitions, edits: Sequence[Edit]
    ) -> None:
        """Raises SchemaChanged when others have changed what ``edits`` were bound to, while maps
        were made."""
        after = own.over(self._core.catalog)
        for edit in edits:
            match edit:
                case PutMap(schema=schema) if schema.map_id:
                    same = before.find_id(schema.map_id) == after.find_id(schema.map_id)
                case PutMap(schema=schema):
                    same = before.find(schema.name) == after.find(schema.name)
                case DropMap(name=name):
                    same = before.find(name) == after.find(name)
                case _:
                    same = before.views == after.views and before.namespaces == after.namespaces
            if not same:
                raise SchemaChanged("the catalog was changed by another statement meanwhile")

    @staticmethod
    def _require_possible(edits: Sequence[Edit]) -> None:
        if defines_types(edits):
            raise refused("a definition of a type")

    async def _make(
        self, transaction: OpenTransaction, wanted: Sequence[MapSchema]
    ) -> list[MapSchema]:
        """New maps of these schemas, under hidden names."""
        if not wanted:
            return []
        transaction.makes_maps()
        began, core = transaction.id.began, self._core
        names = [
            made_name(core.number, began, next(self._numbers), schema.local) for schema in wanted
        ]
        edits = [
            PutMap(_unnumbered(replace(schema, name=name, namespace=PUBLIC, map_id=0)))
            for schema, name in zip(wanted, names, strict=True)
        ]
        await self._edited(lambda _: edits)
        found = [core.catalog.find(name) for name in names]
        if None in found:
            raise SerializationFailure(
                "a map was dropped while it was made", hint="Run the transaction again."
            )
        return [schema for schema in found if schema is not None]

    async def _edited(self, edits_of: Callable[[Catalog], Sequence[Edit]]) -> None:
        for attempt in range(ATTEMPTS):
            catalog = self._core.catalog
            try:
                await self._catalog.edit(edits_of(catalog), catalog.version)
            except SchemaChanged:
                if attempt == ATTEMPTS - 1:
                    raise
                await asyncio.sleep(PAUSE * (attempt + 1))
            else:
                return

    @staticmethod
    def _move(transaction: OpenTransaction, was: MapSchema, hidden: MapSchema) -> None:
        """The rows that the transaction has written to a map of its own, in the form of the next
        one. Those of ``was`` stay, for ROLLBACK TO."""
        written = transaction.writes.of(was.map_id)
        layout = Layout(was, hidden)
        rows = {key: layout.row(each.row) for key, each in written.items() if each.row is not None}
        entries = {
            tuple([row[position] for position in hidden.key_positions]): row
            for row in rows.values()
        }
        if entries:
            transaction.write(hidden.map_id, hidden.version, entries, BLIND, made=True)

    async def rewrite(
        self, transaction: OpenTransaction, schema: MapSchema, rows: Mapping[Key, Row]
    ) -> None:
        """Put a new map in the place of one that the transaction has altered, which has ``schema``
        there. Its ``rows`` are writes of the transaction. Raises as ``define``, and
        LimitExceeded."""
        edits: list[Edit] = [DropMap(schema.name), PutMap(replace(schema, map_id=0))]
        await self.define(transaction, edits, self._core.catalog.version, rows)

    def checking(self, transaction: OpenTransaction) -> Catalog:
        """The catalog by which the rows of the transaction are checked. Raises
        SerializationFailure."""
        own, now = transaction.definitions, self._core.catalog
        return now if own is None else own.checking(now)

    # --- COMMIT ---------------------------------------------------------------------------------

    async def decide_alone(self, transaction: OpenTransaction) -> None:
        """Commit the definitions of a transaction that has written nothing. Raises
        SerializationFailure, DuplicateMap and other errors of definitions: nothing has happened;
        OutcomeUnknown."""
        core = self._core
        noted = DecidedTransaction(transaction.id.began, core.number, core.timestamp())
        await self.decide(transaction, noted, None)

    async def decide(
        self,
        transaction: OpenTransaction,
        noted: DecidedTransaction,
        doubt: Callable[[RemudaError], None] | None,
    ) -> None:
        """Commit the definitions; the rows are prepared everywhere. With ``doubt``, this goes on
        until the end is known, and calls it when that takes long. Raises as ``decide_alone``."""
        own = transaction.definitions
        assert own is not None
        core = self._core
        until = core.world.clock.monotonic() + DOUBT_PATIENCE
        forgotten = tuple(each for each in self._answered if not self._leads(each))
        attempts = 0
        in_doubt = 0
        """The version of the catalog for which the edit may have been made; 0: none."""
        while True:
            catalog = core.catalog
            if (found := catalog.end_of(noted)) is not None:
                if not found.timestamp:
                    raise JobAborted("the transaction was rolled back meanwhile")
                break
            # What others have changed first is certain: a catalog that a member has is decided, and
            # an edit of an earlier one is made no more.
            in_doubt = in_doubt if in_doubt == catalog.version else 0
            edits = own.decision(catalog)
            try:
                await self._catalog.decide(noted, edits, catalog.version, forgotten)
            except SchemaChanged:
                attempts += 1
                if attempts == ATTEMPTS:
                    raise
                await asyncio.sleep(PAUSE * attempts)
            except RemudaError as error:
                if isinstance(error, TransientError) and error.may_have_run:
                    in_doubt = catalog.version
                late = core.world.clock.monotonic() >= until
                if not in_doubt and (late or not isinstance(error, TransientError)):
                    raise error from None
                if self._given_up or (late and doubt is None):
                    raise self._unknown(transaction, error) from None
                if late and doubt is not None:
                    doubt(self._unknown(transaction, error))
                await asyncio.sleep(DOUBT_PAUSE)
        self._answered = [each for each in self._answered if each not in forgotten]
        self._answered.append(noted)
        for listener in self.on_committed:
            listener(own.maps)

    @property
    def _given_up(self) -> bool:
        """Whether the others go on without this member."""
        core = self._core
        return core.stopping or core.number not in core.view.by_number

    def _leads(self, noted: DecidedTransaction) -> bool:
        """Whether a part may not have ended yet."""
        return self._committing.leads(TransactionId(noted.began, noted.member))

    @staticmethod
    def _unknown(transaction: OpenTransaction, error: RemudaError) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"it is not known whether transaction {transaction.name} was committed",
            detail=error.message,
            hint="Look for what it has defined before you run it again.",
        )

    # --- what is left over ----------------------------------------------------------------------

    def ended(self) -> None:
        """A transaction has ended, in whatever way."""
        self._look_for_left()

    def _on_view(self, _before: View, _view: View) -> None:
        self._look_for_left()

    def _is_left(self, schema: MapSchema) -> bool:
        core = self._core
        if not is_made(schema):
            return False
        member, began = maker_of(schema)
        if member == core.number:
            return not self._is_open(f"{member}:{began}")
        return core.coordinator == core.number and member not in core.view.by_number

    def _look_for_left(self) -> None:
        """Also when the catalog has changed: an edit that makes a map may be on its way when its
        transaction ends, and appear afterwards."""
        if self._begun and not self._sweeping and self._left(self._core.catalog):
            self._sweeping = True
            self._core.spawn(self._sweep(), "maps of ended transactions")

    def _left(self, catalog: Catalog) -> list[Edit]:
        return [DropMap(schema.name) for schema in catalog.maps if self._is_left(schema)]

    async def _sweep(self) -> None:
        try:
            while self._left(self._core.catalog) and not self._core.stopping:
                try:
                    await self._edited(self._left)
                except RemudaError as error:
                    log.warning(
                        "maps of ended transactions stay", extra=fields(error=error.message)
                    )
                    await asyncio.sleep(SWEEP_PAUSE)
        finally:
            self._sweeping = False


def refused(what: str) -> ActiveTransaction:
    return ActiveTransaction(
        f"{what} cannot run inside a transaction block",
        hint="Run it before BEGIN, or after COMMIT.",
    )


def _read_by(found: Planned) -> set[int]:
    """The maps whose rows a statement reads."""
    match found:
        case PlannedQuery() | PlannedInsert() | PlannedChange():
            return maps_read(found)
        case PlannedExplain(statement=inner):
            return _read_by(inner)
        case _:
            return set()


def _written_by(found: Planned, own: Catalog) -> set[int]:
    """The maps whose rows a statement writes, and those of rows that may follow them."""
    match found:
        case PlannedInsert(schema=schema) | PlannedChange(schema=schema):
            written = {schema.map_id}
        case CopyStatement(source=InsertStatement(schema=schema)):
            written = {schema.map_id}
        case PlannedExplain(statement=inner):
            return _written_by(inner, own)
        case _:
            return set()
    waiting = list(written)
    while waiting:
        schema_ = own.find_id(waiting.pop())
        children = set() if schema_ is None else set(schema_.children) - written
        written |= children
        waiting += children
    return written


def to_rewrite(own: OwnDefinitions, found: Planned) -> set[int]:
    """The maps of others that a statement reads or writes, and whose rows have another form since
    the transaction has altered them."""
    wanted = _written_by(found, own.own)
    return (wanted | _read_by(found)) & own.altered | wanted & own.constrained


class CatalogDecision:
    """The edit by which the catalog commits a transaction (``transactions.catalog_part``)."""

    def __init__(self, definitions: TransactionDefinitions, transaction: OpenTransaction) -> None:
        self._definitions = definitions
        self._transaction = transaction
        self.refused = False

    @property
    def catalog(self) -> Catalog:
        return self._definitions.checking(self._transaction)

    async def decide(
        self, transaction: TransactionId, timestamp: int, doubt: Callable[[RemudaError], None]
    ) -> None:
        noted = DecidedTransaction(transaction.began, transaction.near, timestamp)
        try:
            await self._definitions.decide(self._transaction, noted, doubt)
        except RemudaError as error:
            self.refused = not isinstance(error, OutcomeUnknown)
            raise


def _schema(edit: Edit) -> MapSchema:
    assert isinstance(edit, PutMap)
    return edit.schema


def _following(before: Catalog, schema: MapSchema) -> MapSchema:
    """The schema that ALTER makes of a map of the transaction, as the map itself would get it; that
    of another one as it is."""
    known = before.find_id(schema.map_id) if schema.map_id else None
    return schema if known is None else next_map(known, schema, schema.version, count(1))


def _is_new(edit: Edit, before: Catalog, own: OwnDefinitions) -> bool:
    """Whether an edit takes a new map: for a new one, and for another form of one that the
    transaction has made."""
    if not isinstance(edit, PutMap):
        return False
    known = before.find_id(edit.schema.map_id) if edit.schema.map_id else None
    if known is None:
        return True
    if known.map_id not in own.made or known.sequence is not None:
        return False
    indexes = known.indexes, edit.schema.indexes
    return not same_form(known, edit.schema) or indexes[0] != indexes[1]


def _unnumbered(schema: MapSchema) -> MapSchema:
    """As a new map: it gets ids and OIDs of its own. Only the transaction knows its foreign keys,
    so that others may change the parent until the commit."""
    return replace(
        schema,
        version=1,
        oid=0,
        key_oid=0,
        key_index_oid=0,
        foreign_keys=(),
        children=(),
        indexes=tuple(replace(index, index_id=0) for index in schema.indexes),
    )


def _shown(hidden: MapSchema, schema: MapSchema) -> MapSchema:
    """A made map as its transaction sees it: with the OIDs of the one in whose place it comes."""
    return replace(
        hidden,
        name=schema.name,
        namespace=schema.namespace,
        oid=schema.oid,
        key_oid=schema.key_oid,
        key_index_oid=schema.key_index_oid,
        foreign_keys=schema.foreign_keys,
        children=schema.children,
    )
