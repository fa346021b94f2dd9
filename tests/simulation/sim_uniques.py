"""Storms of bulk writes of unique values (decision 0085) beside single writes and transactions of
the same values, while members fail and partitions move.

A statement is written in bulk from three rows on, so that small ones are. Every write sets values
that it names, so that ``unique_rows`` can say who may have had which value when.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import pyarrow as pa
from sim_cluster import Simulation
from sim_jobs import Job
from sim_network import LOST, Fate, Sent
from sim_transaction_works import Told, Work, failed, rows
from sim_transactions import TransactionStorm
from unique_rows import Judge, Look, Refusal, Write

import remuda.member.commits.job_checks as checks_module
import remuda.member.commits.jobs as jobs_module
import remuda.member.maps.column_puts as puts_module
import remuda.member.statements.transaction_changes as changes_module
from remuda.errors import RemudaError, UniqueViolation

BULK_FROM = 2
"""So many rows at most are no bulk write."""
VALUES = 12
KEYS = 6
"""That are there again and again."""
NEW = 1000
"""From here on keys are new."""
FEW = (1, 2, 3, 3, 4, 6)
"""Rows of a write."""
TTL = 1.0
TOLD = re.compile(r"Key \(u\)=\((-?\d+)\) (already exists|is duplicated)\.")
COMMIT_MESSAGES = frozenset(
    {"COMMIT_PREPARE", "COMMIT_CHECK", "COMMIT_KEEP", "COMMIT_FINISH", "COMMIT_STATUS"}
)


class UniqueJob(Job):
    """A staged job over a map of a key, a unique value, and the number of the write."""

    number: int
    values: dict[int, int | None]

    def batch(self, keys: list[int], value: int) -> list[pa.Array]:
        del value
        numbers = [self.number] * len(keys)
        values = [self.values[key] for key in keys]
        return [pa.array(column, pa.int64()) for column in (keys, values, numbers)]


class Uniques(Work):
    """One map, ``table``."""

    name: ClassVar[str] = "uniques"

    def __init__(self, told: Told, table: str = "u", options: str = "") -> None:
        super().__init__(told)
        self.table, self.options = table, options
        self.judged = Judge()
        self.fresh = NEW
        self.lasting: list[int] = []
        """Keys that were new, and may be there."""

    async def prepare(self, client: Any) -> None:
        await client.sql(
            f"CREATE TABLE {self.table} (k BIGINT PRIMARY KEY, u BIGINT UNIQUE, w BIGINT NOT NULL)"
            f"{self.options}"
        )

    # ---- one request ----

    async def step(self, client: Any, chance: Random) -> None:
        draw = chance.random()
        if draw < 0.12:
            await self._look(client)
        elif draw < 0.18:
            await self._look_by_value(client, chance.randrange(VALUES))
        else:
            makers = (
                self._put, self._put, self._put_all, self._insert, self._insert, self._ignore,
                self._meet, self._upsert, self._merge, self._update, self._update, self._delete,
                self._delete, self._delete, self._transaction, self._transaction, self._job,
                self._job, self._replace,
            )  # fmt: skip
            await self._written(client, chance, chance.choice(makers))

    async def _written(
        self,
        client: Any,
        chance: Random,
        make: Callable[[Any, Random, Write], Awaitable[None]],
    ) -> None:
        write = Write(self.told.number(), make.__name__.strip("_"), self.told.now())
        self.judged.writes[write.number] = write
        try:
            await make(client, chance, write)
        except UniqueViolation as error:
            write.failed, write.ended = True, self.told.now()
            self._refused(write, error)
        except RemudaError as error:
            if failed(error):
                write.failed, write.ended = True, self.told.now()
            raise
        else:
            write.ended = self.told.now()
            self.lasting += [key for key in write.rows if key >= NEW and key not in self.lasting]
            self.told.ends[f"{write.what} done"] += 1
            self.well()

    def _refused(self, write: Write, error: UniqueViolation) -> None:
        found = TOLD.match(error.detail)
        if write.what == "merge" and error.detail.startswith("Key (k)"):
            return  # somebody has written the key since: PostgreSQL refuses it as well
        if found is None or write.what in ("ignore", "meet"):
            self.wrong.append(f"{write} was refused: {error!r} {error.detail}")
            return
        self.told.ends[f"{write.what} refused"] += 1
        self._had(write, int(found[1]))

    def _had(self, write: Write, value: int) -> None:
        keys = frozenset(write.rows)
        if write.what == "transaction":  # one row after the other
            keys = frozenset(key for key in keys if write.rows[key] == value)
        if write.everything:
            self.wrong.append(f"{write} replaces all rows, and was refused for {value}")
        self.judged.refusals.append(Refusal(str(write), write.began, self.told.now(), value, keys))

    # ---- what is written ----

    def _some(self, chance: Random, number: int) -> dict[int, int | None]:
        """New values for keys, some of which are there."""
        known = [*range(KEYS), *self.lasting[-KEYS:]]
        keys = chance.sample(known, min(number, len(known)))
        return dict(zip(keys, chance.sample(range(VALUES), len(keys)), strict=True))

    def _new(self, chance: Random, number: int) -> dict[int, int | None]:
        keys = range(self.fresh, self.fresh + number)
        self.fresh += number
        return dict(zip(keys, chance.sample(range(VALUES), number), strict=True))

    def _listed(self, write: Write) -> str:
        return ", ".join(f"({key}, {value}, {write.number})" for key, value in write.rows.items())

    async def _put(self, client: Any, chance: Random, write: Write) -> None:
        write.rows = self._some(chance, 1)
        ((key, value),) = write.rows.items()
        row = {"u": value, "w": write.number}
        if chance.random() < 0.3:
            write.ttl = TTL
            await client.map(self.table).put(key, row, ttl=TTL)
        else:
            await client.map(self.table).put(key, row)

    async def _put_all(self, client: Any, chance: Random, write: Write) -> None:
        write.rows = self._some(chance, chance.choice(FEW))
        if chance.random() < 0.3:
            write.ttl = TTL
        entries = {key: {"u": value, "w": write.number} for key, value in write.rows.items()}
        ttl = None if write.ttl > TTL else TTL
        await client.map(self.table).put_all(entries, ttl=ttl)

    async def _insert(self, client: Any, chance: Random, write: Write) -> None:
        write.rows = self._new(chance, chance.choice(FEW))
        await client.sql(f"INSERT INTO {self.table} VALUES {self._listed(write)}")

    async def _upsert(self, client: Any, chance: Random, write: Write) -> None:
        write.rows = self._some(chance, chance.choice(FEW))
        await client.sql(
            f"INSERT INTO {self.table} VALUES {self._listed(write)} "
            "ON CONFLICT (k) DO UPDATE SET u = excluded.u, w = excluded.w"
        )

    async def _merge(self, client: Any, chance: Random, write: Write) -> None:
        write.rows = self._some(chance, chance.choice(FEW))
        await client.sql(
            f"MERGE INTO {self.table} t USING (VALUES {self._listed(write)}) s(k, u, w) "
            "ON t.k = s.k WHEN MATCHED THEN UPDATE SET u = s.u, w = s.w "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.u, s.w)"
        )

    async def _ignore(self, client: Any, chance: Random, write: Write) -> None:
        """ON CONFLICT DO NOTHING is never refused, and values that it leaves out were there."""
        write.rows = wanted = self._new(chance, chance.choice(FEW))
        write.partial = True
        arbiter = chance.choice(("", " (u)"))
        found = await rows(
            client,
            f"INSERT INTO {self.table} VALUES {self._listed(write)} "
            f"ON CONFLICT{arbiter} DO NOTHING RETURNING k",
        )
        write.rows = {key: wanted[key] for (key,) in found}
        for key in wanted.keys() - write.rows.keys():
            self._had(write, wanted[key] or 0)

    async def _meet(self, client: Any, chance: Random, write: Write) -> None:
        """ON CONFLICT (u) DO UPDATE: the row with the value gets the number."""
        write.rows = self._new(chance, chance.choice(FEW))
        write.beside = frozenset(value for value in write.rows.values() if value is not None)
        write.partial = True
        found = await rows(
            client,
            f"INSERT INTO {self.table} VALUES {self._listed(write)} "
            "ON CONFLICT (u) DO UPDATE SET w = excluded.w RETURNING k, u",
        )
        if {value for _, value in found} != write.beside:
            self.wrong.append(f"{write} gave {found}")
        write.rows, write.beside = dict(found), frozenset()

    async def _update(self, client: Any, chance: Random, write: Write) -> None:
        write.rows = wanted = self._some(chance, chance.choice(FEW))
        write.partial = True
        cases = " ".join(f"WHEN {key} THEN {value}" for key, value in wanted.items())
        found = await rows(
            client,
            f"UPDATE {self.table} SET u = CASE k {cases} END, w = {write.number} "
            f"WHERE k IN ({', '.join(map(str, wanted))}) RETURNING k",
        )
        write.rows = {key: wanted[key] for (key,) in found}

    async def _delete(self, client: Any, chance: Random, write: Write) -> None:
        write.rows = dict.fromkeys(self._some(chance, 6))
        keys = ", ".join(map(str, write.rows))
        await client.sql(f"DELETE FROM {self.table} WHERE k IN ({keys})")

    async def _transaction(self, client: Any, chance: Random, write: Write) -> None:
        wanted = self._some(chance, chance.choice((1, 2, 3)))
        if chance.random() < 0.4:
            wanted |= self._new(chance, 1)
            if len(set(wanted.values())) < len(wanted):
                wanted.popitem()
        for key in wanted:
            if chance.random() < 0.2:
                wanted[key] = None
        write.rows = wanted
        tx = client.transaction(**self.told.options)
        committing = False
        try:
            await tx.begin()
            for key, value in sorted(wanted.items(), key=lambda row: row[1] is not None):
                await self._in_transaction(tx, chance, key, value, write.number)
            committing = True
            await tx.commit()
        except RemudaError as error:
            if not committing:
                write.failed, write.ended = True, self.told.now()
                if tx.id:
                    await tx.rollback()
            del error
            raise

    async def _in_transaction(
        self, tx: Any, chance: Random, key: int, value: int | None, number: int
    ) -> None:
        if value is None:
            await tx.sql(f"DELETE FROM {self.table} WHERE k = ?", key)
        elif chance.random() < 0.5:
            await tx.map(self.table).put(key, {"u": value, "w": number})
        else:
            await tx.sql(
                f"INSERT INTO {self.table} VALUES (?, ?, ?) "
                "ON CONFLICT (k) DO UPDATE SET u = excluded.u, w = excluded.w",
                key, value, number,
            )  # fmt: skip

    async def _job(self, _client: Any, chance: Random, write: Write) -> None:
        await self._staged(chance, write, overwrite=False)

    async def _replace(self, client: Any, chance: Random, write: Write) -> None:
        """All rows, by a job."""
        if chance.random() < 0.5:
            write.rows = self._some(chance, 3)
            await self._put_all(client, chance, write)
            return
        write.everything = True
        await self._staged(chance, write, overwrite=True)

    async def _staged(self, chance: Random, write: Write, *, overwrite: bool) -> None:
        sim, number = self.told.sim, write.number
        write.rows = self._some(chance, chance.choice(FEW))
        member = chance.choice(sorted(sim.live()))
        client = await sim.client(member, f"j{number}")
        job = UniqueJob(SimpleNamespace(sim=sim, chance=chance), f"j{number}", client, self.table)  # type: ignore[arg-type]
        job.number, job.values = number, write.rows
        try:
            async with asyncio.timeout(100.0):
                await job.begin(overwrite=overwrite)
                keys = list(write.rows)
                task = await job.task("0:0", keys, number)
                job.check(await job.commit([task]), len(keys))
        finally:
            for each in (client, *job.clients.values()):
                each.channel.close()

    # ---- readers ----

    async def _look(self, client: Any) -> None:
        began = self.told.now()
        found = await rows(client, f"SELECT k, u, w FROM {self.table}")
        look = Look(began, self.told.now(), {key: (value, w) for key, value, w in found})
        self.judged.looks.append(look)
        self.well()

    async def _look_by_value(self, client: Any, value: int) -> None:
        found = await rows(client, f"SELECT k, w FROM {self.table} WHERE u = ?", value)
        if len(found) > 1:
            self.wrong.append(f"two rows with one value {value}: {found}")

    async def finish(self, client: Any) -> None:
        await self._look(client)

    def judge(self) -> list[str]:
        return [f"{self.table}: {text}" for text in (*self.wrong, *self.judged.violations())][:5]


FAULTS = ("crash", "crash", "split", "join", "leave", "break", "silence")


class UniqueStorm(TransactionStorm):
    """``dense``: nothing fails, hardly anybody rests, and frames are late."""

    def __init__(self, seed: int, level: str | None = None, *, dense: bool = False) -> None:
        super().__init__(seed, level or "serializable")
        self.dense = dense
        self.works = [Uniques(self.told)]
        chance = Random(f"{seed}/uniques")
        if chance.random() < 0.25:
            self.works.append(Uniques(self.told, "r", " WITH (replicated = true)"))
        self.checked = 0
        if dense:
            self.events, self.lossy, self.between = ["nothing"], True, 6.0
            self.users, self.pause, self.slow = 6, 0.01, 0.0
        else:
            self.events = [chance.choice(FAULTS) for _ in range(2)]
            self.users, self.pause = 5, 0.05

    def run(self, seed: int) -> Simulation:
        with ExitStack() as patches:
            for module, name, number in (
                (jobs_module, "JOB_IDLE_TIMEOUT", 20.0),
                (jobs_module, "TOUCH_EVERY", 2.0),
                (puts_module, "SEARCHED_MAX", BULK_FROM),
                (changes_module, "SEARCHED_MAX", BULK_FROM),
                (checks_module, "HASHES_SENT", 2),
            ):
                patches.enter_context(mock.patch.object(module, name, number))
            return super().run(seed)

    async def storm(self) -> None:
        self.sim.network.watchers.append(self._watch)
        for work in self.works:
            work.judged.slack += 2 * self.sim.skew_max  # type: ignore[attr-defined]
        await super().storm()

    def _watch(self, sent: Sent) -> None:
        self.checked += sent.name == "COMMIT_CHECK" and sent.mode == 0

    def _fate(self, sent: Sent) -> Fate | None:
        """Questions of commits are asked again; those for values may be late."""
        if sent.name not in COMMIT_MESSAGES and sent.name != "JOB_VALUES":
            return None if self.dense else super()._fate(sent)
        draw = self.random.random()
        if draw < 0.05 and not self.dense and sent.name != "JOB_VALUES":
            return LOST
        return Fate((self.random.uniform(0, 0.05 if self.dense else 0.3),)) if draw < 0.3 else None


def dense(seed: int, level: str | None) -> UniqueStorm:
    return UniqueStorm(seed, level, dense=True)
