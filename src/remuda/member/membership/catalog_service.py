"""The catalog of the cluster: changes go to the coordinator. It has a majority decide each one
(``catalog_votes``) and installs it on every member before it answers, so that a client that gets
the answer finds the map everywhere. No member uses a catalog that is not decided."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import (
    DecidedTransaction,
    DropMap,
    DropNamespace,
    DropType,
    DropView,
    Edit,
    PutMap,
    PutNamespace,
    PutType,
    PutView,
)
from remuda.cluster.lease import takeover_delay
from remuda.cluster.succession import agreed
from remuda.datatypes.schema import MapSchema
from remuda.errors import (
    MemberUnavailable,
    SchemaChanged,
    TransientError,
    UndefinedMap,
    ViewChanged,
)
from remuda.limits import CLOCK_DRIFT
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Routes, Wing
from remuda.member.membership.catalog_votes import ASK_AGAIN, VIEW_PATIENCE, CatalogVotes
from remuda.member.state.log import fields
from remuda.rpc import codec, type_codec
from remuda.rpc.messages import control_pb2, user_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request
from remuda.snapshot.catalog import (
    decode_catalog,
    decode_decided,
    decode_namespace,
    encode_catalog,
    encode_decided,
    encode_namespace,
)
from remuda.storage.maps.map_store import MapStore
from remuda.transaction.states import TransactionId

log = logging.getLogger(__name__)

ATTEMPTS = 10
"""To make a change while other members change the catalog, too."""


class CatalogService(Wing):
    def __init__(self, core: Core, peers: Peers) -> None:
        self._core = core
        self._peers = peers
        self._lock = asyncio.Lock()
        self._catching_up = False
        self._unneeded: set[DecidedTransaction] = set()
        """Notes that nobody will ask for any more, of members that are lost."""
        self.votes = CatalogVotes(
            core, peers, lambda: self._state(core.catalog), self._install, self._check
        )
        self.unique_since: dict[int, int] = {}
        """By map id: until then rows may have been written by some who did not know of a unique
        index, or not that all others know of it. (Of a map that was made with it: not at all.)"""

    def routes(self) -> Routes:
        return Routes(
            forming={
                RpcType.CATALOG_CHANGE: self.on_change,
                RpcType.CATALOG_INSTALL: self.on_install,
                RpcType.CATALOG_VOTE: self.votes.on_vote,
            }
        )

    async def create(self, schema: MapSchema, *, if_not_exists: bool) -> MapSchema:
        """The map as it is after the change. Raises DuplicateMap, InvalidDefinition."""
        existing = self._core.catalog.find(schema.name)
        if if_not_exists and existing is not None:
            return existing
        change = control_pb2.CatalogChange(context=self._core.context())
        change.create.schema.CopyFrom(codec.encode_schema(schema))
        change.create.if_not_exists = if_not_exists
        await self._change(change)
        made = self._core.catalog.find(schema.name)
        if made is None:
            raise UndefinedMap(f'map "{schema.name}" was dropped while it was created')
        return made

    async def drop(self, name: str, *, if_exists: bool) -> None:
        """Raises UndefinedMap."""
        change = control_pb2.CatalogChange(context=self._core.context())
        change.drop.CopyFrom(user_pb2.MapName(name=name, if_exists=if_exists))
        await self._change(change)

    async def edit(self, edits: Sequence[Edit], version: int) -> None:
        """Make changes together that were worked out from the catalog of ``version``. Raises
        SchemaChanged when the catalog has got another one since (which is installed here then)."""
        change = control_pb2.CatalogChange(context=self._core.context())
        change.edits.version = version
        for edit in edits:
            _fill_edit(change.edits.edits.add(), edit)
        await self._change(change)

    async def decide(
        self,
        transaction: DecidedTransaction,
        edits: Sequence[Edit],
        version: int,
        forgotten: Sequence[DecidedTransaction],
    ) -> None:
        """Make the definitions of a transaction together, and note it in the catalog; done already,
        if the note is there. ``forgotten``: notes that nobody will ask for any more. Raises as
        ``edit``."""
        change = control_pb2.CatalogChange(context=self._core.context())
        change.edits.version = version
        change.edits.decides.CopyFrom(encode_decided(transaction))
        change.edits.forgets.extend(map(encode_decided, forgotten))
        for edit in edits:
            _fill_edit(change.edits.edits.add(), edit)
        await self._change(change)

    async def end_of(self, transaction: TransactionId) -> int | None:
        """How a transaction with definitions has ended, whose near member is lost: its commit
        timestamp; None: it has not committed. If nobody knows, it never will: the catalog notes
        that first, so an edit that comes late finds another version. Raises TransientError."""
        noted = DecidedTransaction(transaction.began, transaction.near)
        change = control_pb2.CatalogChange(context=self._core.context())
        change.edits.decides.CopyFrom(encode_decided(noted))
        await self._change(change)
        found = self._core.catalog.end_of(noted)
        if found is None:  # all parts have ended meanwhile
            raise MemberUnavailable("the end of the transaction is not known any more")
        return found.timestamp or None

    def forget(self, transaction: TransactionId) -> None:
        """The note of a transaction goes with the next change of this member."""
        self._unneeded.add(DecidedTransaction(transaction.began, transaction.near))

    async def _change(self, change: control_pb2.CatalogChange) -> None:
        """Have the coordinator make a change; when this returns it is installed here as well."""
        coordinator = self._core.coordinator
        if coordinator == self._core.number:
            done = await self._serialize(change)
        else:
            reply = await self._peers.request(coordinator, RpcType.CATALOG_CHANGE, change)
            state = control_pb2.CatalogState.FromString(reply.pbody)
            self._install(state)
            done = not state.outdated
        if not done:
            raise SchemaChanged(
                "the catalog was changed by another statement meanwhile",
                hint="Run the statement again.",
            )

    def on_change(self, request: Request) -> None:
        change = control_pb2.CatalogChange.FromString(request.pbody)
        self._core.observe_member(change.context)
        self._core.serve(request, self._answer_change(request, change))

    async def _answer_change(self, request: Request, change: control_pb2.CatalogChange) -> None:
        done = await self._serialize(change)
        state = self._state(self._core.catalog)
        state.outdated = not done
        request.reply(RpcType.CATALOG_CHANGE, state)

    async def _serialize(self, change: control_pb2.CatalogChange) -> bool:
        """One change at a time; False: it was made for an older catalog."""
        core, proposed = self._core, None
        async with self._lock:
            for _ in range(ATTEMPTS):
                await self._lead(may_have_run=proposed is not None)
                if _is_decided(core.catalog, change):
                    await self._install_everywhere(core.catalog)
                    return True
                if proposed is not None and core.catalog.version >= proposed.version:
                    if self._has(proposed):
                        return True
                    if core.catalog.version > proposed.version:
                        break
                if _is_outdated(core.catalog, change):
                    return False
                after = self._applied(core.catalog, change)
                if after is core.catalog:
                    return True
                after = after.forgetting(self._unneeded)
                proposed = self._state(after)
                if await self.votes.decide(proposed):
                    self._unneeded.clear()
                    await self._install_everywhere(after)
                    return True
            raise MemberUnavailable(
                "other members change the catalog at the same time: the change may have been made",
                hint="Look whether it is there before you make it again.",
            )

    async def _lead(self, *, may_have_run: bool) -> None:
        """Raises MemberUnavailable."""
        try:
            completed = await self.votes.lead()
        except MemberUnavailable as error:
            raise error.knowing(may_have_run=may_have_run) from error
        if completed:
            await self._install_everywhere(self._core.catalog)

    def _has(self, proposed: control_pb2.CatalogState) -> bool:
        """Whether the catalog is the one that this member has proposed."""
        return self._core.catalog == decode_catalog(proposed)

    def _applied(self, catalog: Catalog, change: control_pb2.CatalogChange) -> Catalog:
        if change.HasField("create"):
            schema = codec.decode_schema(change.create.schema)
            catalog.check_types(schema)
            return catalog.with_map(schema, if_not_exists=change.create.if_not_exists)[0]
        if change.HasField("edits"):
            edited = catalog.edited([_read_edit(edit) for edit in change.edits.edits])
            if not change.edits.HasField("decides"):
                return edited
            forgotten = [decode_decided(each) for each in change.edits.forgets]
            return edited.deciding(decode_decided(change.edits.decides), forgotten)
        return catalog.without_map(change.drop.name, if_exists=change.drop.if_exists)[0]

    async def _install_everywhere(self, catalog: Catalog) -> None:
        """Return when a majority has the decided ``catalog`` on its disks, and no member may serve
        by an older one. Raises MemberUnavailable."""
        core, reached = self._core, set[int]()
        try:
            await self._install_elsewhere(catalog, reached)
        finally:
            self._install(self._state(catalog))
        await core.wal.safe()
        reached.add(core.number)
        await self._until_no_older_lease(catalog, reached)
        voters = core.view.by_number
        if not agreed(voters, reached):
            raise MemberUnavailable(
                f"{len(reached)} of {len(voters)} members have the new catalog, which is no"
                " majority: the change may be undone",
                hint="Look at it again when the cluster is whole.",
            )

    async def _install_elsewhere(self, catalog: Catalog, reached: set[int]) -> None:
        """On all members that this one hears; those that have it are noted in ``reached``. A member
        in another view is asked again: the others have the catalog already, and to let the
        statement run again would tell its client of this change, as if another one had made it."""
        core = self._core
        deadline = core.world.clock.monotonic() + VIEW_PATIENCE
        asked = {core.number}
        while others := {*core.live_members()} - asked:
            replies = await asyncio.gather(
                *(self._install_at(number, catalog) for number in sorted(others)),
                return_exceptions=True,
            )
            for number, reply in zip(sorted(others), replies, strict=True):
                waits = core.world.clock.monotonic() < deadline
                if isinstance(reply, control_pb2.CatalogState):
                    asked.add(number)
                    reached.add(number)
                elif not isinstance(reply, TransientError):
                    raise reply
                elif not (isinstance(reply, ViewChanged) and waits):
                    asked.add(number)  # it catches up
            if others - asked:
                await asyncio.sleep(ASK_AGAIN)

    async def _until_no_older_lease(self, catalog: Catalog, reached: set[int]) -> None:
        """Return when no member of the view may serve by an older catalog: each has this one, or
        the lease that it had is over. Others may hear a member that this one does not hear; their
        next answers name the new catalog (``CatalogNews``)."""
        core, monotonic = self._core, self._core.world.clock.monotonic
        until = monotonic() + takeover_delay(core.config.lease_seconds, CLOCK_DRIFT)
        while missed := core.view.by_number.keys() - reached:
            if monotonic() >= until:
                return
            await asyncio.sleep(ASK_AGAIN)
            heard = sorted(missed - core.lost.keys())
            installs = (self._install_at(number, catalog) for number in heard)
            replies = await asyncio.gather(*installs, return_exceptions=True)
            for number, reply in zip(heard, replies, strict=True):
                if isinstance(reply, control_pb2.CatalogState):
                    reached.add(number)
                elif not isinstance(reply, TransientError):
                    raise reply

    async def _install_at(self, number: int, catalog: Catalog) -> control_pb2.CatalogState:
        """The catalog of the member afterwards. Raises ViewChanged for one in another view, and
        TransientError."""
        state = self._state(catalog)
        reply = await self._peers.request(number, RpcType.CATALOG_INSTALL, state)
        told = control_pb2.CatalogState.FromString(reply.pbody)
        self._core.observe(told.context)
        return told

    def state(self) -> control_pb2.CatalogState:
        """For a process that joins."""
        state = self._state(self._core.catalog)
        self.votes.add_undecided(state)
        return state

    def install(self, state: control_pb2.CatalogState) -> None:
        """Take over the catalog that another member has given this process."""
        self.votes.learn(state)

    def heard(self, message: control_pb2.Heartbeat) -> None:
        """If the sender has a newer catalog, a change did not reach this one, or is under way."""
        core, context, version = self._core, message.context, message.catalog_version
        if version <= core.catalog.version or context.view != core.view.number:
            return
        core.catalog_news.told(context.sender, version)
        if not self._catching_up:
            self._catching_up = True
            core.spawn(self._catch_up(context.sender, version), "catching up with the catalog")

    async def _catch_up(self, member: int, version: int) -> None:
        # What is under way arrives within a moment by itself.
        await asyncio.sleep(self._core.config.heartbeat_interval)
        try:
            if version > self._core.catalog.version:
                mine = self._state(self._core.catalog)
                reply = await self._peers.request(member, RpcType.CATALOG_INSTALL, mine)
                self._install(control_pb2.CatalogState.FromString(reply.pbody))
        finally:
            self._catching_up = False

    def on_install(self, request: Request) -> None:
        state = control_pb2.CatalogState.FromString(request.pbody)
        self._core.observe_member(state.context)
        self._install(state)
        answer = self._state(self._core.catalog)
        self._core.wal.after(lambda: request.reply(RpcType.CATALOG_INSTALL, answer))

    def _state(self, catalog: Catalog) -> control_pb2.CatalogState:
        former = [*self._core.former_schemas.lately(catalog.maps), *self._altered(catalog)]
        state = encode_catalog(catalog)
        state.context.CopyFrom(self._core.context())
        state.former_maps.extend(codec.encode_schema(schema) for schema in former)
        return state

    def _altered(self, catalog: Catalog) -> Iterator[MapSchema]:
        """Schemas of this member that become former ones when it installs ``catalog``."""
        for schema in catalog.maps:
            store = self._core.stores.get(schema.map_id)
            if store is not None and store.schema.version < schema.version:
                yield store.schema

    def _install(self, state: control_pb2.CatalogState) -> None:
        """Take a newer state over; repeated and older ones change nothing."""
        core = self._core
        core.observe(state.context)
        if state.version <= core.catalog.version:
            return
        catalog = decode_catalog(state)
        gone = [map_id for map_id in core.stores if catalog.find_id(map_id) is None]
        # All stores are made before anything is taken over: a schema that cannot be stored must
        # leave this member as it was.
        made = self._new_stores(catalog)
        core.catalog = catalog
        self.votes.installed(catalog.version)
        core.former_schemas.learn(codec.decode_schema(m) for m in state.former_maps)
        core.pulse.wake()  # for indexes to build, and maps that entries go from
        core.catalog_news.installed(catalog.version)
        core.stores.update(made)
        for schema in catalog.maps:
            before = core.stores[schema.map_id].schema
            altered = before.version < schema.version
            if before.uniques != schema.uniques:
                self.unique_since[schema.map_id] = core.clock.last
            for store in core.copies_of(schema.map_id):
                if store.schema.version < schema.version:
                    core.former_schemas.remember(store.schema)
                    store.alter(schema)
                elif (store.schema.indexes, store.schema.options) != (
                    schema.indexes,
                    schema.options,
                ):
                    store.define_indexes(schema)
            if altered:
                core.listeners.altered.tell(schema.map_id)
        for map_id in gone:
            core.listeners.dropped.tell(map_id)
            core.forget_map(map_id)
            self.unique_since.pop(map_id, None)
        for field in ("context", "undecided"):
            state.ClearField(field)
        if core.wal.active:
            core.wal.catalog_changed(state.version, state.SerializeToString())
        log.info("catalog installed", extra=fields(version=catalog.version, maps=len(catalog.maps)))
        core.listeners.installed.tell()

    def _new_stores(self, catalog: Catalog) -> dict[int, MapStore]:
        """Of the maps that this member does not have. Raises ProtocolError."""
        stores = self._core.stores
        return {s.map_id: MapStore(s) for s in catalog.maps if s.map_id not in stores}

    def _check(self, state: control_pb2.CatalogState) -> None:
        """Raises ProtocolError for a catalog that this member could not install."""
        self._new_stores(decode_catalog(state))


def _is_decided(catalog: Catalog, change: control_pb2.CatalogChange) -> bool:
    """Whether the transaction has ended already: its near member did not hear of it, or is lost."""
    edits = change.edits
    return edits.HasField("decides") and catalog.end_of(decode_decided(edits.decides)) is not None


def _is_outdated(catalog: Catalog, change: control_pb2.CatalogChange) -> bool:
    """Whether it was made for an older catalog."""
    return change.edits.HasField("version") and change.edits.version != catalog.version


def _fill_edit(message: control_pb2.CatalogEdit, edit: Edit) -> None:
    match edit:
        case PutMap(schema=schema):
            message.put_map.CopyFrom(codec.encode_schema(schema))
        case DropMap(name=name):
            message.drop_map = name
        case PutView(view=view):
            message.put_view.CopyFrom(codec.encode_view_definition(view))
        case DropView(name=name):
            message.drop_view = name
        case PutNamespace(namespace=namespace):
            message.put_namespace.CopyFrom(encode_namespace(namespace))
        case DropNamespace(name=name):
            message.drop_namespace = name
        case PutType(enum=enum):
            message.put_type.CopyFrom(type_codec.encode_enum(enum))
        case DropType(oid=oid):
            message.drop_type = oid


def _read_edit(message: control_pb2.CatalogEdit) -> Edit:
    if message.HasField("put_map"):
        return PutMap(codec.decode_schema(message.put_map))
    if message.HasField("drop_map"):
        return DropMap(message.drop_map)
    if message.HasField("put_view"):
        return PutView(codec.decode_view_definition(message.put_view))
    if message.HasField("put_namespace"):
        return PutNamespace(decode_namespace(message.put_namespace))
    if message.HasField("put_type"):
        return PutType(type_codec.decode_enum(message.put_type))
    if message.HasField("drop_type"):
        return DropType(message.drop_type)
    if message.HasField("drop_namespace"):
        return DropNamespace(message.drop_namespace)
    return DropView(message.drop_view)
