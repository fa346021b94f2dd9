"""Relations whose rows the initiator makes when a statement starts: system relations by name, and
the temporary tables of the session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from remuda.execution.context import SuppliedRows
from remuda.member.sessions.statement import Statement

Supplier: TypeAlias = Callable[[Statement], Awaitable[SuppliedRows]]
"""Makes all rows of a relation for one statement: engine form, the relation's columns in order."""


class Supplies:
    """``register`` a relation under the name by which ``logical.Supplied`` refers to it."""

    def __init__(self) -> None:
        self._suppliers: dict[str, Supplier] = {}

    def register(self, relation: str, supplier: Supplier) -> None:
        self._suppliers[relation] = supplier

    async def rows(self, relation: str, statement: Statement) -> SuppliedRows:
        """Raises UndefinedMap, and the errors of the supplier."""
        supplier = self._suppliers.get(relation)
        if supplier is None:
            return statement.temporary_rows(relation)
        return await supplier(statement)
