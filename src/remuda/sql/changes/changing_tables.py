"""``WITH x AS (INSERT | UPDATE | DELETE | MERGE ... RETURNING ...) SELECT ...``: a change whose
RETURNING is a relation of the query around it.

Both read the state before the change. One statement changes one map, so that it is atomic: one such
part, in the WITH of a SELECT that is the whole statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from sqlglot import exp

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
from remuda.sql.trees.syntax import ChangeTree, InsertTree

CHANGES: Final = (exp.Insert, exp.Update, exp.Delete, exp.Merge)
Make: TypeAlias = Callable[[], Logical]


def changing_tables(root: exp.Expr) -> list[exp.Expr]:
    """The CTEs of the statement itself that change data."""
    clause = root.args.get("with_")
    return [] if clause is None else [e for e in clause.expressions if isinstance(e.this, CHANGES)]


def bind_changing_query(context: Context, root: exp.Expr) -> ChangeStatement:
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
    query = root.copy()
    query.set("with_", None)
    others = [e for e in entries if e is not entry]
    if others:
        query.args["with_"] = _with(others, recursive)
    plan = bind_query(context, query, Environment({name: common}))
    names = tuple(column.name for column in plan.output)
    return replace(change, relation=_relation_name(name), query=BoundQuery(plan, names))


def _with(entries: list[exp.Expr], recursive: object) -> exp.With | None:
    if not entries:
        return None
    clause = exp.With()
    # Set by hand: the entries keep their parents in the tree of the statement.
    clause.args.update(expressions=entries, recursive=recursive)
    return clause


def _bound_change(context: Context, node: exp.Expr, before: exp.With | None) -> ChangeStatement:
    if before is not None:
        if node.args.get("with_") is not None:
            raise context.unsupported("WITH inside of a change that follows another WITH", node)
        node.args["with_"] = before
    if node.args.get("returning") is None:
        node.set("returning", exp.Returning(expressions=[exp.Literal.number(1)]))
    if isinstance(node, exp.Insert):
        made = bind_insert(context, InsertTree(node, sink=False))
        assert isinstance(made, ChangeStatement), "RETURNING makes it one"
        return made
    if isinstance(node, exp.Merge):
        return bind_merge(context, node)
    assert isinstance(node, exp.Update | exp.Delete)
    return bind_change(context, ChangeTree(node))


def _relation_name(name: str) -> str:
    return f"rows changed by {name}"


def _no_relation(context: Context, entry: exp.Expr) -> Make:
    alias = entry.args["alias"]

    def make() -> Logical:
        name = identifier(alias.this)
        raise context.error(
            NotSupported, f'WITH query "{name}" does not have a RETURNING clause', alias
        )

    return make


def _relation(context: Context, entry: exp.Expr, change: ChangeStatement) -> Make:
    """What makes the relation for each place that reads it."""
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
