"""Binding: a parsed statement and the catalog -> a typed statement, or an error that says where."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from remuda.datatypes.sql import SqlType
from remuda.errors import RemudaError
from remuda.sql.changes import bind_insert
from remuda.sql.context import Context
from remuda.sql.modify import bind_change, bind_truncate
from remuda.sql.queries import bind_query
from remuda.sql.relations import Environment
from remuda.sql.schemas import bind_create, bind_drop, bind_show
from remuda.sql.statements import (
    BoundQuery,
    BoundStatement,
    CatalogReader,
    ChangeStatement,
    ExplainStatement,
    InsertStatement,
    ParsedStatement,
)
from remuda.sql.syntax import (
    ChangeTree,
    CreateTree,
    DropTree,
    ExplainTree,
    InsertTree,
    QueryTree,
    ShowTree,
    TruncateTree,
)
from remuda.sql.tokens import too_deep


def bind(
    parsed: ParsedStatement,
    catalog: CatalogReader,
    parameter_types: Sequence[SqlType | None] | None = None,
) -> BoundStatement:
    """Resolve names and types. ``parameter_types`` are types that the client fixed; the others are
    inferred from where the parameters stand.

    Raises the InputErrors with position and suggestion, LimitExceeded for deep nesting.
    """
    context = Context(parsed.text, catalog, parsed.parameters, parameter_types)
    try:
        return _bind(context, parsed)
    except RemudaError as error:
        error.statement = parsed.text
        raise
    except RecursionError:
        deep = too_deep(None)
        deep.statement = parsed.text
        raise deep from None


def _bind(context: Context, parsed: ParsedStatement) -> BoundStatement:
    match parsed.tree:
        case QueryTree() | InsertTree() | ChangeTree() as tree:
            return _bind_runnable(context, tree)
        case TruncateTree() as tree:
            return bind_truncate(context, tree)
        case ExplainTree(analyze=analyze, verbose=verbose, statement=statement):
            return ExplainStatement(analyze, verbose, _bind_runnable(context, statement))
        case CreateTree() as tree:
            return bind_create(context, tree)
        case DropTree() as tree:
            return bind_drop(context, tree)
        case ShowTree() as tree:
            return bind_show(context, tree)


def _bind_runnable(
    context: Context, tree: QueryTree | InsertTree | ChangeTree
) -> BoundQuery | InsertStatement | ChangeStatement:
    if isinstance(tree, InsertTree):
        insert = bind_insert(context, tree)
        return dataclasses.replace(insert, parameter_types=context.finish_parameters())
    if isinstance(tree, ChangeTree):
        change = bind_change(context, tree)
        return dataclasses.replace(change, parameter_types=context.finish_parameters())
    plan = bind_query(context, tree.root, Environment())
    names = tuple(column.name for column in plan.output)
    return BoundQuery(plan, names, context.finish_parameters())
