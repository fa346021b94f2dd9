"""SEARCH and CYCLE of recursive queries, rewritten into plain ones as PostgreSQL does it.

Each term becomes a derived table with further columns: the way to a row as an array of rows (depth
first, and the path of CYCLE), or how deep the row lies and its key (breadth first).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from remuda.errors import DuplicateColumn, NotSupported, SqlSyntaxError
from remuda.sql.scope.context import Context, identifier
from remuda.sql.text.search_tokens import BETWEEN

_BASE, _STEP = " base", " step"
_FIELD_OF_DEPTH: Final = "f1"


def with_search(
    context: Context, name: str, columns: Sequence[str], union: exp.Union, clause: exp.Expr
) -> tuple[exp.Union, list[str]]:
    """The two terms with the columns of SEARCH or CYCLE, and the names of all columns. ``columns``
    are those that the query ``name`` has without. Raises NotSupported, SqlSyntaxError,
    DuplicateColumn."""
    found = _Clause(context, clause, columns)
    base, step = union.args["this"].unnest(), union.args["expression"].unnest()
    for term, side in ((base, "left"), (step, "right")):
        if not isinstance(term, exp.Select):
            raise context.error(
                NotSupported,
                f"with a SEARCH or CYCLE clause, the {side} side of the UNION must be a SELECT",
                term,
            )
    inner = step.copy()
    source = _reference(context, name, inner)
    for extra in found.names:
        inner.append("expressions", _column(source, extra))
    if found.mark:
        reached = found.reached.copy()
        wanted: exp.Expr = exp.NEQ(this=_column(source, found.mark), expression=reached)
        where = inner.args.get("where")
        if where is not None:
            wanted = exp.And(this=exp.Paren(this=where.this), expression=wanted)
        inner.set("where", exp.Where(this=wanted))
    made = union.copy()
    made.set("this", _derived(base.copy(), _BASE, columns, columns, found.of_base()))
    every = [*columns, *found.names]
    made.set("expression", _derived(inner, _STEP, every, columns, found.of_step()))
    return made, every


class _Clause:
    """What the clause says. ``names`` are those of the further columns; ``mark`` is the first of
    CYCLE, which is ``reached`` where a row came before."""

    def __init__(self, context: Context, node: exp.Expr, columns: Sequence[str]) -> None:
        self._kind = str(node.args["kind"]).upper()
        what = "cycle" if self._kind == "CYCLE" else "search"
        self._by = identifier(node.this).split(BETWEEN)
        for column in self._by:
            if column not in columns:
                raise context.error(
                    SqlSyntaxError, f'{what} column "{column}" not in WITH query column list',
                    node.this,
                )  # fmt: skip
            if self._by.count(column) > 1:
                raise context.error(
                    DuplicateColumn, f'{what} column "{column}" specified more than once', node.this
                )
        self.names = [identifier(node.args["expression"])]
        self.mark = ""
        if self._kind == "CYCLE":
            self.mark = self.names[0]
            self.names.append(identifier(node.args["using"]))
        for extra in self.names:
            if extra in columns or self.names.count(extra) > 1:
                raise context.error(
                    SqlSyntaxError,
                    f'{what} column name "{extra}" already used in WITH query column list',
                    node.args["expression"],
                )
        self.reached = node.args.get("to") or exp.Boolean(this=True)
        self._default = node.args.get("default") or exp.Boolean(this=False)

    def _row(self, table: str, *before: exp.Expr) -> exp.Expr:
        fields = [*before, *(_column(table, column) for column in self._by)]
        return exp.Anonymous(this="row", expressions=fields)

    def of_base(self) -> list[exp.Expr]:
        """The further columns of the first term."""
        if self._kind == "BREADTH":
            zero = exp.Cast(this=_number(0), to=exp.DataType(this=exp.DType.BIGINT))
            return [self._row(_BASE, zero)]
        path = exp.Array(expressions=[self._row(_BASE)], value_constructor=True)
        return [self._default.copy(), path] if self.mark else [path]

    def of_step(self) -> list[exp.Expr]:
        """Those of the recursive term."""
        old = _column(_STEP, self.names[-1])
        if self._kind == "BREADTH":
            depth = exp.Dot(this=exp.Paren(this=old), expression=exp.to_identifier(_FIELD_OF_DEPTH))
            return [self._row(_STEP, exp.Add(this=depth, expression=_number(1)))]
        longer = exp.Anonymous(this="array_append", expressions=[old, self._row(_STEP)])
        if not self.mark:
            return [longer]
        before = exp.EQ(this=self._row(_STEP), expression=exp.Any(this=old.copy()))
        marked = exp.If(this=before, true=self.reached.copy())
        return [exp.Case(ifs=[marked], default=self._default.copy()), longer]


def _derived(
    query: exp.Expr, alias: str, given: Sequence[str], kept: Sequence[str], more: list[exp.Expr]
) -> exp.Select:
    """``SELECT kept, more FROM (query) AS alias (given)``"""
    names = exp.TableAlias(this=_name(alias), columns=[_name(column) for column in given])
    source = exp.Subquery(this=query, alias=names)
    items = [*(_column(alias, column) for column in kept), *more]
    return exp.Select(expressions=items, from_=exp.From(this=source))


def _reference(context: Context, name: str, step: exp.Select) -> str:
    """What the recursive term calls the query ``name``, which stands in its own FROM."""
    first = step.args.get("from_")
    sources = [] if first is None else [first.this]
    sources += [join.this for join in step.args.get("joins") or ()]
    for source in sources:
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            if identifier(source.this) != name or source.args.get("db") is not None:
                continue
            alias = source.args.get("alias")
            return name if alias is None or alias.this is None else identifier(alias.this)
    raise context.error(
        NotSupported,
        "with a SEARCH or CYCLE clause, the recursive reference to WITH query "
        f'"{name}" must be at the top level of its right-hand SELECT',
        step,
    )


def _name(text: str) -> exp.Identifier:
    return exp.Identifier(this=text, quoted=True)


def _column(table: str, name: str) -> exp.Column:
    return exp.Column(this=_name(name), table=_name(table))


def _number(value: int) -> exp.Literal:
    return exp.Literal(this=str(value), is_string=False)
