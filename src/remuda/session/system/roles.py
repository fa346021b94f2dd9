"""The owner of everything, and the users, as the relations of roles show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from remuda.catalog.roles import ListedRole, listed_roles
from remuda.catalog.users import User
from remuda.session.system.rows import Row, row

_HIDDEN: Final = "********"


def _roles(users: Iterable[User]) -> Iterator[Row]:
    for role in listed_roles(users):
        yield row("pg_roles", **_role(role, _HIDDEN), rolconfig=role.config)


def _authid(users: Iterable[User]) -> Iterator[Row]:
    for role in listed_roles(users):
        yield row("pg_authid", **_role(role, None))


def _role(role: ListedRole, rolpassword: str | None) -> dict[str, Any]:
    admin = role.admin
    return {
        "oid": role.oid, "rolname": role.name, "rolsuper": admin, "rolinherit": True,
        "rolcreaterole": admin, "rolcreatedb": admin, "rolcanlogin": True, "rolreplication": False,
        "rolconnlimit": -1, "rolpassword": rolpassword, "rolbypassrls": admin,
    }  # fmt: skip


def _role_settings(users: Iterable[User]) -> Iterator[Row]:
    """The settings of users, which hold in every database (0)."""
    for role in listed_roles(users):
        if role.settings:
            yield row("pg_db_role_setting", setdatabase=0, setrole=role.oid, setconfig=role.config)


def _users(relation: str, users: Iterable[User], passwd: str | None) -> Iterator[Row]:
    for oid, name, admin, settings, _ in listed_roles(users):
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
