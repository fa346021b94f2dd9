"""The owner of everything, and the users, as the relations of roles show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

from remuda.catalog.oids import FIRST_OID, OID_LIMIT
from remuda.catalog.pg_objects import OWNER_OID
from remuda.catalog.system_relations import OWNER
from remuda.catalog.users import ALL, Role, User
from remuda.session.system.rows import Row, row

_HIDDEN: Final = "********"


class _Listed(NamedTuple):
    oid: int
    name: str
    admin: bool
    settings: tuple[str, ...] = ()
    """As ``name=value``."""

    @property
    def config(self) -> list[str] | None:
        return list(self.settings) or None


def _listed(users: Iterable[User]) -> Iterator[_Listed]:
    yield _Listed(OWNER_OID, OWNER, admin=True)
    taken: set[int] = set()
    for user in sorted(users, key=lambda user: user.name):
        oid = _oid(user.name, taken)
        taken.add(oid)
        if user.name != OWNER:
            settings = tuple(f"{name}={value}" for name, value in sorted(user.settings.items()))
            yield _Listed(oid, user.name, user.has(Role.ADMIN, ALL), settings)


def _oid(name: str, taken: set[int]) -> int:
    """The same on all members as long as the users are the same."""
    size = OID_LIMIT - FIRST_OID
    place = crc32(name.encode()) % size
    while FIRST_OID + place in taken:
        place = (place + 1) % size
    return FIRST_OID + place


def _roles(users: Iterable[User]) -> Iterator[Row]:
    for role in _listed(users):
        yield row("pg_roles", **_role(role, _HIDDEN), rolconfig=role.config)


def _authid(users: Iterable[User]) -> Iterator[Row]:
    for role in _listed(users):
        yield row("pg_authid", **_role(role, None))


def _role(role: _Listed, rolpassword: str | None) -> dict[str, Any]:
    admin = role.admin
    return {
        "oid": role.oid, "rolname": role.name, "rolsuper": admin, "rolinherit": True,
        "rolcreaterole": admin, "rolcreatedb": admin, "rolcanlogin": True, "rolreplication": False,
        "rolconnlimit": -1, "rolpassword": rolpassword, "rolbypassrls": admin,
    }  # fmt: skip


def _role_settings(users: Iterable[User]) -> Iterator[Row]:
    """The settings of users, which hold in every database (0)."""
    for role in _listed(users):
        if role.settings:
            yield row("pg_db_role_setting", setdatabase=0, setrole=role.oid, setconfig=role.config)


def _users(relation: str, users: Iterable[User], passwd: str | None) -> Iterator[Row]:
    for oid, name, admin, settings in _listed(users):
        yield row(
            relation, usename=name, usesysid=oid, usecreatedb=admin, usesuper=admin,
            userepl=False, usebypassrls=admin, passwd=passwd, useconfig=list(settings) or None,
        )  # fmt: skip


def rows_of_roles(users: Sequence[User]) -> Mapping[str, list[Row]]:
    """The rows of each relation of roles. An administrator is told as a superuser: that is the
    role by which PostgreSQL's tools tell who may do everything."""
    return {
        "pg_roles": list(_roles(users)),
        "pg_authid": list(_authid(users)),
        "pg_db_role_setting": list(_role_settings(users)),
        "pg_user": list(_users("pg_user", users, _HIDDEN)),
        "pg_shadow": list(_users("pg_shadow", users, None)),
    }
