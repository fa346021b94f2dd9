"""Broken constraints in the words of PostgreSQL, with the names as fields of the error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from remuda.datatypes.identifiers import quoted_name
from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.schema import (
    HIDDEN,
    NOT_NULL_GUARD,
    PUBLIC,
    Check,
    Column,
    ForeignKey,
    MapSchema,
)
from remuda.datatypes.sql import SqlType
from remuda.datatypes.texts.valuetext import part_text
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    CheckViolation,
    ConstraintError,
    ErrorSubject,
    ForeignKeyViolation,
    NotNullViolation,
    UniqueViolation,
)

SHOWN_LENGTH: Final = 64
"""Characters of a value in the message about a row."""

Values = Sequence[PhysicalValue]


def null_value(schema: MapSchema, column: Column, row: Values | None = None) -> NotNullViolation:
    """``row``: all physical values of the row, where they are known."""
    return NotNullViolation(
        f'null value in column "{column.name}" of relation "{schema.local}" '
        "violates not-null constraint",
        detail="" if row is None else _failing(schema, row),
        subject=_subject(schema, column=column.name),
    )


def broken_check(schema: MapSchema, check: Check, row: Values) -> ConstraintError:
    if check.name.startswith(NOT_NULL_GUARD):
        return null_value(schema, schema.column(check.name.removeprefix(NOT_NULL_GUARD)), row)
    return CheckViolation(
        f'new row for relation "{schema.local}" violates check constraint "{check.name}"',
        detail=_failing(schema, row),
        subject=_subject(schema, constraint=check.name),
    )


def duplicate_key(schema: MapSchema, key: Values, hint: str = "") -> UniqueViolation:
    """Two rows have one primary key; ``key`` has its values in key column order."""
    return _duplicate(schema, schema.primary_key, schema.key, key, hint)


def duplicate_values(schema: MapSchema, index: IndexDefinition, values: Values) -> UniqueViolation:
    """Two rows have the same values of a unique index."""
    return _duplicate(schema, index.name, index.names, values)


def stored_twice(schema: MapSchema, index: IndexDefinition, values: Values) -> UniqueViolation:
    """A unique index cannot be made: rows that are stored already have the same values."""
    return UniqueViolation(
        f'could not create unique index "{index.name}"',
        detail=f"{_key(schema, index.names, values)} is duplicated.",
        subject=_subject(schema, constraint=index.name),
    )


def missing_parent(
    child: MapSchema, key: ForeignKey, parent: str, values: Values
) -> ForeignKeyViolation:
    """A row of ``child`` names a row that the map ``parent`` (its own name) does not have; or it is
    NULL in part, which MATCH FULL refuses."""
    detail = f'{_key(child, key.columns, values)} is not present in table "{parent}".'
    if None in values:
        detail = "MATCH FULL does not allow mixing of null and nonnull key values."
    return ForeignKeyViolation(
        f'insert or update on table "{child.local}" violates foreign key constraint "{key.name}"',
        detail=detail,
        subject=_subject(child, constraint=key.name),
    )


def still_referenced(
    parent: MapSchema, child: MapSchema, key: ForeignKey, values: Values
) -> ForeignKeyViolation:
    """A row of ``parent`` cannot go, or get another key, while rows of ``child`` name it."""
    return ForeignKeyViolation(
        f'update or delete on table "{parent.local}" violates foreign key constraint '
        f'"{key.name}" on table "{child.local}"',
        detail=f"{_key(parent, key.parent_columns, values)} is still referenced from table "
        f'"{child.local}".',
        subject=_subject(child, constraint=key.name),
    )


def key_text(schema: MapSchema, key: Values) -> str:
    """The primary key of a row, for people: ``Key (id)=(42)``."""
    return _key(schema, schema.key, key)


def _key(schema: MapSchema, names: Sequence[str], values: Values) -> str:
    texts = _texts(values, [schema.column(name).type for name in names])
    return f"Key ({', '.join(map(quoted_name, names))})=({', '.join(texts)})"


def _duplicate(
    schema: MapSchema, constraint: str, names: Sequence[str], values: Values, hint: str = ""
) -> UniqueViolation:
    return UniqueViolation(
        f'duplicate key value violates unique constraint "{constraint}"',
        detail=f"{_key(schema, names, values)} already exists.",
        hint=hint,
        subject=_subject(schema, constraint=constraint),
    )


def _failing(schema: MapSchema, row: Values) -> str:
    shown = [
        (value, column.type)
        for value, column in zip(row, schema.columns, strict=True)
        if column.name not in HIDDEN
    ]
    texts = _texts([value for value, _ in shown], [sql_type for _, sql_type in shown])
    cut = [t if len(t) <= SHOWN_LENGTH else t[:SHOWN_LENGTH] + "..." for t in texts]
    return f"Failing row contains ({', '.join(cut)})."


def _subject(schema: MapSchema, *, column: str = "", constraint: str = "") -> ErrorSubject:
    namespace = "" if schema.namespace == PUBLIC else schema.namespace
    return ErrorSubject(schema.local, column, constraint, namespace)


def _texts(values: Values, types: Iterable[SqlType]) -> list[str]:
    return [
        "null" if value is None else part_text(sql_type)(value)
        for value, sql_type in zip(values, types, strict=True)
    ]
