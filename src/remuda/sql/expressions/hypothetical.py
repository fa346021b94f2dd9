"""Hypothetical-set aggregates: ``rank(values) WITHIN GROUP (ORDER BY keys)``, what the rank of a
row with these values would be. They become counts of the rows that come before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

from remuda.errors import UndefinedFunction
from remuda.plan.expression import Expression
from remuda.sql.expressions.expressions import ExpressionBinder
from remuda.sql.trees import ast


def hypothetical(
    binder: ExpressionBinder, node: ast.WithinGroup, condition: ast.Node | None
) -> Expression | None:
    """The call, if it is one of these aggregates; ``condition`` is its FILTER."""
    call = node.this
    name = ""
    if isinstance(call, ast.Call):
        name = str(call.this).lower()
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
    _check_direct(binder, name, values)
    return binder.bind(_MADE[name](_Group(values, keys, condition)))


def _check_direct(binder: ExpressionBinder, name: str, values: Sequence[ast.Node]) -> None:
    """A column in a direct argument is that of the group, which is NULL in some grouping sets."""
    column = next((found for value in values if (found := value.find(ast.Column))), None)
    if column is not None and binder.surroundings.has_grouping_sets:
        raise binder.context.unsupported(
            f"{name} of a grouping column with grouping sets", column, hint="Write a constant."
        )


class _Group:
    """Trees of what the counts need."""

    def __init__(
        self, values: Sequence[ast.Node], keys: Sequence[ast.Node], condition: ast.Node | None
    ) -> None:
        self._values = values
        self._keys = keys
        self._condition = condition

    def before(self) -> ast.Node:
        """Whether a row comes before the hypothetical one."""
        found: ast.Node | None = None
        for value, key in reversed(list(zip(self._values, self._keys, strict=True))):
            first = _precedes(value, key)
            found = first if found is None else _either(first, _both(_same(value, key), found))
        assert found is not None
        return found

    def not_after(self) -> ast.Node:
        pairs = zip(self._values, self._keys, strict=True)
        return _either(self.before(), reduce(_both, (_same(*pair) for pair in pairs)))

    def rows(self, wanted: ast.Node | None = None) -> ast.Node:
        return self._filtered(ast.Call(this="count", expressions=[ast.Star()]), wanted)

    def peers(self, wanted: ast.Node) -> ast.Node:
        """How many different rows of keys there are."""
        row = ast.Call(this="row", expressions=[key.this for key in self._keys])
        count = ast.Call(this="count", expressions=[ast.Distinct(expressions=[row])])
        return self._filtered(count, wanted)

    def _filtered(self, call: ast.Node, wanted: ast.Node | None) -> ast.Node:
        conditions = [part for part in (self._condition, wanted) if part is not None]
        if not conditions:
            return call
        where = reduce(_both, (part for part in conditions))
        return ast.Filter(this=call, expression=ast.Where(this=where))


def _precedes(value: ast.Node, key: ast.Node) -> ast.Node:
    """Whether a row's key is sorted before ``value``."""
    comparison = ast.GT if key.args.get("desc") else ast.LT
    smaller = comparison(this=key.this, expression=value)
    null, known = (key.this, value) if key.args.get("nulls_first") else (value, key.this)
    by_null = _both(
        ast.Is(this=null, expression=ast.Null()),
        ast.Is(this=known, expression=ast.Null(), negate=True),
    )
    return _either(ast.Is(this=smaller, expression=ast.Boolean(this=True)), by_null)


def _same(value: ast.Node, key: ast.Node) -> ast.Node:
    return ast.NullSafeEQ(this=key.this, expression=value)


def _both(left: ast.Node, right: ast.Node) -> ast.Node:
    return ast.And(this=left, expression=right)


def _either(left: ast.Node, right: ast.Node) -> ast.Node:
    return ast.Or(this=left, expression=right)


def _number(value: int) -> ast.Node:
    return ast.Literal(this=str(value), is_string=False)


def _share(part: ast.Node, whole: ast.Node) -> ast.Node:
    as_float = ast.Cast(operand=part, to=ast.TypeName(this="double"))
    return ast.Div(this=as_float, expression=whole)


def _percent_rank(group: _Group) -> ast.Node:
    nothing = ast.Branch(
        condition=ast.EQ(this=group.rows(), expression=_number(0)),
        result=ast.Cast(operand=_number(0), to=ast.TypeName(this="double")),
    )
    return ast.Case(branches=[nothing], otherwise=_share(group.rows(group.before()), group.rows()))


def _cume_dist(group: _Group) -> ast.Node:
    upto = ast.Add(this=group.rows(group.not_after()), expression=_number(1))
    whole = ast.Add(this=group.rows(), expression=_number(1))
    return _share(ast.Paren(this=upto), ast.Paren(this=whole))


_MADE: Final[dict[str, Callable[[_Group], ast.Node]]] = {
    "rank": lambda group: ast.Add(this=group.rows(group.before()), expression=_number(1)),
    "dense_rank": lambda group: ast.Add(this=group.peers(group.before()), expression=_number(1)),
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
}
