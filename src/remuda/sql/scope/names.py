"""Names in definitions: of columns that must be there, and not twice."""

from __future__ import annotations

from collections.abc import Collection

from remuda.errors import DuplicateColumn, UndefinedColumn, UndefinedSchema
from remuda.sql.scope.context import Context
from remuda.sql.scope.resolution import exists, namespaces
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import Name


def known_name(context: Context, name: Name, names: Collection[str], of: str = "") -> str:
    """The text of ``name``, which must be one of ``names``. Raises UndefinedColumn."""
    if name.text not in names:
        where = f' of "{of}"' if of else ""
        raise UndefinedColumn(
            f'column "{name.text}"{where} does not exist',
            position=name.position,
            statement=context.text,
            hint=did_you_mean(name.text, names),
        )
    return name.text


def no_repeats(context: Context, names: tuple[Name, ...], what: str) -> None:
    """Raises DuplicateColumn for a name that comes twice."""
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            raise DuplicateColumn(
                f'column "{name.text}" appears twice in {what}',
                position=name.position,
                statement=context.text,
            )
        seen.add(name.text)


def absent_schema(context: Context, name: Name) -> UndefinedSchema | None:
    """The error of a definition that names a relation in a schema that is not there."""
    if not name.schema or exists(context.catalog, name.schema):
        return None
    return UndefinedSchema(
        f'schema "{name.schema}" does not exist',
        position=name.position,
        statement=context.text,
        hint=did_you_mean(name.schema, namespaces(context.catalog)),
    )
