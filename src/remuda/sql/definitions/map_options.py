"""Settings of a statement -> the options of its map."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.map_options import MapOptions, changed, read_option
from remuda.errors import InvalidDefinition
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context
from remuda.sql.trees.syntax import OptionSetting


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
