"""Hypothetical-set aggregates: ``rank(values) WITHIN GROUP (ORDER BY keys)``, what the rank of a
row with these values would be. They become counts of the rows that come before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

from sqlglot import exp

from remuda.errors import UndefinedFunction
from remuda.plan.expression import Expression
from remuda.sql.expressions.expressions import ExpressionBinder
from remuda.sql.text.tokens import CALL_MARK


def hypothetical(
    binder: ExpressionBinder, node: exp.WithinGroup, condition: exp.Expr | None
) -> Expression | None:
    """The call, if it is one of these aggregates; ``condition`` is its FILTER."""
    call = node.this
    name = ""
    if isinstance(call, exp.Anonymous):
        name = str(call.this).removeprefix(CALL_MARK).lower()
    if name not in _MADE:
        return None
    clause = node.args["expression"]
    binder.context.only(clause, "expressions")
    values, keys = list(call.expressions), list(clause.expressions)
    if len(values) != len(keys):
        raise binder.context.error(
            UndefinedFunction,
            f"function {name} with {len(values)} direct and {len(keys)} ordering arguments does "
            "not exist",
            node,
            hint=f"To use the hypothetical-set aggregate {name}, the number of hypothetical direct "
            f"arguments (here {len(values)}) must match the number of ordering columns "
            f"(here {len(keys)}).",
        )
    _check_direct(binder, name, node, values)
    return binder.bind(_MADE[name](_Group(values, keys, condition)))


def _check_direct(
    binder: ExpressionBinder, name: str, node: exp.WithinGroup, values: Sequence[exp.Expr]
) -> None:
    """A column in a direct argument is that of the group, which is NULL in some grouping sets."""
    column = next((found for value in values if (found := value.find(exp.Column))), None)
    query = node.find_ancestor(exp.Select)
    group = None if query is None else query.args.get("group")
    sets = None if group is None else group.find(exp.Rollup, exp.Cube, exp.GroupingSets)
    if column is not None and sets is not None:
        raise binder.context.unsupported(
            f"{name} of a grouping column with grouping sets", column, hint="Write a constant."
        )


class _Group:
    """Trees of what the counts need; every tree is new, as each stands in one place."""

    def __init__(
        self, values: Sequence[exp.Expr], keys: Sequence[exp.Expr], condition: exp.Expr | None
    ) -> None:
        self._values = values
        self._keys = keys
        self._condition = condition

    def before(self) -> exp.Expr:
        """Whether a row comes before the hypothetical one."""
        found: exp.Expr | None = None
        for value, key in reversed(list(zip(self._values, self._keys, strict=True))):
            first = _precedes(value, key)
            found = first if found is None else _either(first, _both(_same(value, key), found))
        assert found is not None
        return found

    def not_after(self) -> exp.Expr:
        pairs = zip(self._values, self._keys, strict=True)
        return _either(self.before(), reduce(_both, (_same(*pair) for pair in pairs)))

    def rows(self, wanted: exp.Expr | None = None) -> exp.Expr:
        return self._filtered(exp.Anonymous(this="count", expressions=[exp.Star()]), wanted)

    def peers(self, wanted: exp.Expr) -> exp.Expr:
        """How many different rows of keys there are."""
        row = exp.Anonymous(this="row", expressions=[key.this.copy() for key in self._keys])
        count = exp.Anonymous(this="count", expressions=[exp.Distinct(expressions=[row])])
        return self._filtered(count, wanted)

    def _filtered(self, call: exp.Expr, wanted: exp.Expr | None) -> exp.Expr:
        conditions = [part for part in (self._condition, wanted) if part is not None]
        if not conditions:
            return call
        where = reduce(_both, (part.copy() for part in conditions))
        return exp.Filter(this=call, expression=exp.Where(this=where))


def _precedes(value: exp.Expr, key: exp.Expr) -> exp.Expr:
    """Whether a row's key is sorted before ``value``."""
    comparison = exp.GT if key.args.get("desc") else exp.LT
    smaller = comparison(this=key.this.copy(), expression=value.copy())
    null, known = (key.this, value) if key.args.get("nulls_first") else (value, key.this)
    by_null = _both(
        exp.Is(this=null.copy(), expression=exp.Null()),
        exp.Is(this=known.copy(), expression=exp.Null(), negate=True),
    )
    return _either(exp.Is(this=smaller, expression=exp.Boolean(this=True)), by_null)


def _same(value: exp.Expr, key: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=key.this.copy(), expression=value.copy())


def _both(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.And(this=left, expression=right)


def _either(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Or(this=left, expression=right)


def _number(value: int) -> exp.Expr:
    return exp.Literal(this=str(value), is_string=False)


def _share(part: exp.Expr, whole: exp.Expr) -> exp.Expr:
    as_float = exp.Cast(this=part, to=exp.DataType(this=exp.DataType.Type.DOUBLE))
    return exp.Div(this=as_float, expression=whole)


def _percent_rank(group: _Group) -> exp.Expr:
    nothing = exp.If(
        this=exp.EQ(this=group.rows(), expression=_number(0)),
        true=exp.Cast(this=_number(0), to=exp.DataType(this=exp.DataType.Type.DOUBLE)),
    )
    return exp.Case(ifs=[nothing], default=_share(group.rows(group.before()), group.rows()))


def _cume_dist(group: _Group) -> exp.Expr:
    upto = exp.Add(this=group.rows(group.not_after()), expression=_number(1))
    whole = exp.Add(this=group.rows(), expression=_number(1))
    return _share(exp.Paren(this=upto), exp.Paren(this=whole))


_MADE: Final[dict[str, Callable[[_Group], exp.Expr]]] = {
    "rank": lambda group: exp.Add(this=group.rows(group.before()), expression=_number(1)),
    "dense_rank": lambda group: exp.Add(this=group.peers(group.before()), expression=_number(1)),
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
}
