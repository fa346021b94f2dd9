"""Storms of statements that change one entry by its key (decision 0069): on the short way, at the
owner of the key, and on the general one, beside each other, while members fail and partitions move.

One specification judges both ways: entries by ``single_entries``, lists by ``histories``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from random import Random
from typing import Any

import single_entries
from histories import Append, Read
from sim_network import Fate, Sent
from sim_transaction_works import Lists, Told, Work, failed, values_of
from sim_transactions import PARTS_MESSAGES, TransactionStorm
from single_entries import Call

from remuda.errors import RemudaError, UniqueViolation

Value = str | None
Change = Callable[[Value], tuple[Value, Hashable]]
SHORT_MAX = 24
"""Characters: conditions tell shorter values from longer ones."""


def general(text: str) -> str:
    """The same statement on the general way, as it calls a volatile function."""
    return f"{text} random() < 2"


class Statement:
    """``text`` with its parameters, and what it does to an entry that has a value, or none."""

    def __init__(self, chance: Random, key: int, number: int) -> None:
        self.key, self.more = key, f" {number}"
        self.short = chance.random() < 0.6
        self.returns = chance.random() < 0.6
        self.bounded = chance.random() < 0.3
        kind = chance.choice(("insert", "ignore", "upsert", "upsert", "update", "update", "delete"))
        self.change: Change = getattr(self, f"_{kind}")
        self.text, self.parameters = getattr(self, f"_{kind}_text")()
        if self.returns:
            self.text += " RETURNING v"

    def told(self, number: int, value: Value) -> Hashable:
        """The answer for so many changed rows."""
        if self.returns:
            return (value,) if number else ()
        return number

    def _where(self, condition: str) -> str:
        condition = f"k = ?{condition if self.bounded else ''}"
        return condition if self.short else general(f"{condition} AND")

    # ---- statements of an entry that is there ----

    def _update_text(self) -> tuple[str, tuple[Any, ...]]:
        where = self._where(f" AND length(v) < {SHORT_MAX}")
        return f"UPDATE entries SET v = v || ? WHERE {where}", (self.more, self.key)

    def _update(self, value: Value) -> tuple[Value, Hashable]:
        if value is None or (self.bounded and len(value) >= SHORT_MAX):
            return value, self.told(0, None)
        return value + self.more, self.told(1, value + self.more)

    def _delete_text(self) -> tuple[str, tuple[Any, ...]]:
        where = self._where(f" AND length(v) > {SHORT_MAX}")
        return f"DELETE FROM entries WHERE {where}", (self.key,)

    def _delete(self, value: Value) -> tuple[Value, Hashable]:
        if value is None or (self.bounded and len(value) <= SHORT_MAX):
            return value, self.told(0, None)
        return None, self.told(1, value)

    # ---- statements of an entry that may not be there ----

    def _insert_text(self) -> tuple[str, tuple[Any, ...]]:
        if self.short:
            return "INSERT INTO entries (k, v) VALUES (?, ?)", (self.key, self.more)
        row = general("SELECT CAST(? AS BIGINT), CAST(? AS VARCHAR) WHERE")
        return f"INSERT INTO entries (k, v) {row}", (self.key, self.more)

    def _insert(self, value: Value) -> tuple[Value, Hashable]:
        if value is not None:
            return value, "duplicate"
        return self.more, self.told(1, self.more)

    def _ignore_text(self) -> tuple[str, tuple[Any, ...]]:
        text, parameters = self._insert_text()
        return f"{text} ON CONFLICT (k) DO NOTHING", parameters

    def _ignore(self, value: Value) -> tuple[Value, Hashable]:
        return self._insert(value) if value is None else (value, self.told(0, None))

    def _upsert_text(self) -> tuple[str, tuple[Any, ...]]:
        text, parameters = self._insert_text()
        text += " ON CONFLICT (k) DO UPDATE SET v = entries.v || excluded.v"
        if self.bounded:
            text += f" WHERE length(entries.v) < {SHORT_MAX}"
        return text, parameters

    def _upsert(self, value: Value) -> tuple[Value, Hashable]:
        return self._insert(value) if value is None else self._update(value)


class Entries(Work):
    """Entries that come, change and go by single statements."""

    name = "entries"
    keys = 3

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.calls: list[Call] = []

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE entries (k BIGINT PRIMARY KEY, v VARCHAR)")

    async def step(self, client: Any, chance: Random) -> None:
        key = chance.randrange(self.keys)
        if chance.random() < 0.25:
            await self._look(client, key, by_get=chance.random() < 0.5)
            return
        statement = Statement(chance, key, self.told.number())
        began = self.told.now()
        named = f"{statement.text} {statement.parameters}"
        try:
            answer = await self._answer(client, statement)
        except RemudaError as error:
            if not failed(error):
                call = Call(key, named, statement.change, began, known=False)
                self.calls.append(call)
            raise
        self.calls.append(Call(key, named, statement.change, began, self.told.now(), answer))
        self.told.ends[f"{'short' if statement.short else 'general'} {answer == 'duplicate'}"] += 1
        self.well()

    @staticmethod
    async def _answer(client: Any, statement: Statement) -> Hashable:
        try:
            cursor = await client.sql(statement.text, *statement.parameters)
            if statement.returns:
                return tuple([row[0] async for row in cursor])
        except UniqueViolation:
            return "duplicate"
        found: int = cursor.rowcount
        return found

    async def _look(self, client: Any, key: int, *, by_get: bool) -> None:
        began = self.told.now()
        if by_get:
            entry = await client.map("entries").get(key)
            value = None if entry is None else entry.v
        else:
            cursor = await client.sql("SELECT v FROM entries WHERE k = ?", key)
            found = [row[0] async for row in cursor]
            value = found[0] if found else None
        how = "get" if by_get else "SELECT"
        self.calls.append(
            Call(key, how, lambda value: (value, value), began, self.told.now(), value)
        )
        self.well()

    async def finish(self, client: Any) -> None:
        for key in range(self.keys):
            await self._look(client, key, by_get=True)

    def judge(self) -> list[str]:
        return single_entries.violations(self.calls)


class KeyedLists(Lists):
    """Lists as those of other storms, appended to by their keys, beside transactions of several."""

    async def _statement(self, client: Any, chance: Random) -> None:
        number, key = self.told.number(), chance.randrange(self.keys)
        where = "k = ?" if chance.random() < 0.7 else general("k = ? AND")
        text = f"UPDATE lists SET v = v || ? WHERE {where} RETURNING v"

        async def ask(done: list[Append | Read]) -> None:
            cursor = await client.sql(text, f" {number}", key)
            found = [values_of(row[0]) async for row in cursor]
            if len(found) == 1:
                done.insert(0, Read(key, found[0][:-1]))
            else:
                self.wrong.append(f"{len(found)} lists were changed instead of number {key}")

        await self._noted([Append(key, number)], ask)

    def judge(self) -> list[str]:
        return self.wrong[:3] + super().judge()

    async def step(self, client: Any, chance: Random) -> None:
        draw = chance.random()
        if draw < 0.15:
            await self._noted([], lambda done: self._look(client, done))
        elif draw < 0.75:
            await self._statement(client, chance)
        else:
            await self._transaction(client, chance)


FAULTS = ("crash", "crash", "split", "join", "leave", "break", "silence")
KEYED_MESSAGES = frozenset({"KEYED_WRITE", "KEYED_WRITE_END"})


class KeyedStorm(TransactionStorm):
    """``dense``: nothing fails, hardly anybody rests, and frames are late. Otherwise there are two
    faults, and frames of commits are lost, repeated and late in half of the storms."""

    def __init__(self, seed: int, level: str | None = None, *, dense: bool = False) -> None:
        super().__init__(seed, level or "serializable")
        self.dense = dense
        self.works = [Entries(self.told), KeyedLists(self.told)]
        self.works[1].keys = 4
        self.asked = 0
        chance = Random(f"{seed}/keyed")
        if dense:
            self.events, self.lossy, self.between = ["nothing"], True, 0.7
            self.users, self.pause, self.slow = 6, 0.003, 0.0
        else:
            self.events = [chance.choice(FAULTS) for _ in range(2)]
            self.users, self.pause = 5, 0.03

    async def storm(self) -> None:
        self.sim.network.watchers.append(self._watch)
        await super().storm()

    def _watch(self, sent: Sent) -> None:
        self.asked += sent.name == "KEYED_WRITE" and sent.mode == 0

    def _fate(self, sent: Sent) -> Fate | None:
        """Requests to owners may be late. A connection that does not break loses none of them."""
        if not self.dense and sent.name not in KEYED_MESSAGES:
            return super()._fate(sent)
        if sent.name not in KEYED_MESSAGES | PARTS_MESSAGES or self.random.random() > 0.15:
            return None
        return Fate((self.random.uniform(0, 0.05 if self.dense else 0.3),))


def dense(seed: int, level: str | None) -> KeyedStorm:
    return KeyedStorm(seed, level, dense=True)
