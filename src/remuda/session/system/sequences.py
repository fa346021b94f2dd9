"""Rows of ``pg_catalog`` about sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from remuda.catalog.catalog import Catalog
from remuda.catalog.pg_objects import number_of
from remuda.catalog.pg_types import BY_NAME
from remuda.catalog.system_relations import OWNER, PG_CATALOG, SYSTEM
from remuda.datatypes.schema import Identity
from remuda.datatypes.sequences import SequenceState
from remuda.session.system.rows import Row, row
from remuda.sql.definitions.sequences import uses

CLASS_OID: Final = 1259
_DEFAULT_OID: Final = 2604
"""``pg_attrdef``."""
_TYPES: Final = {"smallint": "int2", "integer": "int4", "bigint": "int8"}
_IDENTITY: Final = {Identity.ALWAYS: "a", Identity.BY_DEFAULT: "d"}
_PLACE: Final = [column.name for column in SYSTEM[PG_CATALOG]["pg_attribute"].columns].index(
    "attidentity"
)


def with_identity(attribute: Row, identity: Identity) -> Row:
    """A row of ``pg_attribute``, of an identity column."""
    return (*attribute[:_PLACE], _IDENTITY[identity], *attribute[_PLACE + 1 :])


def with_generated(attribute: Row) -> Row:
    """The same of a generated column."""
    return (*attribute[: _PLACE + 1], "s", *attribute[_PLACE + 2 :])


def pg_sequence(catalog: Catalog) -> Iterator[Row]:
    for schema in catalog.sequences:
        options = schema.sequence
        assert options is not None
        yield row(
            "pg_sequence", seqrelid=schema.oid, seqtypid=BY_NAME[_TYPES[options.type]].oid,
            seqstart=options.start, seqincrement=options.increment, seqmax=options.maximum,
            seqmin=options.minimum, seqcache=options.cache, seqcycle=options.cycle,
        )  # fmt: skip


def pg_sequences(catalog: Catalog, states: Mapping[int, SequenceState | None]) -> Iterator[Row]:
    """``states`` by map id."""
    for schema in catalog.sequences:
        options, state = schema.sequence, states.get(schema.map_id)
        assert options is not None
        called = state is not None and state.is_called
        yield row(
            "pg_sequences", schemaname=schema.namespace, sequencename=schema.local,
            sequenceowner=OWNER,
            data_type=BY_NAME[_TYPES[options.type]].oid, start_value=options.start,
            min_value=options.minimum, max_value=options.maximum,
            increment_by=options.increment, cycle=options.cycle, cache_size=options.cache,
            last_value=state.last_value if state is not None and called else None,
        )  # fmt: skip


def pg_depend(catalog: Catalog) -> Iterator[Row]:
    """Columns that own sequences, and defaults that use them."""
    for schema in catalog.sequences:
        assert schema.sequence is not None
        owner = catalog.owners.get(schema.sequence.link)
        if owner is not None:
            table, column = owner
            yield row(
                "pg_depend", classid=CLASS_OID, objid=schema.oid, refclassid=CLASS_OID,
                refobjid=table.oid, refobjsubid=number_of(table, column.name),
                deptype="a" if column.identity is None else "i",
            )  # fmt: skip
        for table in catalog.tables:
            for column in table.columns:
                if column.identity is None and uses(column, schema.name):
                    yield row(
                        "pg_depend", classid=_DEFAULT_OID, objid=column.default_oid,
                        refclassid=CLASS_OID, refobjid=schema.oid, deptype="n",
                    )  # fmt: skip
