"""Access methods of indexes and what they compare with: ``pg_am``, ``pg_opclass``, ``pg_opfamily``.

The kinds SORTED, HASH and BITMAP of indexes are PostgreSQL's btree and hash, and a method of our
own. OIDs are PostgreSQL's, where it has the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.pg_objects import (
    HANDLERS,
    HEAP,
    METHODS,
    OWNER_OID,
    PG_CATALOG_OID,
    Index,
    access_method,
)
from remuda.catalog.pg_operator_classes import CLASSES
from remuda.session.system.rows import Row, row

_HANDLERS: Final = {name: oid for oid, name in HANDLERS.items()}


_SHORT: Final = {"btree": "bt"}
"""Names of methods in those of their handlers."""


def method_of(index: Index) -> int:
    return METHODS[access_method(index)]


def pg_am(_catalog: Catalog) -> Iterator[Row]:
    handler = _HANDLERS["heap_tableam_handler"]
    yield row("pg_am", oid=HEAP, amname="heap", amhandler=handler, amtype="t")
    for name, oid in METHODS.items():
        handler = _HANDLERS[_SHORT.get(name, name) + "handler"]
        yield row("pg_am", oid=oid, amname=name, amhandler=handler, amtype="i")


def pg_opclass(_catalog: Catalog) -> Iterator[Row]:
    for each in CLASSES:
        yield row(
            "pg_opclass", oid=each.oid, opcmethod=each.method, opcname=each.name,
            opcnamespace=PG_CATALOG_OID, opcowner=OWNER_OID, opcfamily=each.family,
            opcintype=each.type, opcdefault=each.default,
        )  # fmt: skip


def pg_opfamily(_catalog: Catalog) -> Iterator[Row]:
    for method, family, name in sorted({(c.method, c.family, c.family_name) for c in CLASSES}):
        yield row(
            "pg_opfamily", oid=family, opfmethod=method, opfname=name,
            opfnamespace=PG_CATALOG_OID, opfowner=OWNER_OID,
        )  # fmt: skip
