"""Rows of ``pg_catalog`` about the rules of views and the relations that views read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.session.system.rows import Row, row
from remuda.session.system.sequences import CLASS_OID
from remuda.session.system.sequences import pg_depend as sequence_dependencies

_REWRITE_OID: Final = 2618


def pg_rewrite(catalog: Catalog) -> Iterator[Row]:
    """PostgreSQL keeps a view as a rule of its relation. OIDs are unique within one relation of the
    catalog, so the rule has that of its view."""
    for view in catalog.views:
        yield row(
            "pg_rewrite", oid=view.oid, rulename="_RETURN", ev_class=view.oid, ev_type="1",
            ev_enabled="O", is_instead=True, ev_qual="<>", ev_action="",
        )  # fmt: skip


def pg_depend(catalog: Catalog) -> Iterator[Row]:
    """Those of sequences; a rule needs its view, and all relations that the view reads. dbt learns
    from them which views a DROP ... CASCADE has taken along."""
    yield from sequence_dependencies(catalog)
    numbers = {schema.name: schema.oid for schema in catalog.maps}
    numbers.update({view.name: view.oid for view in catalog.views})
    for view in catalog.views:
        needed = [(view.oid, "i"), *((numbers[name], "n") for name in view.uses if name in numbers)]
        for oid, kind in needed:
            yield row(
                "pg_depend", classid=_REWRITE_OID, objid=view.oid, refclassid=CLASS_OID,
                refobjid=oid, deptype=kind,
            )  # fmt: skip
