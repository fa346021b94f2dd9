"""The owner of everything, as the relations of roles show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.pg_objects import OWNER_OID
from remuda.catalog.system_relations import OWNER
from remuda.session.system.rows import Row, row

_HIDDEN: Final = "********"


def pg_roles(_catalog: Catalog) -> Iterator[Row]:
    yield _role("pg_roles", rolpassword=_HIDDEN)


def pg_authid(_catalog: Catalog) -> Iterator[Row]:
    yield _role("pg_authid")


def _role(relation: str, rolpassword: str | None = None) -> Row:
    return row(
        relation, oid=OWNER_OID, rolname=OWNER, rolsuper=True, rolinherit=True, rolcreaterole=True,
        rolcreatedb=True, rolcanlogin=True, rolreplication=False, rolconnlimit=-1,
        rolpassword=rolpassword, rolbypassrls=True,
    )  # fmt: skip


def pg_user(_catalog: Catalog) -> Iterator[Row]:
    yield _user("pg_user", passwd=_HIDDEN)


def pg_shadow(_catalog: Catalog) -> Iterator[Row]:
    yield _user("pg_shadow")


def _user(relation: str, passwd: str | None = None) -> Row:
    return row(
        relation, usename=OWNER, usesysid=OWNER_OID, usecreatedb=True, usesuper=True,
        userepl=False, usebypassrls=True, passwd=passwd,
    )  # fmt: skip
