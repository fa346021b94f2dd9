"""Views and CHECK constraints whose text names something that is renamed: the new name is put into
the text, if it then means the same.

Every identifier of the old name is replaced. Whether that was right is not guessed: the old text
under the old catalog and the new one under the new catalog must have the same plan, column for
column. If they have not (another column of the same name was meant somewhere), the text stays as it
is, and the rename is refused because of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

from remuda.catalog.edits import Edit, PutView
from remuda.datatypes.identifiers import quoted_name
from remuda.datatypes.schema import Check, Column, MapSchema, ViewDefinition
from remuda.errors import DuplicateObject, NotSupported, RemudaError, UndefinedObject
from remuda.plan.expression import Expression
from remuda.plan.logical import Logical
from remuda.sql.definitions.constraints import check_condition
from remuda.sql.definitions.foreign_keys import constraint_names
from remuda.sql.definitions.generated import generation
from remuda.sql.definitions.index_definitions import index_in
from remuda.sql.parsing.snippets import parse_query
from remuda.sql.queries.views import BindQuery, broken_views, placed, view_plan, works
from remuda.sql.scope.context import Context
from remuda.sql.scope.overlay import Overlay
from remuda.sql.scope.statements import CatalogReader
from remuda.sql.text.lexemes import TokenKind
from remuda.sql.text.lexer import tokenize
from remuda.sql.trees.names import Name

_NAMES: Final = ("name", "alias")


def with_renamed_views(
    catalog: CatalogReader, edits: Sequence[Edit], old: str, new: str, bind: BindQuery
) -> list[Edit]:
    """``edits``, which rename ``old`` to ``new``, and the views that follow."""
    found = list(edits)
    for view in broken_views(catalog, edits, bind):
        if works(Overlay(catalog, found), view, bind):
            continue  # what it reads has followed
        followed = _followed(catalog, found, view, _renamed_text(view.text, old, new), bind)
        if followed is not None:
            found.append(PutView(followed))
    return found


def with_renamed_checks(before: MapSchema, after: MapSchema, old: str, new: str) -> MapSchema:
    """``after``, which is ``before`` with ``old`` renamed to ``new``, with the texts of its CHECK
    constraints. Raises NotSupported for one that cannot follow."""
    checks: list[Check] = []
    for check in before.checks:
        meant, _ = check_condition(before, check)

        def means(text: str, check: Check = check) -> Expression:
            return check_condition(after, Check(check.name, text))[0]

        text = _text_of_same_meaning(check.text, meant, means, old, new)
        if text is None:
            raise NotSupported(
                f'"{old}" is used by the constraint "{check.name}"',
                hint="Drop the constraint, rename, and add the constraint again.",
            )
        checks.append(dataclasses.replace(check, text=text))
    return _with_renamed_generations(
        before, dataclasses.replace(after, checks=tuple(checks)), old, new
    )


def _with_renamed_generations(before: MapSchema, after: MapSchema, old: str, new: str) -> MapSchema:
    """``after`` with the texts of its generated columns."""
    columns = list(after.columns)
    for position in before.generated:
        column = columns[position]

        def means(text: str, column: Column = column, position: int = position) -> Expression:
            others = list(after.columns)
            others[position] = dataclasses.replace(column, generated=text)
            return generation(dataclasses.replace(after, columns=tuple(others)), position)

        meant = generation(before, position)
        text = _text_of_same_meaning(column.generated, meant, means, old, new)
        if text is None:
            raise NotSupported(
                f'"{old}" is used by the generated column "{column.name}"',
                hint="Drop that column, rename, and add the column again.",
            )
        columns[position] = dataclasses.replace(column, generated=text)
    return dataclasses.replace(after, columns=tuple(columns))


def _text_of_same_meaning(
    text: str, meant: Expression, means: Callable[[str], Expression], old: str, new: str
) -> str | None:
    """``text``, or ``text`` with the new name, if it means after the rename as it did before."""
    for each in (text, _renamed_text(text, old, new)):
        try:
            found = means(each)
        except RemudaError:
            continue
        if _shape(found) == _shape(meant):
            return each
    return None


def _renamed_text(text: str, old: str, new: str) -> str:
    """``text`` with every identifier that means ``old`` replaced."""
    parts: list[str] = []
    at = 0
    for token in tokenize(text):
        meant = token.text if token.kind is TokenKind.NAME else token.word
        if meant == old and token.kind is not TokenKind.SYMBOL:
            parts += [text[at : token.start], quoted_name(new)]
            at = token.end + 1
    return "".join([*parts, text[at:]])


def _followed(
    catalog: CatalogReader,
    edits: Sequence[Edit],
    view: ViewDefinition,
    text: str,
    bind: BindQuery,
) -> ViewDefinition | None:
    after = Overlay(catalog, edits)
    try:
        before_plan = _plan(catalog, view.text, bind)
        context = Context(text, after, 0)
        plan = bind(context, parse_query(text))
        if len(plan.output) != len(before_plan.output):
            return None  # the new name joins columns of a NATURAL JOIN, or no longer does
        followed = dataclasses.replace(
            view,
            text=text,
            names=tuple(column.name for column in plan.output),
            uses=tuple(sorted(context.uses)),
        )
        view_plan(Context("", after, 0), followed, None, bind)
    except RemudaError:
        return None
    return followed if _shape(before_plan) == _shape(plan) else None


def _plan(catalog: CatalogReader, text: str, bind: BindQuery) -> Logical:
    return bind(Context(text, catalog, 0), parse_query(text))


def _shape(value: Any) -> Any:
    """A plan without its names; maps by their numbers."""
    if isinstance(value, MapSchema):
        return value.map_id
    if isinstance(value, tuple):
        return tuple(_shape(part) for part in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [
            _shape(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.compare and field.name not in _NAMES
        ]
        return (type(value).__name__, *parts)
    return value


def with_renamed_constraint(context: Context, schema: MapSchema, old: Name, new: Name) -> MapSchema:
    """Raises UndefinedObject, DuplicateObject."""
    uniques = [index.name for index in schema.uniques if index.constraint]
    names = constraint_names(schema)
    if old.text not in names:
        error = UndefinedObject(f'constraint "{old.text}" of map "{schema.name}" does not exist')
        raise placed(context, error, old)
    foreign = old.text in uniques and index_in(context, schema.namespace, new.text) is not None
    if new.text in names or foreign:  # names of indexes are those of a schema
        taken = DuplicateObject(f'constraint "{new.text}" for map "{schema.name}" already exists')
        raise placed(context, taken, new)
    return dataclasses.replace(
        schema,
        key_name=new.text if old.text == schema.primary_key else schema.key_name,
        checks=tuple(
            dataclasses.replace(check, name=new.text) if check.name == old.text else check
            for check in schema.checks
        ),
        indexes=tuple(
            dataclasses.replace(i, name=new.text) if i.constraint and i.name == old.text else i
            for i in schema.indexes
        ),
        foreign_keys=tuple(
            dataclasses.replace(key, name=new.text) if key.name == old.text else key
            for key in schema.foreign_keys
        ),
    )
