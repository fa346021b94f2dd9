"""Methods of a map over all entries, or those of a condition: counts, sums, removal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, overload

from remuda.client.asynchronous.handle import Handle, Selection, condition_of
from remuda.client.requests.requests import NO_OPTIONS
from remuda.client.values.predicate import Condition, Operand, quote
from remuda.client.values.values import parameters_of
from remuda.errors import InputError

Column: TypeAlias = str | Operand
By: TypeAlias = str | Sequence[str] | None


class Aggregates(Handle):
    """Part of ``Map``."""

    @overload
    async def count(self, where: Condition | Operand | None = None) -> int: ...

    @overload
    async def count(
        self, where: Condition | Operand | None = None, *, by: str | Sequence[str]
    ) -> dict[Any, int]: ...

    async def count(self, where: Condition | Operand | None = None, *, by: By = None) -> Any:
        """The number of entries for which ``where`` holds. ``by``: for each value of these columns
        by itself, a dict whose keys are the values (tuples, for several columns)."""
        return await self._aggregate("count(*)", (), where, by)

    async def sum(
        self, column: Column, where: Condition | Operand | None = None, *, by: By = None
    ) -> Any:
        """The sum of a column, or of arithmetic over ``remuda.col``; None without values."""
        return await self._of_column("sum", column, where, by)

    async def min(
        self, column: Column, where: Condition | Operand | None = None, *, by: By = None
    ) -> Any:
        """The smallest value; None without values."""
        return await self._of_column("min", column, where, by)

    async def max(
        self, column: Column, where: Condition | Operand | None = None, *, by: By = None
    ) -> Any:
        """The largest value; None without values."""
        return await self._of_column("max", column, where, by)

    async def avg(
        self, column: Column, where: Condition | Operand | None = None, *, by: By = None
    ) -> Any:
        """The average; None without values."""
        return await self._of_column("avg", column, where, by)

    async def is_empty(self) -> bool:
        """Whether the map has no entry."""
        text = f"SELECT 1 FROM {quote(self.name)} LIMIT 1"  # noqa: S608  (quoted)
        async with Selection(self._core, text, ()) as pages:
            rows = await pages.next()
            return rows is None or not list(rows)

    async def remove_all(self, where: Condition | Operand) -> int:
        """Remove the entries for which ``where`` holds, all at one moment; their number."""
        if where is None:
            raise InputError(
                "remove_all takes a condition", hint="To remove all entries, use clear()."
            )
        condition, values = condition_of(where)
        text = f"DELETE FROM {quote(self.name)}{condition}"  # noqa: S608  (quoted)
        physical, types = parameters_of(values)
        reader = await self._core.execute(text, physical, types, NO_OPTIONS)
        await reader.close()
        return reader.rowcount

    async def truncate(self) -> None:
        """Remove all entries, at one moment; the map stays. As TRUNCATE."""
        await self._run(f"TRUNCATE {quote(self.name)}")

    async def clear(self) -> None:
        """``truncate`` by its other name."""
        await self.truncate()

    async def destroy(self) -> None:
        """Drop the map with all its entries, as ``client.drop_map``. A rollback brings it back.
        UndefinedMap."""
        await self._run(f"DROP TABLE {quote(self.name)}")
        self._unbind()

    async def _of_column(
        self, function: str, column: Column, where: Condition | Operand | None, by: By
    ) -> Any:
        if isinstance(column, str):
            return await self._aggregate(f"{function}({quote(column)})", (), where, by)
        if not isinstance(column, Operand):
            raise InputError(
                f"{function} takes the name of a column, found {type(column).__name__}",
                hint='Or arithmetic: remuda.col("price") * remuda.col("pieces").',
            )
        return await self._aggregate(f"{function}({column.sql})", column.parameters, where, by)

    async def _aggregate(
        self,
        call: str,
        parameters: tuple[Any, ...],
        where: Condition | Operand | None,
        by: By,
    ) -> Any:
        groups = _groups(by)
        listed = ", ".join(map(quote, groups))
        condition, values = condition_of(where)
        select = f"{listed}, {call}" if groups else call
        text = f"SELECT {select} FROM {quote(self.name)}{condition}"  # noqa: S608  (quoted)
        if groups:
            text += f" GROUP BY {listed}"
        found: dict[Any, Any] = {}
        async with Selection(self._core, text, parameters + values) as pages:
            while (rows := await pages.next()) is not None:
                for row in rows:
                    if not groups:
                        return row[0]
                    found[row[0] if isinstance(by, str) else tuple(row[:-1])] = row[-1]
        return found


def _groups(by: By) -> tuple[str, ...]:
    if by is None:
        return ()
    names = (by,) if isinstance(by, str) else by
    given = isinstance(names, Sequence) and names and all(isinstance(n, str) for n in names)
    if not given:
        raise InputError(f"by takes the names of columns, found {by!r}")
    return tuple(names)
