"""``WITH x AS (INSERT | UPDATE | DELETE | MERGE ... RETURNING ...) SELECT ...``: a change whose
RETURNING is a relation of the query around it.

Both read the state before the change. One statement changes one map, so that it is atomic: one such
part, in the WITH of a SELECT that is the whole statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from remuda.datatypes.schema import Column
from remuda.errors import DuplicateAlias, InvalidColumnReference, NotSupported
from remuda.plan.logical import Logical
from remuda.sql.changes.changes import bind_insert
from remuda.sql.changes.merge import bind_merge
from remuda.sql.changes.modify import bind_change
from remuda.sql.queries.queries import bind_query
from remuda.sql.queries.relations import CommonTable, Environment
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.statements import BoundQuery, ChangeStatement
from remuda.sql.scope.supplied import supplied
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import ChangeTree, InsertTree

CHANGES: Final = (ast.Insert, ast.Update, ast.Delete, ast.Merge)
Make: TypeAlias = Callable[[], Logical]


def changing_tables(root: ast.Node) -> list[ast.Node]:
    """The CTEs of the statement itself that change data."""
    clause = root.args.get("with_")
    return [] if clause is None else [e for e in clause.expressions if isinstance(e.this, CHANGES)]


def bind_changing_query(context: Context, root: ast.Node) -> ChangeStatement:
    """The statement without its parameter types. Raises NotSupported for a second change."""
    clause = root.args["with_"]
    entries = list(clause.expressions)
    entry, *more = changing_tables(root)
    if more:
        raise context.error(
            NotSupported,
            "a statement that changes data in several parts is not supported",
            more[0].args["alias"],
            hint="Send the changes as statements of their own.",
        )
    name = identifier(entry.args["alias"].this)
    if sum(identifier(e.args["alias"].this) == name for e in entries) > 1:
        raise context.error(
            DuplicateAlias, f'WITH query name "{name}" specified more than once', entry
        )
    recursive = clause.args.get("recursive")
    readable = entry.this.args.get("returning") is not None
    change = _bound_change(context, entry.this, _with(entries[: entries.index(entry)], recursive))
    make = _relation(context, entry, change) if readable else _no_relation(context, entry)
    common = CommonTable(entry.this, [], Environment(), make=make)
    others = [e for e in entries if e is not entry]
    query = root.with_args(with_=_with(others, recursive))
    plan = bind_query(context, query, Environment({name: common}))
    names = tuple(column.name for column in plan.output)
    return replace(change, relation=_relation_name(name), query=BoundQuery(plan, names))


def _with(entries: list[ast.Node], recursive: object) -> ast.With | None:
    if not entries:
        return None
    return ast.With(expressions=entries, recursive=recursive)


def _bound_change(context: Context, node: ast.Node, before: ast.With | None) -> ChangeStatement:
    if before is not None:
        if node.args.get("with_") is not None:
            raise context.unsupported(
                "WITH inside of a change that follows another WITH",
                node,
                hint="Write all WITH queries at the beginning of the statement.",
            )
        node = node.with_args(with_=before)
    if node.args.get("returning") is None:
        nothing = ast.Returning(expressions=[ast.Literal.number(1)])
        node = node.with_args(returning=nothing)
    if isinstance(node, ast.Insert):
        made = bind_insert(context, InsertTree(node, sink=False))
        assert isinstance(made, ChangeStatement), "RETURNING makes it one"
        return made
    if isinstance(node, ast.Merge):
        return bind_merge(context, node)
    assert isinstance(node, ast.Update | ast.Delete)
    return bind_change(context, ChangeTree(node))


def _relation_name(name: str) -> str:
    return f"rows changed by {name}"


def _no_relation(context: Context, entry: ast.Node) -> Make:
    alias = entry.args["alias"]

    def make() -> Logical:
        name = identifier(alias.this)
        raise context.error(
            NotSupported,
            f'WITH query "{name}" does not have a RETURNING clause',
            alias,
            hint="Add RETURNING to the change in the WITH query.",
        )

    return make


def _relation(context: Context, entry: ast.Node, change: ChangeStatement) -> Make:
    """The maker of the relation for each place that reads it."""
    alias = entry.args["alias"]
    name = identifier(alias.this)
    renamed = [identifier(column) for column in alias.args.get("columns") or ()]
    found = change.source.output[len(change.source.output) - len(change.returning) :]
    if len(renamed) > len(found):
        raise context.error(
            InvalidColumnReference,
            f'WITH query "{name}" has {len(found)} columns available but '
            f"{len(renamed)} columns specified",
            alias,
        )
    names = [*renamed, *change.returning[len(renamed) :]]
    columns = [Column(n, c.type, c.nullable) for n, c in zip(names, found, strict=True)]
    return lambda: supplied(context, _relation_name(name), columns)
