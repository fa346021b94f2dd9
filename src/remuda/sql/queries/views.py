"""Views: the text that CREATE VIEW keeps, and the relation in its place where it is used.

The text of a view is bound anew in every statement that uses it. Its columns are those of its
definition: a later meaning of ``*`` does not show.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from remuda.catalog.edits import DropView, Edit, PutView
from remuda.datatypes.schema import PG_TEMP, Column, MapSchema, ViewDefinition, prefix
from remuda.datatypes.times.text_forms import PLAIN_FORMS
from remuda.errors import (
    DependentObjects,
    DuplicateColumn,
    DuplicateMap,
    InfiniteRecursion,
    InvalidDefinition,
    RemudaError,
    UndefinedColumn,
    WrongObjectType,
)
from remuda.plan.expression import ColumnRef
from remuda.plan.logical import Logical, OutputColumn, Project
from remuda.sql.parsing.snippets import parse_query, query_of
from remuda.sql.scope.context import Context
from remuda.sql.scope.declared_types import declared_types
from remuda.sql.scope.notices import Notice
from remuda.sql.scope.overlay import Overlay
from remuda.sql.scope.resolution import KEPT_PATH, Kept, Place, found_in, refuse_name_of_index
from remuda.sql.scope.statements import CatalogReader, CatalogStatement
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import CreateViewTree, Name

_TEMPORARY = prefix(PG_TEMP)
"""How the full names of temporary relations begin."""

BindQuery = Callable[[Context, ast.Node], Logical]
"""Binds a query that sees nothing around it."""


# --- use ---------------------------------------------------------------------------------------


def view_plan(
    context: Context, view: ViewDefinition, node: ast.Node | None, bind: BindQuery
) -> Logical:
    """The rows of a view under its column names. An error in its text names the view, and has the
    place where the view is used."""
    context.uses.add(view.name)
    if view.name in context.inside:
        raise context.error(
            InfiniteRecursion, f'infinite recursion detected in view "{view.name}"', node
        )
    text, uses, path, kept = context.text, context.uses, context.path, context.kept
    zone = context.zone
    context.inside.append(view.name)
    try:
        context.text, context.uses, context.path, context.kept = view.text, set(), KEPT_PATH, None
        context.zone = None if zone is None else zone.with_forms(PLAIN_FORMS)
        plan = bind(context, parse_query(view.text))
        places = _places(view, [column.name for column in plan.output])
    except RemudaError as error:
        context.text = text
        if view.name not in context.inside[:-1]:
            error = _named(error, view)
        raise context.located(error.at(None, None), node) from None
    finally:
        context.text, context.uses, context.path, context.kept = text, uses, path, kept
        context.zone = zone
        context.inside.pop()
    output = [plan.output[place] for place in places]
    return Project(
        tuple(
            OutputColumn(context.new_id(), column.name, found.type, found.nullable)
            for column, found in zip(view.columns, output, strict=True)
        ),
        plan,
        tuple(ColumnRef(column.type, column.id, column.name) for column in output),
    )


def _named(error: RemudaError, view: ViewDefinition) -> RemudaError:
    if error.message.startswith('view "'):
        return error
    return error.saying(f'view "{view.name}": {error.message}')


def _places(view: ViewDefinition, names: Sequence[str]) -> list[int]:
    """Where the columns of the definition are among those that the query has now."""
    found: list[int] = []
    for name in view.names:
        start = found[-1] + 1 if found else 0
        if name not in names[start:]:
            raise UndefinedColumn(f'its query has no column "{name}" any more')
        found.append(names.index(name, start))
    return found


# --- CREATE VIEW -------------------------------------------------------------------------------


def bind_create_view(context: Context, tree: CreateViewTree, bind: BindQuery) -> CatalogStatement:
    place = context.place(tree.name, temporary=tree.temporary)
    before = found_in(context.catalog, place.namespace, place.local)
    if tree.or_replace and isinstance(before, ViewDefinition):
        context.inside.append(before.name)
    context.uses, context.kept = set(), Kept()
    plan = bind(context, query_of(context, tree.query))
    notices: tuple[Notice, ...] = ()
    if place.namespace != PG_TEMP and any(name.startswith(_TEMPORARY) for name in context.uses):
        place = context.place(tree.name, temporary=True)
        notices = (Notice(f'view "{tree.name.text}" will be a temporary view'),)
    old = _replaced(context, tree, place)
    if old is None:
        refuse_name_of_index(context.catalog, place, tree.name)
    names = [column.name for column in plan.output]
    if len(tree.columns) > len(names):
        raise placed(
            context,
            InvalidDefinition("CREATE VIEW specifies more column names than columns"),
            tree.columns[len(names)],
        )
    shown = [column.text for column in tree.columns] + names[len(tree.columns) :]
    for index, column in enumerate(shown):
        if column in shown[:index]:
            raise placed(
                context,
                DuplicateColumn(f'column "{column}" specified more than once'),
                tree.columns[index] if index < len(tree.columns) else tree.name,
            )
    columns = tuple(
        Column(column, declared, output.nullable)
        for column, output, declared in zip(shown, plan.output, declared_types(plan), strict=True)
    )
    if old is not None:
        _refuse_other_columns(context, old, columns, tree)
    view = ViewDefinition(
        name=place.full,
        text=context.kept.text(tree.query.text, tree.query.tokens[0].start),
        columns=columns,
        names=tuple(names),
        uses=tuple(sorted(context.uses)),
        comment=old.comment if old is not None else "",
        view_id=old.view_id if old is not None else 0,
        namespace=place.namespace,
    )
    return CatalogStatement(
        "CREATE VIEW", context.catalog.version, (PutView(view),), notices=notices
    )


def _replaced(context: Context, tree: CreateViewTree, place: Place) -> ViewDefinition | None:
    """The view that OR REPLACE gives another query. Raises DuplicateMap, WrongObjectType."""
    name, old = tree.name.text, found_in(context.catalog, place.namespace, place.local)
    if isinstance(old, MapSchema):
        raise placed(
            context,
            WrongObjectType(f'"{name}" is not a view')
            if tree.or_replace
            else DuplicateMap(f'map "{name}" already exists'),
            tree.name,
        )
    if old is not None and not tree.or_replace:
        error = DuplicateMap(
            f'view "{name}" already exists', hint="CREATE OR REPLACE VIEW gives it another query."
        )
        raise placed(context, error, tree.name)
    return old


def _refuse_other_columns(
    context: Context, old: ViewDefinition, columns: Sequence[Column], tree: CreateViewTree
) -> None:
    """OR REPLACE may only add columns at the end."""
    if len(columns) < len(old.columns):
        error = InvalidDefinition("cannot drop columns from view")
        raise placed(context, error, tree.name)
    for before, after in zip(old.columns, columns, strict=False):
        if before.name != after.name:
            error = InvalidDefinition(
                f'cannot change name of view column "{before.name}" to "{after.name}"'
            )
            raise placed(context, error, tree.name)
        if str(before.type) != str(after.type):
            error = InvalidDefinition(
                f'cannot change data type of view column "{before.name}" '
                f"from {before.type} to {after.type}"
            )
            raise placed(context, error, tree.name)


def placed(context: Context, error: RemudaError, name: Name) -> RemudaError:
    """``error`` at the place of ``name``."""
    return error.at(name.position, context.text)


# --- what depends on what ----------------------------------------------------------------------


def broken_views(
    catalog: CatalogReader, edits: Sequence[Edit], bind: BindQuery
) -> list[ViewDefinition]:
    """The views that work now and would not after the edits, or would have other columns."""
    after = Overlay(catalog, edits)
    found: list[ViewDefinition] = []
    for name in sorted(after.view_names()):
        view = after.find_view(name)
        if view is not None and works(catalog, view, bind) and not works(after, view, bind):
            found.append(view)
    return found


def works(catalog: CatalogReader, view: ViewDefinition, bind: BindQuery) -> bool:
    context = Context("", catalog, 0)
    try:
        plan = view_plan(context, view, None, bind)
    except RemudaError:
        return False
    return [(c.name, c.type) for c in plan.output] == [(c.name, c.type) for c in view.columns]


def with_dependents(
    context: Context,
    edits: Sequence[Edit],
    what: str,
    place: Name,
    bind: BindQuery,
    *,
    cascade: bool,
    may_cascade: bool = True,
) -> tuple[Edit, ...]:
    """``edits``, and the removal of the views that need what they remove if ``cascade``; otherwise
    DependentObjects."""
    all_edits = list(edits)
    while broken := broken_views(context.catalog, all_edits, bind):
        if not cascade:
            names = ", ".join(f'view "{view.name}"' for view in broken)
            raise placed(
                context,
                DependentObjects(
                    f"cannot {what} because other objects depend on it",
                    detail=f"{names} depends on it."
                    if len(broken) == 1
                    else f"{names} depend on it.",
                    hint="Use DROP ... CASCADE to drop the dependent objects too."
                    if may_cascade
                    else "Drop the view first, and create it again afterwards.",
                ),
                place,
            )
        all_edits += [DropView(view.name) for view in broken]
    return tuple(all_edits)


def renamed(view: ViewDefinition, name: str) -> ViewDefinition:
    return dataclasses.replace(view, name=name)


def dropped(edits: Iterable[Edit]) -> list[str]:
    """The names of the views that the edits drop."""
    return [edit.name for edit in edits if isinstance(edit, DropView)]
