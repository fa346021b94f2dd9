"""Who may do what on this member: the one place where requests of clients are checked.

A statement is checked after it has been bound, by the roles that its plan says it needs
(``session/privileges.py``). Other requests are checked before they are served, here and, when they
are forwarded, by the member that serves them as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.own.definitions import OwnDefinitions
from remuda.catalog.users import ALL, Role, User, differing, lacking
from remuda.errors import InsufficientPrivilege, NotSupported, UndefinedObject
from remuda.member.base.call import Call
from remuda.member.security.users_file import UsersFile
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.session.planning import Planned, needs
from remuda.session.privileges import Need, check_needs, visible
from remuda.sql.scope.statements import PrivilegeStatement, SessionStatement
from remuda.sql.trees.session import NO_ROLE, ROLE, SessionTree, SetTree

REREAD_INTERVAL: Final = 1.0
"""Seconds between two looks at the file of users."""
_CATALOGS_KEPT: Final = 1000
HIDDEN_TEXT: Final = "<insufficient privilege>"
"""What stands for the text of another user's statement."""


class Access:
    """``active`` is False on a member without users: everybody may do everything.

    The user "" is the member itself: what it asks of others for a request that was checked.
    """

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        """``catalog`` gives that of the member as it is now."""
        self._catalog = catalog
        self._file: UsersFile | None = None
        self._catalogs: dict[tuple[str, int], tuple[Catalog, Catalog]] = {}
        self.active = False

    def use(self, file: UsersFile | None) -> None:
        self._file = file
        self.active = file is not None

    async def watch(self) -> None:
        """Read the users again when their file changes."""
        while self._file is not None:
            await asyncio.sleep(REREAD_INTERVAL)
            self._file.look()

    def user(self, name: str) -> User | None:
        """None: may do everything. Raises InsufficientPrivilege for one that exists no more."""
        if self._file is None or not name:
            return None
        found = self._file.users.find(name)
        if found is None:
            raise InsufficientPrivilege(f'user "{name}" does not exist any more')
        return found

    def as_login(self, name: str, tree: SessionTree) -> SessionTree:
        """SET ROLE to the user of the login changes nothing, and neither does any without users.
        Raises NotSupported for other users."""
        if not isinstance(tree, SetTree) or (tree.name or "").lower() != ROLE:
            return tree
        if tree.value in (None, NO_ROLE):
            return tree
        user = self.user(name)
        if user is not None and user.name != tree.value:
            raise NotSupported(
                "a session cannot become another user", hint="Log in as the other user."
            )
        return replace(tree, value=NO_ROLE)

    def settings(self, name: str) -> Mapping[str, str]:
        """With which the PostgreSQL sessions of a user begin, by the names of settings in lower
        case."""
        user = self.user(name)
        return {} if user is None else user.settings

    def require(self, name: str, role: Role, scope: str) -> None:
        """Raises InsufficientPrivilege."""
        user = self.user(name)
        if user is not None:
            user.require(role, scope)

    def is_admin(self, name: str) -> bool:
        user = self.user(name)
        return user is None or user.has(Role.ADMIN, ALL)

    def users(self, name: str) -> Sequence[User]:
        """Those that a user may know of: an administrator all, another one itself."""
        user = self.user(name)
        if user is not None and not user.has(Role.ADMIN, ALL):
            return (user,)
        return () if self._file is None else tuple(self._file.users.by_name.values())

    def owns(self, name: str, owner: str) -> bool:
        """Whether a user may see and end what belongs to ``owner``."""
        return name == owner or self.is_admin(name)

    def require_owner(self, name: str, owner: str) -> None:
        """Before a user sees or ends what belongs to ``owner``. The member itself may. Raises
        InsufficientPrivilege."""
        if self.active and name and not self.owns(name, owner):
            raise lacking(name, Role.ADMIN, ALL)

    def check(self, name: str, found: Planned, own: OwnDefinitions | None = None) -> None:
        """Raises InsufficientPrivilege when the user may not run this statement. ``own``: the
        definitions of its transaction."""
        user = self.user(name)
        if user is not None and not isinstance(found, SessionStatement):
            catalog = self._catalog()
            check_needs(user, needs(found, catalog if own is None else own.over(catalog)))

    def compare(self, name: str, found: PrivilegeStatement) -> str:
        """GRANT and REVOKE change no file: they succeed where it says already what they ask for.
        Gives the tag. Raises NotSupported (with the command that changes it), UndefinedObject."""
        if self._file is None:
            if not found.grants:
                raise NotSupported(
                    "REVOKE has no effect without users: everybody may do everything",
                    hint="Start the members with users_file: docs/security.md.",
                )
            return found.tag
        if found.public and found.grants and found.roles:
            raise NotSupported(
                "PUBLIC has no roles: every user has roles of its own",
                hint="Name the users.",
            )
        for user, position in found.users:
            known = self._file.users.find(user or name)
            if known is None:
                raise UndefinedObject(f'role "{user or name}" does not exist', position=position)
            for role, scope in found.roles:
                if known.has(role, scope) != found.grants:
                    raise differing(known.name, role, scope, found.tag)
        return found.tag

    def catalog(self, name: str, own: OwnDefinitions | None = None) -> Catalog:
        """The part of the catalog that the user may see; ``own``: the definitions of the user's
        transaction. Raises as ``OwnDefinitions.over``."""
        if own is not None:
            over, user = own.over(self._catalog()).shown, self.user(name)
            return over if user is None else visible(over, user)
        catalog, user = self._catalog().shown, self.user(name)
        if user is None or self._file is None:
            return catalog
        key = (name, self._file.generation)
        known = self._catalogs.get(key)
        if known is None or known[0] is not catalog:
            if len(self._catalogs) >= _CATALOGS_KEPT:
                self._catalogs.clear()
            known = self._catalogs[key] = (catalog, visible(catalog, user))
        return known[1]

    # --- requests that are no statements ------------------------------------------------------

    def check_call(self, call: Call) -> None:
        """Raises InsufficientPrivilege, before the request is served."""
        user = self.user(call.user)
        if user is None or call.rpc_type in CHECKED_ELSEWHERE:
            return
        find = _NEEDS.get(call.rpc_type)
        if find is None:
            raise lacking(user.name, Role.ADMIN, ALL)
        check_needs(user, find(call.pbody, self._catalog()))


CHECKED_ELSEWHERE: Final = frozenset(
    {
        RpcType.RUN_QUERY,  # by its plan
        RpcType.CREATE_PREPARED_STATEMENT,
        RpcType.GET_QUERY_PLAN_FRAGMENTS,
        RpcType.CANCEL_QUERY,  # by its owner
        RpcType.RESUME_PAUSED_QUERY,
        RpcType.COPY_DATA,  # by its statement, on its connection
        RpcType.CHANGES_READ,  # by its query
        RpcType.CHANGES_END,  # by its connection
        RpcType.JOB_WRITE,
        RpcType.JOB_TASK_END,
        RpcType.JOB_COMMIT,
        RpcType.JOB_ABORT,
        RpcType.JOB_OUTCOME,
        RpcType.READ_LEASE,  # shows nothing of maps
        RpcType.TRANSACTION_BEGIN,  # what is done in it is checked
        RpcType.TRANSACTION_END,  # by its owner
        RpcType.TRANSACTION_SAVEPOINT,
        RpcType.TRANSACTION_SUSPEND,
        RpcType.CLUSTER_INFO,  # shows what the user may see
        RpcType.GET_CATALOGS,
        RpcType.GET_SCHEMAS,
        RpcType.GET_TABLES,
        RpcType.GET_COLUMNS,
        RpcType.GET_SERVER_META,  # shows nothing of maps
    }
)
"""Requests whose own part of the member asks ``Access``. What is neither here nor below is for
administrators."""


def _named(name: str, map_id: int, catalog: Catalog) -> str:
    """The map that a request means: requests are served by id, whatever name they say."""
    found = catalog.find_id(map_id) if map_id else None
    return name if found is None else found.name


def _keys(role: Role) -> Callable[[bytes, Catalog], Iterator[Need]]:
    def find(pbody: bytes, catalog: Catalog) -> Iterator[Need]:
        message = user_pb2.KeysRequest.FromString(pbody)
        name = _named(message.map, message.map_id, catalog)
        yield Need(role, name)
        if message.want_old:
            yield Need(Role.READ, name)

    return find


def _put(pbody: bytes, catalog: Catalog) -> Iterator[Need]:
    message = user_pb2.PutRequest.FromString(pbody)
    name = _named(message.map, message.map_id, catalog)
    yield Need(Role.WRITE, name)
    if message.want_old:
        yield Need(Role.READ, name)


def _compute(pbody: bytes, catalog: Catalog) -> Iterator[Need]:
    message = user_pb2.ComputeRequest.FromString(pbody)
    name = _named(message.map, message.map_id, catalog)
    yield Need(Role.WRITE, name)
    yield Need(Role.READ, name)  # its answer tells what was there, or what has become of it


def _checked_write(pbody: bytes, catalog: Catalog) -> Iterator[Need]:
    message = user_pb2.CheckedWrite.FromString(pbody)
    name = _named(message.map, message.map_id, catalog)
    yield Need(Role.WRITE, name)
    if message.want_old or message.expected:
        yield Need(Role.READ, name)  # whether it was done tells what was there


def _put_batch(pbody: bytes, catalog: Catalog) -> Iterator[Need]:
    message = user_pb2.PutBatchRequest.FromString(pbody)
    yield Need(Role.WRITE, _named(message.map, message.map_id, catalog))


def _map_name(role: Role | None) -> Callable[[bytes, Catalog], Iterator[Need]]:
    def find(pbody: bytes, _catalog: Catalog) -> Iterator[Need]:
        yield Need(role, user_pb2.MapName.FromString(pbody).name)

    return find


def _create(pbody: bytes, _catalog: Catalog) -> Iterator[Need]:
    yield Need(Role.ADMIN, user_pb2.CreateMap.FromString(pbody).schema.name)


def _job_begin(pbody: bytes, _catalog: Catalog) -> Iterator[Need]:
    yield Need(Role.WRITE, user_pb2.JobBegin.FromString(pbody).map)


def _cluster(_pbody: bytes, _catalog: Catalog) -> Iterator[Need]:
    yield Need(Role.ADMIN, ALL)


_NEEDS: Final[dict[int, Callable[[bytes, Catalog], Iterator[Need]]]] = {
    RpcType.MAP_GET: _keys(Role.READ),
    RpcType.MAP_REMOVE: _keys(Role.WRITE),
    RpcType.MAP_PUT: _put,
    RpcType.MAP_PUT_BATCH: _put_batch,
    RpcType.MAP_COMPUTE: _compute,
    RpcType.MAP_GET_VERSIONED: _keys(Role.READ),
    RpcType.MAP_CHECKED_WRITE: _checked_write,
    RpcType.MAP_TTL: _keys(Role.READ),
    RpcType.MAP_SET_TTL: _keys(Role.WRITE),
    RpcType.MAP_SIZE: _map_name(Role.READ),
    RpcType.DESCRIBE_MAP: _map_name(None),
    RpcType.CREATE_MAP: _create,
    RpcType.DROP_MAP: _map_name(Role.ADMIN),
    RpcType.JOB_BEGIN: _job_begin,
    RpcType.MEMBER_STATE: _cluster,
    RpcType.SPARK_WORK: _cluster,
    RpcType.SPARK_ROWS: _cluster,
}
