"""Relations whose rows the initiator makes when a statement starts: system relations by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from remuda.errors import UndefinedMap
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
        """Raises UndefinedMap, and what the supplier raises."""
        supplier = self._suppliers.get(relation)
        if supplier is None:
            raise UndefinedMap(f'relation "{relation}" does not exist on this member')
        return await supplier(statement)
