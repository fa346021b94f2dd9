"""Storms of transactions with definitions (decision 0109), while members fail, join and leave.

* A transaction of ``Makers`` makes a table, writes rows into it, and mostly alters it; some have
  another table and take it back at a savepoint. Whoever looks at the table by its name, at any
  time, finds no table or all of the rows.
* A transaction of ``Swappers`` makes a copy of one table with one row more, and puts it in its
  place by DROP and RENAME. In the end the table has a row of every one that was told of its
  COMMIT, and of none that was told of its failure: of two that have begun with the same table, one
  fails.
* A transaction of ``Movers`` makes a table, writes a row of a ledger that was there before, and
  moves money between accounts. Whoever looks at one timestamp finds the sum of the accounts as it
  was; in the end each table has its row in the ledger, and each row its table.
* In the end no map without a name is left, and the catalog notes few transactions.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from sim_cluster import Simulation
from sim_network import LOST, Fate, Sent
from sim_transaction_works import Told, Work, failed, rows
from sim_transactions import TransactionStorm

from remuda.catalog.own.definitions import is_made
from remuda.errors import (
    DuplicateMap,
    ForeignKeyViolation,
    RemudaError,
    SerializationFailure,
    UndefinedMap,
)

ROWS = 5
ACCOUNTS = 8
MONEY = 100
TRANSACTIONAL = "SET LOCAL definitions_in_transactions = transactional"
MESSAGES = ("PARTS", "CATALOG_CHANGE", "CATALOG_INSTALL")
SWEPT = 60.0
"""Seconds after which nothing is left of transactions that have ended."""

NOTES_MAX = 12
"""More than members that come and users that commit at once."""


class Definers(Work):
    """``done``: the transactions whose COMMIT was answered; ``undone``: of which it is certain that
    they have not committed."""

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.done: set[int] = set()
        self.undone: set[int] = set()

    async def within(self, client: Any, number: int, body: Any) -> None:
        transaction = client.transaction(**self.told.options)
        committing = False
        try:
            await transaction.begin()
            await transaction.sql(TRANSACTIONAL)
            goes_on = await body(transaction)
            committing = True
            if not goes_on:
                await transaction.rollback()
                self.undone.add(number)
                return
            await transaction.commit()
            self.done.add(number)
            self.well()
        except RemudaError as error:
            if failed(error, committing=committing):
                self.undone.add(number)
            if not committing and transaction.id:
                await transaction.rollback()
            if isinstance(error, SerializationFailure):
                self.told.ends[f"{self.name} beaten"] += 1
            raise

    def judged(self, there: set[int], what: str) -> list[str]:
        lost = sorted(self.done - there)
        ghosts = sorted(self.undone & there)
        wrong = [f"{what} {each} has committed and is not there" for each in lost]
        return wrong + [f"{what} {each} has not committed and is there" for each in ghosts]


class Makers(Definers):
    name = "makers"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.there: set[int] = set()
        self.last = 0

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE before (id BIGINT PRIMARY KEY)")

    async def step(self, client: Any, chance: Random) -> None:
        if self.last and chance.random() < 0.4:
            await self._look(client, chance.randint(max(1, self.last - 5), self.last))
            return
        number = self.told.number()
        self.last = number
        draw = chance.random()

        async def body(transaction: Any) -> bool:
            run = transaction.sql
            await run(f"CREATE TABLE made{number} (id SERIAL PRIMARY KEY, v TEXT UNIQUE)")
            values = ", ".join(f"('v{place}')" for place in range(ROWS))
            await run(f"INSERT INTO made{number} (v) VALUES {values}")
            if draw < 0.3:
                await run("SAVEPOINT s")
                await run(f"CREATE TABLE back{number} AS SELECT 1 AS one")
                await run(f"DROP TABLE made{number}")
                await run("ROLLBACK TO s")
            if draw < 0.6:
                await run(f"ALTER TABLE made{number} ADD COLUMN n INT DEFAULT 7")
            if draw < 0.2:
                await run(f"CREATE VIEW view{number} AS SELECT v FROM made{number}")
            found = await rows(transaction, f"SELECT count(*) FROM made{number}")
            if found != [(ROWS,)]:
                self.wrong.append(f"made{number} has {found} rows in its transaction")
            return draw > 0.1

        await self.within(client, number, body)

    async def _look(self, client: Any, number: int) -> bool:
        try:
            found = await rows(client, f"SELECT count(*), count(DISTINCT v) FROM made{number}")
        except UndefinedMap:
            return False
        if found != [(ROWS, ROWS)]:
            self.wrong.append(f"made{number} was seen with {found} rows")
        return True

    async def finish(self, client: Any) -> None:
        for number in range(1, self.last + 1):
            if await self._look(client, number):
                self.there.add(number)
        left = await rows(client, "SELECT relname FROM pg_class WHERE relname LIKE 'back%'")
        if left:
            self.wrong.append(f"ROLLBACK TO has left {left}")

    def judge(self) -> list[str]:
        return self.wrong + self.judged(self.there, "the table of transaction")


class Swappers(Definers):
    name = "swappers"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.there: set[int] = set()

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE swapped (id BIGINT PRIMARY KEY)")
        await client.sql("INSERT INTO swapped VALUES (0)")

    async def step(self, client: Any, chance: Random) -> None:
        if chance.random() < 0.4 or self.told.isolation == "repeatable read":
            # A snapshot that is older than a new table does not have its rows.
            found = await rows(client, "SELECT count(*) FROM swapped")
            if found == [(0,)]:
                self.wrong.append("the table was seen without rows")
            return
        number = self.told.number()
        renames = chance.random() < 0.7

        async def body(transaction: Any) -> bool:
            run = transaction.sql
            # From now on another table in its place is a conflict, at every level.
            await run(f"COMMENT ON TABLE swapped IS '{number}'")
            if renames:
                await run(f"CREATE TABLE copy{number} AS SELECT id FROM swapped")
                await run(f"INSERT INTO copy{number} VALUES ({number})")
                await run("DROP TABLE swapped")
                await run(f"ALTER TABLE copy{number} RENAME TO swapped")
                return True
            found = await rows(transaction, "SELECT id FROM swapped")
            await run("TRUNCATE swapped")
            values = ", ".join(f"({each})" for each in sorted({*(r[0] for r in found), number}))
            await run(f"INSERT INTO swapped VALUES {values}")
            return True

        try:
            await self.within(client, number, body)
        except (DuplicateMap, UndefinedMap) as error:
            # Another one has its table in this place since: a statement is right to say so.
            self.told.ends[f"swappers {type(error).__name__}"] += 1

    async def finish(self, client: Any) -> None:
        self.there = {number for (number,) in await rows(client, "SELECT id FROM swapped")}

    def judge(self) -> list[str]:
        return self.wrong + self.judged(self.there, "the row of transaction")


class Movers(Definers):
    name = "movers"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.there: set[int] = set()

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE ledger (id BIGINT PRIMARY KEY)")
        await client.sql("CREATE TABLE accounts (id BIGINT PRIMARY KEY, money BIGINT)")
        values = ", ".join(f"({each}, {MONEY})" for each in range(ACCOUNTS))
        await client.sql(f"INSERT INTO accounts VALUES {values}")

    async def step(self, client: Any, chance: Random) -> None:
        if chance.random() < 0.3:
            await self._count(client)
            return
        number = self.told.number()
        one, other = chance.sample(range(ACCOUNTS), 2)
        draw = chance.random()

        async def body(transaction: Any) -> bool:
            run = transaction.sql
            if draw < 0.5:
                await run(f"INSERT INTO ledger VALUES ({number})")
            await run(f"CREATE TABLE moved{number} (id BIGINT PRIMARY KEY)")
            if draw >= 0.5:
                await run(f"INSERT INTO ledger VALUES ({number})")
            await run(f"INSERT INTO moved{number} SELECT id FROM ledger WHERE id = {number}")
            await run(f"UPDATE accounts SET money = money - 1 WHERE id = {one}")
            await run(f"UPDATE accounts SET money = money + 1 WHERE id = {other}")
            return draw > 0.1

        await self.within(client, number, body)

    async def _count(self, client: Any) -> None:
        found = await rows(client, "SELECT sum(money), count(*) FROM accounts")
        if found != [(ACCOUNTS * MONEY, ACCOUNTS)]:
            self.wrong.append(f"the accounts were seen with {found}")

    async def finish(self, client: Any) -> None:
        await self._count(client)
        self.there = {number for (number,) in await rows(client, "SELECT id FROM ledger")}
        found = await rows(client, "SELECT relname FROM pg_class WHERE relname ~ '^moved[0-9]+$'")
        made = {int(name.removeprefix("moved")) for (name,) in found}
        if made != self.there:
            self.wrong.append(f"rows without tables, or tables without rows: {made ^ self.there}")
        for number in sorted(made & self.there):
            if await rows(client, f"SELECT id FROM moved{number}") != [(number,)]:
                self.wrong.append(f"moved{number} has not its row")

    def judge(self) -> list[str]:
        return self.wrong + self.judged(self.there, "the row of the ledger of transaction")


class Namers(Definers):
    """A transaction makes a child of a table that was there before, and a row that names one of its
    rows. Others delete such rows, and know nothing of the foreign key."""

    name = "namers"
    parents = 400
    beside = 3
    """So many rows, behind those that were tried, are deleted and named at a time."""

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.front = 0

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE named (id BIGINT PRIMARY KEY)")
        values = ", ".join(f"({each})" for each in range(self.parents))
        await client.sql(f"INSERT INTO named VALUES {values}")

    async def step(self, client: Any, chance: Random) -> None:
        one = self.front + chance.randrange(self.beside)
        if chance.random() < 0.5:
            self.front += 1
            await self._delete(client, one)
            return
        number = self.told.number()

        async def body(transaction: Any) -> bool:
            run = transaction.sql
            await run(f"CREATE TABLE naming{number} (id BIGINT PRIMARY KEY REFERENCES named)")
            await run(f"INSERT INTO naming{number} VALUES ({one})")
            return True

        try:
            await self.within(client, number, body)
        except ForeignKeyViolation:
            self.told.ends["namers refused"] += 1

    async def _delete(self, client: Any, one: int) -> None:
        try:
            await client.sql(f"DELETE FROM named WHERE id = {one}")
            self.told.ends["parents deleted"] += 1
        except ForeignKeyViolation:
            self.told.ends["parents kept"] += 1

    async def finish(self, client: Any) -> None:
        found = await rows(client, "SELECT relname FROM pg_class WHERE relname ~ '^naming[0-9]+$'")
        for (name,) in found:
            query = f"SELECT id FROM {name} WHERE id NOT IN (SELECT id FROM named)"
            if orphans := await rows(client, query):
                self.wrong.append(f"{name} names rows that are not there: {orphans}")

    def judge(self) -> list[str]:
        return self.wrong


class Alterers(Definers):
    """A transaction alters a table that was there before, and writes a row of it. Others write rows
    of it by statements. In the end it has the row of every one that was told of its COMMIT, and of
    none that was told of its failure; and the column of every transaction that has its row."""

    name = "alterers"

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.there: set[int] = set()
        self.altering: set[int] = set()

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE wide (id BIGINT PRIMARY KEY, n BIGINT)")
        await client.sql("INSERT INTO wide VALUES (0, 0)")

    async def step(self, client: Any, chance: Random) -> None:
        number = self.told.number()
        draw = chance.random()
        if draw < 0.6 or self.told.level.startswith("pessimistic"):  # which could keep nobody out
            await self._write(client, number)
            return
        self.altering.add(number)

        async def body(transaction: Any) -> bool:
            run = transaction.sql
            if draw < 0.7:
                await run("SAVEPOINT s")
                await run("ALTER TABLE wide RENAME COLUMN n TO other")
                await run("UPDATE wide SET other = 1")
                await run("ROLLBACK TO s")
            if draw < 0.8:
                await run(f"ALTER TABLE wide ADD COLUMN c{number} BIGINT DEFAULT {number}")
            else:
                await run(f"ALTER TABLE wide ADD CONSTRAINT c{number} CHECK (id <> -{number})")
            await run(f"INSERT INTO wide (id, n) VALUES ({number}, 0)")
            found = await rows(transaction, f"SELECT n FROM wide WHERE id = {number}")
            if found != [(0,)]:
                self.wrong.append(f"transaction {number} sees {found} in the table it has altered")
            return draw < 0.95

        await self.within(client, number, body)

    async def _write(self, client: Any, number: int) -> None:
        try:
            await client.sql(f"INSERT INTO wide (id, n) VALUES ({number}, 0)")
            self.done.add(number)
            self.told.ends["writers well"] += 1
        except RemudaError as error:
            if failed(error, committing=True):
                self.undone.add(number)
            raise

    async def finish(self, client: Any) -> None:
        self.there = {number for (number,) in await rows(client, "SELECT id FROM wide")}
        columns = "SELECT attname FROM pg_attribute WHERE attrelid = 'wide'::regclass"
        checks = "SELECT conname FROM pg_constraint WHERE conrelid = 'wide'::regclass"
        found = await rows(client, f"{columns} UNION ALL {checks}")
        made = {int(name[1:]) for (name,) in found if name[0] == "c" and name[1:].isdigit()}
        if made != self.altering & self.there:
            self.wrong.append(f"rows without their definition: {made ^ self.altering & self.there}")
        if await rows(client, "SELECT id FROM wide WHERE n <> 0"):
            self.wrong.append("ROLLBACK TO has left rows in another form")

    def judge(self) -> list[str]:
        return self.wrong + self.judged(self.there, "the row of")


class DefinitionStorm(TransactionStorm):
    def __init__(self, seed: int, level: str | None = None) -> None:
        super().__init__(seed, level)
        self.works = [Makers(self.told), Swappers(self.told), Movers(self.told)]
        self.between = 4.0

    def _fate(self, sent: Sent) -> Fate | None:
        if sent.name not in MESSAGES:
            return None
        draw = self.random.random()
        if draw < 0.02 and sent.name == "PARTS":
            return LOST
        if sent.name == "CATALOG_CHANGE" and self.random.random() < 0.03:
            return self._lose_with_connection(sent)
        return Fate((self.random.uniform(0, 0.3),)) if draw < 0.15 else None

    def _lose_with_connection(self, sent: Sent) -> Fate:
        """A change of the catalog, or its answer: its sender does not learn what became of it."""
        sim = self.sim
        nodes = {member.node.name: member.node for member in sim.made}

        def reset() -> None:
            for one, other in ((sent.sender, sent.receiver), (sent.receiver, sent.sender)):
                sim.network.break_connections(nodes[one], nodes[other], "control")

        sim.loop.call_soon(reset, context=sim.director.context)
        return LOST

    async def crash(self) -> None:
        """At a random step: at the n-th message of a commit, or of an edit, from now on."""
        if len(self._staying()) < 3:
            return await self.join()
        sim, chance = self.sim, self.random
        victim = chance.choice((self._staying()[0], chance.choice(self._staying())))
        silently = chance.random() < 0.3
        left = [chance.randint(1, 12)]
        kinds = chance.choice((("CATALOG",), ("CATALOG", "PARTS"), ("PARTS", "COMMIT", "STAGE")))
        self.gone.add(victim)

        def watch(sent: Sent) -> None:
            if sent.name.startswith(kinds):
                left[0] -= 1
                if left[0] == 0:
                    context = sim.director.context
                    sim.loop.call_soon(
                        lambda: sim.crash(victim, silently=silently), context=context
                    )

        sim.network.watchers.append(watch)
        await asyncio.sleep(self.between)
        sim.crash(victim, silently=silently)
        return None

    async def storm(self) -> None:
        await super().storm()
        deadline = self.sim.loop.now + SWEPT
        while left_over(self.sim) and self.sim.loop.now < deadline:
            await asyncio.sleep(0.5)
        self.sim.violations += left_over(self.sim)


class ReferenceStorm(DefinitionStorm):
    def __init__(self, seed: int, level: str | None = None) -> None:
        super().__init__(seed, level)
        self.works = [Namers(self.told)]


class AlterStorm(DefinitionStorm):
    def __init__(self, seed: int, level: str | None = None) -> None:
        super().__init__(seed, level)
        self.works = [Alterers(self.told)]


def left_over(sim: Simulation) -> list[str]:
    found: list[str] = []
    for number, member in sim.live().items():
        catalog = member.core.catalog
        made = [schema.name for schema in catalog.maps if is_made(schema)]
        if made:
            found.append(f"member {number} still has {made}")
        if len(catalog.decided) > NOTES_MAX:
            found.append(f"member {number} still has the notes {catalog.decided}")
    return found
