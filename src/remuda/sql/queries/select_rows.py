"""Set-returning functions of a SELECT: ``SELECT unnest(a), generate_series(1, 3)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from remuda.datatypes.sql import row
from remuda.errors import NotSupported
from remuda.plan.expression import Call, ColumnId, ColumnRef, Expression, columns_of
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.functions.set_functions import SetCall
from remuda.plan.logical import Logical, OutputColumn, Unfold
from remuda.sql.expressions.expressions import ExpressionBinder
from remuda.sql.queries.table_functions import bound_call
from remuda.sql.trees import ast


class SelectRows:
    """The calls in the select list, GROUP BY, DISTINCT ON and ORDER BY of one SELECT.

    They are unfolded side by side, above groups and windows, below DISTINCT, ORDER BY and LIMIT;
    those in keys of GROUP BY below the groups. Equal calls share one column.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[SetCall, tuple[OutputColumn, ...], ast.Node]] = []
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
        return {column.id for _, columns, _ in self._calls for column in columns} - self._grouped

    def bind(
        self, binder: ExpressionBinder, name: str, arguments: Sequence[ast.Node], node: ast.Node
    ) -> Expression:
        """A reference to the column that the call will give; of several columns the row."""
        context = binder.context
        known = len(self._calls)
        call, signature = bound_call(binder, name, arguments, node)
        if len(self._calls) > known:
            raise context.unsupported(
                "a set-returning function in the arguments of one",
                node,
                hint="Put the inner function into FROM.",
            )
        if not signature.columns:
            raise context.error(
                NotSupported,
                f"could not determine row type for result of {name}",
                node,
                hint=f"Call it in FROM: {name}(...) AS r(column type, ...).",
            )
        known_columns = next((c for made, c, _ in self._calls if made == call), None)
        if known_columns is not None and not any(map(is_volatile, call.arguments)):
            return _value(known_columns)
        columns = tuple(
            OutputColumn(context.new_id(), column or name, found)
            for (column, _), found in zip(signature.columns, call.types, strict=True)
        )
        self._calls.append((call, columns, node))
        return _value(columns)

    def attach_grouped(self, plan: Logical, keys: Iterable[Expression]) -> Logical:
        """``plan`` with the columns of the calls that the grouping ``keys`` use."""
        used = {column for key in keys for column in columns_of(key)}
        calls = [(c, columns) for c, columns, _ in self._calls if used & {x.id for x in columns}]
        self._grouped = {column.id for _, columns in calls for column in columns}
        return _unfolded(plan, calls)

    def attach(
        self, plan: Logical, above: Callable[[Expression, ast.Node | None], Expression]
    ) -> Logical:
        """``plan`` with the columns of the other calls; ``above`` rewrites arguments over
        groups."""
        calls = []
        for call, columns, node in self._calls:
            if columns[0].id not in self._grouped:
                arguments = tuple(above(argument, node) for argument in call.arguments)
                calls.append((replace(call, arguments=arguments), columns))
        return _unfolded(plan, calls)


def _value(columns: Sequence[OutputColumn]) -> Expression:
    """The value of a call for each row."""
    references = tuple(ColumnRef(column.type, column.id, column.name) for column in columns)
    if len(references) == 1:
        return references[0]
    return Call(row((column.name, column.type) for column in columns), "row", references)


def _unfolded(plan: Logical, calls: Sequence[tuple[SetCall, tuple[OutputColumn, ...]]]) -> Logical:
    if not calls:
        return plan
    columns = tuple(column for _, group in calls for column in group)
    return Unfold((*plan.output, *columns), plan, tuple(call for call, _ in calls))
