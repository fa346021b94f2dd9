"""Settings of a statement -> the options of its map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from remuda.datatypes.map_options import MapOptions, changed, read_option
from remuda.datatypes.schema import MapSchema
from remuda.errors import InvalidDefinition, NotSupported, UndefinedObject
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context
from remuda.sql.scope.names import known_name
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import ChangeOptions, OptionSetting


def with_changed_options(context: Context, schema: MapSchema, action: ChangeOptions) -> MapSchema:
    """Raises InvalidDefinition, UndefinedColumn, UndefinedObject, NotSupported."""
    if action.unchecked is not None and schema.foreign_keys:
        raise NotSupported(
            "DISABLE TRIGGER ALL of a table with foreign keys is not supported",
            position=action.unchecked,
            statement=context.text,
            hint="Foreign keys are always checked: load the tables that they reference first.",
        )
    if action.column is not None:
        known_name(context, action.column, [c.name for c in schema.shown], schema.name)
    indexes = [schema.primary_key, *(index.name for index in schema.indexes)]
    if action.index is not None and action.index.text not in indexes:
        error = UndefinedObject(
            f'index "{action.index.text}" for table "{schema.local}" does not exist',
            hint=did_you_mean(action.index.text, indexes),
        )
        raise placed(context, error, action.index)
    return replace(schema, options=with_settings(context, schema.options, action.settings))


def with_settings(
    context: Context, options: MapOptions, settings: Sequence[OptionSetting]
) -> MapOptions:
    """Raises InvalidDefinition at the place of the setting that cannot be."""
    for setting in settings:
        try:
            read_option(setting.name.text, setting.value)
        except InvalidDefinition as problem:
            raise placed(context, problem, setting.name) from None
    try:
        return changed(options, {one.name.text: one.value for one in settings})
    except InvalidDefinition as problem:
        raise placed(context, problem, settings[0].name) from None
