"""Names of enum types: the one place where a written one gets its meaning."""

from __future__ import annotations

from remuda.catalog.enums import enum_in, with_enum
from remuda.datatypes.sql import EnumType, SqlType
from remuda.errors import Position
from remuda.sql.scope.context import Context
from remuda.sql.scope.resolution import KEPT_PATH, Place, Reference
from remuda.sql.scope.statements import CatalogReader
from remuda.sql.text.types import undefined_type


def find_enum(
    catalog: CatalogReader, path: tuple[str, ...], schema: str, local: str
) -> EnumType | None:
    """The enum of a name. ``schema`` "": the first one along the path."""
    for namespace in (schema,) if schema else path:
        for enum in catalog.types:
            if enum.local == local and enum.namespace == namespace:
                return enum
    return None


def resolved(
    context: Context,
    sql_type: SqlType,
    position: Position | None,
    name: tuple[int, int] | None = None,
) -> SqlType:
    """``sql_type`` with the definition of the enum that it names, if it names one. ``name``: where
    the name stands in the text, from its start to its last character. Raises UndefinedType."""
    written = enum_in(sql_type)
    if written is None or written.oid:
        return sql_type
    enum = find_enum(context.catalog, context.path, written.namespace, written.local)
    if enum is None:
        shown = f"{written.namespace}.{written.local}" if written.namespace else written.local
        raise undefined_type(shown, position, [each.local for each in context.catalog.types])
    if context.kept is not None and name is not None:
        plain = (
            bool(written.namespace) or find_enum(context.catalog, KEPT_PATH, "", enum.local) is enum
        )
        place = Place(enum.namespace, enum.local)
        context.kept.references.append(Reference(*name, place, plain))
    return with_enum(sql_type, enum)
