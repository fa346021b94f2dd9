"""Set-returning functions in a select list: ``SELECT unnest(a), generate_series(1, 3)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from remuda.errors import NotSupported
from remuda.plan.expression import ColumnId, ColumnRef, Expression
from remuda.plan.logical import Logical, OutputColumn, Unfold
from remuda.plan.set_functions import SetCall
from remuda.sql.expressions import ExpressionBinder
from remuda.sql.table_functions import bound_call


class SelectRows:
    """The calls of one SELECT: they are unfolded side by side, above groups and windows, below
    DISTINCT, ORDER BY and LIMIT."""

    def __init__(self) -> None:
        self._calls: list[tuple[SetCall, OutputColumn, exp.Expr]] = []

    @property
    def active(self) -> bool:
        return bool(self._calls)

    @property
    def ids(self) -> set[ColumnId]:
        return {column.id for _, column, _ in self._calls}

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
        column = OutputColumn(context.new_id(), name, call.types[0])
        self._calls.append((call, column, node))
        return ColumnRef(column.type, column.id, column.name)

    def attach(
        self, plan: Logical, above: Callable[[Expression, exp.Expr | None], Expression]
    ) -> Logical:
        """``plan`` with the columns of the calls; ``above`` rewrites arguments over groups."""
        calls = []
        for call, _, node in self._calls:
            arguments = tuple(above(argument, node) for argument in call.arguments)
            calls.append(replace(call, arguments=arguments))
        columns = tuple(column for _, column, _ in self._calls)
        return Unfold((*plan.output, *columns), plan, tuple(calls))
