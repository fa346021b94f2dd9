"""The functions and operators of the grid as ``pg_proc`` and ``pg_operator`` list them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.pg_objects import OWNER_OID, PG_CATALOG_OID
from remuda.catalog.pg_routines import oid_of, pg_operators
from remuda.session.system.rows import Row, row
from remuda.sql.scope.routines import routines

_LANGUAGE: Final = 12


def pg_proc(_catalog: Catalog) -> Iterator[Row]:
    for r in routines():
        yield row(
            "pg_proc", oid=r.oid, proname=r.name, pronamespace=PG_CATALOG_OID,
            proowner=OWNER_OID, prolang=_LANGUAGE, procost=r.cost, prorows=r.rows, prokind=r.kind,
            proleakproof=r.leakproof, proisstrict=r.strict, proretset=r.returns_set,
            provolatile=r.volatility, proparallel=r.parallel, pronargs=len(r.arguments),
            pronargdefaults=r.defaults, prorettype=oid_of(r.result),
            provariadic=oid_of(r.arguments[-1]) if r.variadic else 0,
            proargtypes=list(map(oid_of, r.arguments)), prosrc=r.source,
        )  # fmt: skip


def pg_operator(_catalog: Catalog) -> Iterator[Row]:
    for o in pg_operators():
        yield row(
            "pg_operator", oid=o.oid, oprname=o.name, oprnamespace=PG_CATALOG_OID,
            oprowner=OWNER_OID, oprkind="b" if o.left else "l", oprcanmerge=o.merges,
            oprcanhash=o.hashes, oprleft=oid_of(o.left) if o.left else 0,
            oprright=oid_of(o.right), oprresult=oid_of(o.result), oprcom=o.commutator,
            oprnegate=o.negator, oprcode=o.function,
        )  # fmt: skip
