"""Relations in FROM that are no maps: the initiator makes their rows when the statement starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remuda.datatypes.schema import Column
from remuda.datatypes.sql import unrestricted
from remuda.plan.expression import ColumnRef
from remuda.plan.logical import Logical, OutputColumn, Recursion, Supplied
from remuda.sql.scope.context import Context


def supplied(
    context: Context,
    relation: str,
    columns: Sequence[Column],
    *,
    alias: str = "",
    rows: float = 100.0,
    definition: Recursion | None = None,
    outer: Sequence[ColumnRef] = (),
) -> Supplied:
    """All ``columns`` of a relation, under ids of their own. Without ``definition`` the member must
    have a supplier of this name (``member.sessions.supplied_relations``). ``rows`` is a guess for
    the planner; ``outer`` are the columns of the query around it that ``definition`` uses."""
    output = tuple(
        OutputColumn(context.new_id(), column.name, unrestricted(column.type), column.nullable)
        for column in columns
    )
    return Supplied(
        output,
        relation,
        tuple(range(len(output))),
        rows,
        alias,
        definition,
        tuple(column.column for column in outer),
        tuple(outer),
    )


def once(context: Context, name: str, plan: Logical) -> Callable[[], Logical]:
    """The maker of the relation of a CTE whose rows are computed once, however often it is read."""
    relation = context.unique(f"query {name}")
    columns = [Column(c.name, c.type, c.nullable) for c in plan.output]
    definition = Recursion(name, "", plan, None, distinct=False)
    return lambda: supplied(context, relation, columns, definition=definition)
