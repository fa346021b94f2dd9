"""The functions of the grid as ``pg_proc`` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.pg_objects import OWNER_OID, PG_CATALOG_OID
from remuda.catalog.pg_types import BY_NAME
from remuda.session.system.rows import Row, row
from remuda.sql.scope.routines import routines

_LANGUAGE: Final = 12
_ANY: Final = BY_NAME["any"].oid


def pg_proc(_catalog: Catalog) -> Iterator[Row]:
    for routine in routines():
        yield row(
            "pg_proc", oid=routine.oid, proname=routine.name, pronamespace=PG_CATALOG_OID,
            proowner=OWNER_OID, prolang=_LANGUAGE, procost=1.0, prokind=routine.kind,
            provolatile="i", proparallel="s", prorettype=_ANY, prosrc=routine.name,
        )  # fmt: skip
