"""ALTER TABLE ... DROP COLUMN and DROP CONSTRAINT."""

from __future__ import annotations

from dataclasses import replace

from remuda.catalog.indexes import without_index
from remuda.errors import (
    DependentObjects,
    InvalidDefinition,
    UndefinedObject,
)
from remuda.sql.definitions.altering.alteration import Alteration
from remuda.sql.definitions.constraints import condition_columns
from remuda.sql.definitions.generated import without_dependents
from remuda.sql.definitions.sequences import owned_by
from remuda.sql.queries.views import placed
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import DropColumn, DropConstraint


def drop_column(work: Alteration, action: DropColumn) -> None:
    schema = work.schema
    if action.if_exists and action.name.text not in schema.position:
        return
    column = work.column(action.name)
    if column.name in schema.key:
        error = InvalidDefinition(
            f'column "{column.name}" is in the primary key of map "{schema.name}"',
            hint="The key of a map stays as it was defined.",
        )
        raise placed(work.context, error, action.name)
    position = schema.position[column.name]
    gone = [c for c in schema.checks if position in condition_columns(schema, c)]
    shared = [c for c in gone if len(condition_columns(schema, c)) > 1]
    if shared and not action.cascade:
        error_ = DependentObjects(
            f'cannot drop column "{column.name}" because other objects depend on it',
            detail=f'constraint "{shared[0].name}" reads it and other columns.',
            hint="Use DROP COLUMN ... CASCADE to drop the constraint too.",
        )
        raise placed(work.context, error_, action.name)
    try:
        schema = without_dependents(schema, column.name, cascade=action.cascade)
    except DependentObjects as problem:
        raise placed(work.context, problem, action.name) from None
    work.cascade = work.cascade or action.cascade
    work.dropped += owned_by(work.context.catalog, [column])
    work.schema = replace(
        schema,
        columns=tuple(other for other in schema.columns if other is not column),
        checks=tuple(check for check in schema.checks if check not in gone),
        columns_made=max(schema.columns_made, *(other.id for other in schema.columns)),
    )


def drop_constraint(work: Alteration, action: DropConstraint) -> None:
    schema, name = work.schema, action.name
    left = tuple(check for check in schema.checks if check.name != name.text)
    if len(left) < len(schema.checks):
        work.schema = replace(schema, checks=left)
        return
    keys = tuple(key for key in schema.foreign_keys if key.name != name.text)
    if len(keys) < len(schema.foreign_keys):
        work.schema = replace(schema, foreign_keys=keys)
        return
    work.cascade = work.cascade or action.cascade
    uniques = [index for index in schema.uniques if index.constraint]
    if any(index.name == name.text for index in uniques):
        key = schema.added_key
        left_name = "" if key is not None and key.name == name.text else schema.key_name
        work.schema = replace(without_index(schema, name.text), key_name=left_name)
        work.uniques = [other for other in work.uniques if other != name.text]
        return
    if name.text == schema.primary_key and not schema.has_row_ids:
        raise placed(
            work.context,
            InvalidDefinition("the primary key of a map stays as it was defined"),
            name,
        )
    if not action.if_exists:
        error = UndefinedObject(
            f'constraint "{name.text}" of map "{schema.name}" does not exist',
            hint=did_you_mean(
                name.text,
                [
                    *(c.name for c in schema.checks),
                    *(i.name for i in uniques),
                    *(key.name for key in schema.foreign_keys),
                ],
            ),
        )
        raise placed(work.context, error, name)
