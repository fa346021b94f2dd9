"""Storms of COPY, alone and in transactions, while members fail: all rows or none, and the count.

Each COPY FROM has a number of its own, which all of its rows carry. Its data arrives in many small
pieces, so that a failure meets it at any of them.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import ExitStack
from random import Random
from typing import Any, ClassVar
from unittest import mock

from sim_cluster import Simulation
from sim_network import LOST, Fate, Sent
from sim_transaction_works import Told, Work, failed, rows
from sim_transactions import TransactionStorm
from sim_uniques import COMMIT_MESSAGES, FAULTS

import remuda.client.operations.copy_source as source_module
import remuda.member.queries.copy_port as port_module
from remuda.errors import InvalidText, RemudaError, UniqueViolation
from remuda.member.statements import write_statements

ROWS = 24
PIECE = 40
"""Bytes: a few rows."""


class Copies(Work):
    name: ClassVar[str] = "copies"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.done: set[int] = set()
        self.failed: set[int] = set()

    async def prepare(self, client: Any) -> None:
        await client.sql(
            "CREATE TABLE c (k BIGINT PRIMARY KEY, w BIGINT NOT NULL, d BIGINT DEFAULT 7)"
        )

    async def step(self, client: Any, chance: Random) -> None:
        draw = chance.random()
        if draw < 0.15:
            await self._look(client)
        elif draw < 0.25:
            await self._unload(client)
        else:
            await self._load(client, chance)

    async def _load(self, client: Any, chance: Random) -> None:
        number = self.told.number()
        wrong = chance.choice(("", "", "", "", "data", "key"))
        there = min(self.done, default=None)
        transaction = chance.random() < 0.4
        try:
            if transaction:
                async with client.transaction(**self.told.options) as tx:
                    found = await self._copied(tx, chance, number, wrong, there)
            else:
                found = await self._copied(client, chance, number, wrong, there)
        except (InvalidText, UniqueViolation) as error:
            self.failed.add(number)
            if isinstance(error, InvalidText) != (wrong == "data"):
                self.wrong.append(f"copy {number}: {error!r}")
            self.told.ends["copy refused"] += 1
            return
        except RemudaError as error:
            if failed(error):
                self.failed.add(number)
            raise
        self.done.add(number)
        if wrong == "data" or (wrong == "key" and there is not None) or found != ROWS:
            self.wrong.append(f"copy {number} ({wrong}) was told to have written {found} rows")
        self.told.ends["copy in a transaction" if transaction else "copy done"] += 1
        self.well()

    async def _copied(
        self, client: Any, chance: Random, number: int, wrong: str, there: int | None
    ) -> int:
        lines = [f"{number * 1000 + place}\t{number}\n" for place in range(ROWS)]
        if wrong == "data":
            lines.insert(chance.randrange(ROWS), "x\t1\n")
        elif wrong == "key" and there is not None:
            lines[chance.randrange(ROWS)] = f"{there * 1000}\t{number}\n"
        data = "".join(lines)
        pause = chance.choice((0.0, 0.0, 0.05, 0.2))

        async def pieces() -> AsyncIterator[str]:
            for start in range(0, len(data), PIECE):
                yield data[start : start + PIECE]
                await asyncio.sleep(chance.uniform(0, pause))

        if chance.random() < 0.5:
            return await client.copy_from("c", pieces(), columns=["k", "w"])  # type: ignore[no-any-return]
        return await client.copy_from("COPY c (k, w) FROM STDIN WHERE w > 0", pieces())  # type: ignore[no-any-return]

    # ---- readers ----

    def _judged(self, found: dict[int, int], done: set[int]) -> None:
        for number, count in found.items():
            if count != ROWS:
                self.wrong.append(f"{count} of {ROWS} rows of copy {number} are there")
            if number in self.failed:
                self.wrong.append(f"rows of copy {number} are there, which has failed")
        for number in done - found.keys():
            self.wrong.append(f"no row of copy {number} is there, which was acknowledged")

    async def _look(self, client: Any) -> None:
        done = set(self.done)
        found = await rows(client, "SELECT w, count(*) FROM c GROUP BY w")
        self._judged(dict(found), done)
        self.well()

    async def _unload(self, client: Any) -> None:
        done, data = set(self.done), io.BytesIO()
        count = await client.copy_to("c", data, columns=["w"])
        numbers = [int(line) for line in data.getvalue().split()]
        if count != len(numbers):
            self.wrong.append(f"COPY TO counts {count} rows and sends {len(numbers)}")
        self._judged({number: numbers.count(number) for number in set(numbers)}, done)
        self.told.ends["unloaded"] += 1

    async def finish(self, client: Any) -> None:
        await self._look(client)
        await self._unload(client)


class CopyStorm(TransactionStorm):
    def __init__(self, seed: int, level: str | None = None) -> None:
        super().__init__(seed, level)
        self.works = [Copies(self.told)]
        chance = Random(f"{seed}/copies")
        self.events = [chance.choice(FAULTS) for _ in range(2)]
        self.users, self.pause = 4, 0.1

    def run(self, seed: int) -> Simulation:
        with ExitStack() as patches:
            patches.enter_context(mock.patch.object(source_module, "PIECE", PIECE))
            patches.enter_context(mock.patch.object(port_module, "WAITING_MAX", 2 * PIECE))
            if seed % 2:  # every COPY is too much for the write set of a transaction
                size = mock.patch.object(write_statements, "written_size", lambda *_: 1 << 40)
                patches.enter_context(size)
            return super().run(seed)

    def _fate(self, sent: Sent) -> Fate | None:
        if sent.name not in COMMIT_MESSAGES:
            return super()._fate(sent)
        draw = self.random.random()
        if draw < 0.05:
            return LOST
        return Fate((self.random.uniform(0, 0.3),)) if draw < 0.3 else None
