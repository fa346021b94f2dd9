"""The lifetimes of entries of a map, and its other options."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any, TypeAlias

from remuda.client.asynchronous.handle import AGAIN, Handle, Selection
from remuda.client.values.map_statistics import COLUMNS, MapStatistics, statistics_of
from remuda.client.values.predicate import quote
from remuda.datatypes.map_options import MapOptions, read_option, setting_text
from remuda.errors import InputError, UndefinedMap

Ttl: TypeAlias = float | str | timedelta | None
"""Seconds, or a text as "10 s"; 0: until it is removed; None: as the options of the map say."""


def checked_ttl(ttl: Ttl) -> int | None:
    """In microseconds. Raises InvalidDefinition."""
    return None if ttl is None else read_option("ttl", ttl)


class Lifetimes(Handle):
    async def ttl(self, key: Any) -> float | None:
        """The seconds that the entry has left; ``math.inf``: it stays until it is removed; None:
        there is no entry."""
        deadline = self._core.deadline()
        binding = await self._bound_now(deadline)
        try:
            left = await binding.ttl(binding.codec.key(key), deadline)
        except AGAIN as error:
            _, left = await self._read_again(
                error, deadline, lambda b: b.ttl(b.codec.key(key), deadline)
            )
        return None if left is None else left / 1_000_000 if left else math.inf

    async def set_ttl(self, key: Any, ttl: float | str | timedelta) -> bool:
        """Let the entry live for so long from now (see ``put``; 0: until it is removed); whether
        there is one."""
        if ttl is None:
            raise InputError(
                "set_ttl needs a time", hint="0 lets the entry live until it is removed."
            )
        micros = read_option("ttl", ttl)
        deadline = self._core.deadline()
        tries = self._core.tries(0, deadline)
        while True:
            binding = await self._bound_now(deadline)
            try:
                return await binding.set_ttl(binding.codec.key(key), deadline, micros)
            except AGAIN as error:
                await tries.after(error)
                await self._bind_again(error, deadline)

    async def statistics(self) -> MapStatistics:
        """The counters of the map, their sum and those of each member. Raises UndefinedMap."""
        schema = (await self._describe(self._core.deadline())).schema
        select = "SELECT " + ", ".join(COLUMNS)
        whole = await self._rows_of(
            f"{select}, no_answer FROM sys.maps WHERE map_id = ?", schema.map_id
        )
        parts = await self._rows_of(
            f"{select}, member FROM sys.map_parts WHERE name = ?", schema.name
        )
        if not whole:
            raise UndefinedMap(f'map "{self.name}" does not exist')
        *sums, no_answer = whole[0]
        return statistics_of(sums, {number: values for *values, number in parts}, no_answer)

    async def _rows_of(self, text: str, value: Any) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        async with Selection(self._core, text, (value,)) as pages:
            while (rows := await pages.next()) is not None:
                found += rows
        return found

    async def options(self) -> MapOptions:
        """The options of the map, as they are now."""
        return (await self._describe(self._core.deadline())).schema.options

    async def set_options(self, **options: Any) -> None:
        """Change options: ``ttl="10 s"``, ``max_idle``, ``eviction``, ``max_entries``, ...; None
        sets one back. Entries that are there keep the TTL that they were written with. Raises
        InvalidDefinition."""
        listed = ", ".join(setting_text(name, value) for name, value in options.items())
        if listed:
            await self._run(f"ALTER TABLE {quote(self.name)} SET ({listed})")
