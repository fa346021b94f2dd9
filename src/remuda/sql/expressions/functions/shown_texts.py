"""Texts that the catalog keeps as a session may read them.

The catalog reads its texts (queries of views, defaults, conditions) along ``KEPT_PATH``. A session
with another search path is shown the schema in front of each name that it would not find. So a
dump, which is made and loaded with an empty path, names what the text means.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from remuda.catalog.definition_text import constraint_text, expression_shown, foreign_key_text
from remuda.datatypes.identifiers import quoted_name
from remuda.datatypes.schema import Check, ForeignKey, MapSchema, ViewDefinition
from remuda.datatypes.sql import unrestricted
from remuda.errors import RemudaError
from remuda.plan.expression import ColumnRef, Expression
from remuda.plan.logical import OutputColumn
from remuda.sql.expressions.expressions import ExpressionBinder, Forbidding
from remuda.sql.parsing.snippets import parse_expression, parse_query
from remuda.sql.scope.context import Context
from remuda.sql.scope.enum_names import find_enum
from remuda.sql.scope.object_names import Holder, names
from remuda.sql.scope.resolution import (
    KEPT_PATH,
    Kept,
    Place,
    Reference,
    current,
    find,
    place_in,
    replaced,
)
from remuda.sql.scope.scope import Scope

_MAY_NAME: Final = re.compile(r"'|::|\bcast\b", re.IGNORECASE)
"""An expression that names a sequence or a type has one of these."""


class ShownTexts:
    """The texts as the session of one statement reads them."""

    def __init__(self, binder: ExpressionBinder) -> None:
        self._binder = binder
        self._context = binder.context
        path = current(self._context.catalog, self._context.path)
        self._as_kept = path[:1] == list(KEPT_PATH)

    def view(self, view: ViewDefinition) -> str:
        """The query of a view, with the view's columns. One that cannot be bound any more stays as
        it was written."""
        named = tuple(column.name for column in view.columns)
        if self._as_kept and named == view.names and "*" not in view.text:
            return view.text
        kept, output = self._bound_view(view)
        text = view.text if self._as_kept else self._qualified(view.text, kept.references)
        given = tuple(column.name for column in output)
        return text if not output or given == named else _with_columns(view, text, given)

    def expression(self, text: str, schema: MapSchema) -> str:
        """A default, the expression of a generated column, or a condition."""
        if self._as_kept or not _MAY_NAME.search(text):
            return text
        context = Context(text, self._context.catalog, 0)
        context.kept = Kept()
        columns: list[tuple[str, Expression]] = [
            (column.name, ColumnRef(unrestricted(column.type), position, column.name))
            for position, column in enumerate(schema.columns)
        ]
        try:
            node, scope = parse_expression(text), Scope()
            scope.add(context, schema.name, columns, node)
            ExpressionBinder(context, scope, Forbidding(context, "definitions")).bind(node)
        except RemudaError:
            return text
        return self._qualified(text, context.kept.references)

    def expressions(self) -> dict[str, str]:
        """By what ``pg_attrdef`` and ``pg_constraint`` hold: those that the session reads in
        another form."""
        found: dict[str, str] = {}
        if self._as_kept:
            return found
        for schema in Holder(self._context).maps:
            for column in schema.shown:
                text = column.generated or ("" if column.default is None else column.default.text)
                shown = self.expression(text, schema)
                if shown != text:
                    found[expression_shown(text)] = expression_shown(shown)
            for check in schema.checks:
                shown = self.expression(check.text, schema)
                if shown != check.text:
                    found[check.text] = shown
        return found

    def check(self, schema: MapSchema, check: Check, *, pretty: bool) -> str:
        shown = replace(check, text=self.expression(check.text, schema))
        return constraint_text(schema, shown, pretty=pretty)

    def foreign_keys(self) -> dict[int, str]:
        """By OID."""
        holder = Holder(self._context)
        keys = [key for schema in holder.maps for key in schema.foreign_keys]
        parents: dict[int, str] = {}
        if keys and not self._as_kept:
            parents = names(self._context, "regclass")
        oids = {schema.name: schema.oid for schema in holder.maps}

        def shown(key: ForeignKey) -> str:
            return foreign_key_text(key, parents.get(oids.get(key.parent, 0), ""))

        return {key.oid: shown(key) for key in keys}

    def _bound_view(self, view: ViewDefinition) -> tuple[Kept, Sequence[OutputColumn]]:
        """The relations and types that it names, and the columns of its query."""
        context, kept = self._context, Kept()
        before = (context.text, context.uses, context.path, context.kept)
        context.text, context.uses, context.path, context.kept = view.text, set(), KEPT_PATH, kept
        context.inside.append(view.name)
        try:
            return kept, self._binder.surroundings.subquery(parse_query(view.text)).output
        except RemudaError:
            return Kept(), ()
        finally:
            context.inside.pop()
            context.text, context.uses, context.path, context.kept = before

    def _qualified(self, text: str, references: Sequence[Reference]) -> str:
        hidden = [r for r in references if not self._finds(r.place)]
        return replaced(text, [(r.start, r.end, r.naming(r.place)) for r in hidden])

    def _finds(self, place: Place) -> bool:
        """Whether the session needs no schema to name it."""
        catalog, path = self._context.catalog, self._context.path
        found = find(catalog, path, "", place.local)
        if found is not None and place_in(found) == place:
            return True
        enum = find_enum(catalog, path, "", place.local)
        return enum is not None and enum.namespace == place.namespace


def _with_columns(view: ViewDefinition, text: str, given: Sequence[str]) -> str:
    """``text``, which gives other columns than those of the view, as a query that gives these."""
    used: list[int] = []
    for name in view.names:
        used.append(given.index(name, used[-1] + 1 if used else 0))
    aliases = [f"_{place}" for place in range(len(given))]
    for place, column in zip(used, view.columns, strict=True):
        aliases[place] = column.name
    columns = ", ".join(quoted_name(column.name) for column in view.columns)
    listed = ", ".join(map(quoted_name, aliases))
    return f"SELECT {columns}\nFROM ({text}) AS {quoted_name(view.local)} ({listed})"
