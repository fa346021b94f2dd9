"""The state of an ALTER TABLE whose actions apply one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from remuda.datatypes.schema import Column, MapSchema
from remuda.errors import UndefinedColumn
from remuda.sql.queries.views import placed
from remuda.sql.scope.context import Context
from remuda.sql.scope.notices import Notice
from remuda.sql.scope.statements import NumbersFrom
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees.syntax import Name


@dataclass
class Alteration:
    """The schema so far, and its demands on the rows that are there."""

    context: Context
    schema: MapSchema
    sequences: list[MapSchema] = field(default_factory=list)
    """Those that new columns own, and those that are altered."""
    dropped: list[MapSchema] = field(default_factory=list)
    """Sequences whose columns are dropped."""
    numbers: list[NumbersFrom] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    not_null: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    uniques: list[str] = field(default_factory=list)
    foreign_keys: list[str] = field(default_factory=list)
    filled: list[str] = field(default_factory=list)
    """Columns whose values are computed for the rows that are there."""
    cascade: bool = False

    def column(self, name: Name) -> Column:
        names = [column.name for column in self.schema.shown]
        if name.text not in names:
            error = UndefinedColumn(
                f'column "{name.text}" of map "{self.schema.name}" does not exist',
                hint=did_you_mean(name.text, names),
            )
            raise placed(self.context, error, name)
        return self.schema.column(name.text)

    def put(self, column: Column, name: str = "") -> None:
        """Replace the column called ``name`` (its own name if that stays)."""
        self.schema = replace(
            self.schema,
            columns=tuple(
                column if other.name == (name or column.name) else other
                for other in self.schema.columns
            ),
        )
