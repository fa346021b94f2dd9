"""TRUNCATE: of one map a write of its entries, of several maps an edit of the catalog."""

from __future__ import annotations

from dataclasses import replace

from remuda.catalog.edits import DropMap, Edit, PutMap
from remuda.datatypes.schema import MapSchema
from remuda.sql.changes.modify import target_of
from remuda.sql.definitions.foreign_keys import truncated_with
from remuda.sql.definitions.sequences import owned_by
from remuda.sql.scope.context import Context
from remuda.sql.scope.notices import Notice
from remuda.sql.scope.statements import CatalogStatement, NumbersFrom, TruncateStatement
from remuda.sql.trees.syntax import TruncateTree


def bind_truncate(context: Context, tree: TruncateTree) -> TruncateStatement | CatalogStatement:
    """CASCADE empties the maps as well whose rows name rows of these.

    A bulk write is a write of one map. To empty several maps at once, one version of the catalog
    has new maps in their places: of the same definition, with the same OIDs, and without entries.
    """
    node = tree.root
    context.only(node, "expressions", "identity", "option")
    found: dict[int, MapSchema] = {}
    for each in node.expressions:
        schema, _ = target_of(context, each, "this")
        found[schema.map_id] = schema
    cascade = str(node.args.get("option") or "").upper() == "CASCADE"
    added = truncated_with(context, list(found.values()), cascade=cascade)
    notices = tuple(Notice(f'truncate cascades to table "{each.local}"') for each in added)
    schemas = (*found.values(), *added)
    restarts = str(node.args.get("identity") or "").upper() == "RESTART"
    columns = [column for schema in schemas for column in schema.columns] if restarts else []
    numbers = tuple(
        NumbersFrom(each.name, each.sequence.start)
        for each in owned_by(context.catalog, columns)
        if each.sequence
    )
    if len(schemas) == 1 and not schemas[0].children:
        return TruncateStatement(schemas[0], numbers)
    edits: list[Edit] = [DropMap(schema.name) for schema in schemas]
    edits += [PutMap(replace(schema, map_id=0)) for schema in schemas]
    version = context.catalog.version
    return CatalogStatement(TRUNCATED, version, tuple(edits), numbers=numbers, notices=notices)


TRUNCATED = "TRUNCATE TABLE"
