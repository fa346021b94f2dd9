"""Set-returning functions of a SELECT: ``SELECT unnest(a), generate_series(1, 3)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from remuda.errors import NotSupported
from remuda.plan.expression import ColumnId, ColumnRef, Expression, columns_of
from remuda.plan.functions import is_volatile
from remuda.plan.logical import Logical, OutputColumn, Unfold
from remuda.plan.set_functions import SetCall
from remuda.sql.expressions import ExpressionBinder
from remuda.sql.table_functions import bound_call


class SelectRows:
    """The calls in the select list, GROUP BY, DISTINCT ON and ORDER BY of one SELECT.

    They are unfolded side by side, above groups and windows, below DISTINCT, ORDER BY and LIMIT;
    those in keys of GROUP BY below the groups. Equal calls share one column.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[SetCall, OutputColumn, exp.Expr]] = []
        self._grouped: set[ColumnId] = set()
        """The columns of the calls that are unfolded below the groups."""

    @property
    def active(self) -> bool:
        return bool(self.ids)

    @property
    def count(self) -> int:
        """How many calls there are, those in keys of GROUP BY included."""
        return len(self._calls)

    @property
    def ids(self) -> set[ColumnId]:
        """The columns of the calls above the groups."""
        return {column.id for _, column, _ in self._calls} - self._grouped

    def bind(
        self, binder: ExpressionBinder, name: str, arguments: Sequence[exp.Expr], node: exp.Expr
    ) -> Expression:
        """A reference to the column that the call will give."""
        context = binder.context
        known = len(self._calls)
        call, signature = bound_call(binder, name, arguments, node)
        if len(self._calls) > known:
            raise context.unsupported("a set-returning function in the arguments of one", node)
        if len(signature.columns) > 1:
            raise context.error(
                NotSupported,
                f"{name} gives several columns",
                node,
                hint="Call it in FROM.",
            )
        if not signature.columns:
            raise context.error(
                NotSupported,
                f"could not determine row type for result of {name}",
                node,
                hint=f"Call it in FROM: {name}(...) AS r(column type, ...).",
            )
        column = next((c for made, c, _ in self._calls if made == call), None)
        if column is not None and not any(map(is_volatile, call.arguments)):
            return ColumnRef(column.type, column.id, column.name)
        column = OutputColumn(context.new_id(), name, call.types[0])
        self._calls.append((call, column, node))
        return ColumnRef(column.type, column.id, column.name)

    def attach_grouped(self, plan: Logical, keys: Iterable[Expression]) -> Logical:
        """``plan`` with the columns of the calls that the grouping ``keys`` use."""
        used = {column for key in keys for column in columns_of(key)}
        calls = [(call, column) for call, column, _ in self._calls if column.id in used]
        self._grouped = {column.id for _, column in calls}
        return _unfolded(plan, calls)

    def attach(
        self, plan: Logical, above: Callable[[Expression, exp.Expr | None], Expression]
    ) -> Logical:
        """``plan`` with the columns of the other calls; ``above`` rewrites arguments over
        groups."""
        calls = []
        for call, column, node in self._calls:
            if column.id not in self._grouped:
                arguments = tuple(above(argument, node) for argument in call.arguments)
                calls.append((replace(call, arguments=arguments), column))
        return _unfolded(plan, calls)


def _unfolded(plan: Logical, calls: Sequence[tuple[SetCall, OutputColumn]]) -> Logical:
    if not calls:
        return plan
    columns = tuple(column for _, column in calls)
    return Unfold((*plan.output, *columns), plan, tuple(call for call, _ in calls))
