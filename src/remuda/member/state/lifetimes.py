"""Writes that maps with foreign keys, and their parents, refuse (decision 0108)."""

from __future__ import annotations

from remuda.datatypes.schema import MapSchema
from remuda.errors import NotSupported


def refuse_lifetime(schema: MapSchema, ttl: int | None) -> None:
    """Raises NotSupported for a referenced row that would end by itself."""
    if ttl and schema.children:
        raise NotSupported(
            f'rows of table "{schema.local}" cannot have a TTL: a foreign key references it',
            hint="Put them without a TTL, and remove them.",
        )


def refuse_bulk(schema: MapSchema, what: str) -> None:
    """Raises NotSupported for rows that are staged over others without a look at the rows that name
    them, and for those of a map that is its own parent."""
    if not schema.takes_bulk:
        own = any(key.parent == schema.name for key in schema.foreign_keys)
        which = "it references itself" if own else "a foreign key references it"
        raise NotSupported(
            f'{what} to table "{schema.local}" are not supported: {which}',
            hint="Use INSERT or COPY, or add the foreign keys when the rows are there.",
        )


def refuse_bulk_removal(schema: MapSchema, what: str) -> None:
    """Raises NotSupported for rows that go without a look at the rows that name them."""
    if schema.children:
        raise NotSupported(
            f'{what} of table "{schema.local}" are not supported: a foreign key references it',
            hint="Use DELETE, which checks the referencing rows.",
        )
