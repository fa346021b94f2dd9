"""What users do in storms of transactions, and what must be true of what they were told.

Each work asks for one thing at a time and keeps what it learns; ``judge`` says in the end what
cannot be. All are of the project's own making; the sources are named where they are judged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

import histories
import registers
from histories import Append, Read
from sim_cluster import Simulation
from weaker_histories import judged

from remuda.errors import RemudaError, SnapshotTooOld

LEVELS = (
    "serializable",
    "serializable",
    "serializable",
    "repeatable read",
    "read committed",
    "pessimistic repeatable read",
    "pessimistic read committed",
)


@dataclass
class Told:
    """What the works of a run share."""

    level: str
    random: Random
    ends: Counter[str] = field(default_factory=Counter)
    numbers: int = 0
    sim: Simulation = None  # type: ignore[assignment]

    @property
    def isolation(self) -> str:
        return self.level.removeprefix("pessimistic ")

    @property
    def options(self) -> dict[str, Any]:
        kind = "pessimistic" if self.level.startswith("pessimistic") else "optimistic"
        return {"concurrency": kind, "isolation": self.isolation}

    @property
    def reads_then_writes(self) -> bool:
        """Whether nobody changes what was read before what rests on it is written."""
        return self.isolation != "read committed"

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def now(self) -> float:
        return self.sim.loop.now


class Work:
    name: ClassVar[str]
    keys = 0

    def __init__(self, told: Told) -> None:
        self.told = told
        self.wrong: list[str] = []

    async def prepare(self, client: Any) -> None:
        raise NotImplementedError

    async def step(self, client: Any, chance: Random) -> None:
        """One request, or transaction. Its errors are the caller's to judge."""
        raise NotImplementedError

    async def finish(self, client: Any) -> None:
        """A last look, when all works again."""
        raise NotImplementedError

    def judge(self) -> list[str]:
        return self.wrong

    def well(self) -> None:
        self.told.ends[f"{self.name} well"] += 1


async def rows(owner: Any, text: str, *params: Any) -> list[tuple[Any, ...]]:
    cursor = await owner.sql(text, *params)
    return [tuple(row) async for row in cursor]


def failed(error: BaseException, *, committing: bool = True) -> bool:
    """Whether it is certain that nothing was done."""
    return isinstance(error, RemudaError) and not (committing and error.may_have_run)


class Lists(Work):
    """Lists of unique values that transactions read and append to, by every way there is; judged by
    the circles of their dependencies (``histories``, ``weaker_histories``)."""

    name = "lists"
    keys = 8
    buckets = 3

    def __init__(self, told: Told) -> None:
        super().__init__(told)
        self.history: list[histories.Transaction] = []

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE lists (k BIGINT PRIMARY KEY, b BIGINT NOT NULL, v TEXT)")
        await client.sql(
            f"INSERT INTO lists SELECT i, i % {self.buckets}, '' "
            f"FROM generate_series(0, {self.keys - 1}) AS g(i)"
        )

    async def step(self, client: Any, chance: Random) -> None:
        draw = chance.random()
        if draw < 0.15:
            await self._noted([], lambda done: self._look(client, done))
        elif draw < 0.3:
            await self._statement(client, chance)
        else:
            await self._transaction(client, chance)

    # ---- one statement ----

    async def _look(self, client: Any, done: list[Append | Read]) -> None:
        found = await rows(client, "SELECT k, v FROM lists")
        done += [Read(key, values_of(text)) for key, text in found]

    async def _statement(self, client: Any, chance: Random) -> None:
        number = self.told.number()
        bucket = chance.randrange(self.buckets)
        key = chance.randrange(self.keys)
        if chance.random() < 0.5:
            inside = [k for k in range(self.keys) if k % self.buckets == bucket]
            text = f"UPDATE lists SET v = v || ' {number}' WHERE b = {bucket}"
        else:
            inside = [key]
            text = f"UPDATE lists SET v = v || ' {number}' WHERE k = {key}"

        async def ask(_done: list[Append | Read]) -> None:
            await client.sql(text)

        await self._noted([Append(k, number) for k in inside], ask)

    async def _noted(
        self,
        done: list[Append | Read],
        ask: Callable[[list[Append | Read]], Awaitable[None]],
    ) -> None:
        began = self.told.now()
        outcome, ended = histories.Outcome.UNKNOWN, math.inf
        try:
            await ask(done)
            outcome, ended = histories.Outcome.COMMITTED, self.told.now()
            self.well()
        except RemudaError as error:
            if failed(error):
                outcome, ended = histories.Outcome.ABORTED, self.told.now()
            raise
        finally:
            self.history.append(histories.Transaction(tuple(done), outcome, began, ended))

    # ---- transactions ----

    async def _transaction(self, client: Any, chance: Random) -> None:
        done: list[Append | Read] = []
        undone: list[Append] = []
        began = self.told.now()
        outcome, ended = histories.Outcome.UNKNOWN, math.inf
        committing = False
        transaction = client.transaction(**self.told.options, timeout=chance.choice((5.0, 60.0)))
        try:
            await transaction.begin()
            for _ in range(chance.randint(1, 4)):
                await self._operation(transaction, chance, done, undone)
            committing = True
            if chance.random() < 0.1:
                outcome, ended = histories.Outcome.ABORTED, math.inf
                await transaction.rollback()
                return
            await transaction.commit()
            outcome, ended = histories.Outcome.COMMITTED, self.told.now()
            self.well()
        except RemudaError as error:
            if failed(error, committing=committing):
                outcome, ended = histories.Outcome.ABORTED, self.told.now()
            if not committing and transaction.id:
                await transaction.rollback()
            raise
        finally:
            self.history.append(histories.Transaction(tuple(done), outcome, began, ended))
            if undone:
                self.history.append(
                    histories.Transaction(tuple(undone), histories.Outcome.ABORTED, began, ended)
                )

    async def _operation(
        self, tx: Any, chance: Random, done: list[Append | Read], undone: list[Append]
    ) -> None:
        draw = chance.random()
        if draw < 0.1:
            await tx.suspend()
            await tx.resume()
        elif draw < 0.2:
            await tx.savepoint("place")
            mine: list[Append | Read] = []
            await self._append(tx, chance, mine)
            await tx.rollback_to("place")
            undone += [one for one in mine if isinstance(one, Append)]
        elif draw < 0.5:
            await self._read(tx, chance, done)
        else:
            await self._append(tx, chance, done)

    async def _read(self, tx: Any, chance: Random, done: list[Append | Read]) -> None:
        draw, key = chance.random(), chance.randrange(self.keys)
        locks = self.told.level == "pessimistic repeatable read"
        if (
            locks or draw < 0.3
        ):  # its SELECT reads the snapshot, its get what it has locked: see docs
            found = [(key, (await tx.map("lists").get(key)).v)]
        elif draw < 0.5:
            found = await rows(tx, "SELECT k, v FROM lists WHERE k = ?", key)
        elif draw < 0.7:
            some = chance.sample(range(self.keys), 2)
            got = await tx.map("lists").get_all(some)
            found = [(k, got[k].v) for k in some]
        else:
            bucket = chance.randrange(self.buckets)
            found = await rows(tx, "SELECT k, v FROM lists WHERE b = ?", bucket)
        done += [Read(k, values_of(text)) for k, text in found]

    async def _append(self, tx: Any, chance: Random, done: list[Append | Read]) -> None:
        number = self.told.number()
        draw = chance.random()
        keys = chance.sample(range(self.keys), chance.choice((1, 1, 2)))
        if draw < 0.5 and self.told.reads_then_writes:
            lists = tx.map("lists")
            found = {k: (await lists.get(k)).v for k in keys}
            done += [Read(k, values_of(text)) for k, text in found.items()]
            new = {k: {"b": k % self.buckets, "v": f"{found[k]} {number}"} for k in keys}
            if len(keys) == 1 and chance.random() < 0.5:
                await lists.put(keys[0], new[keys[0]])
            else:
                await lists.put_all(new)
        elif draw < 0.7:
            await tx.sql(
                "INSERT INTO lists SELECT i, i, ? FROM (VALUES "
                + ", ".join(f"({k})" for k in keys)
                + ") AS g(i) ON CONFLICT (k) DO UPDATE SET v = lists.v || excluded.v",
                f" {number}",
            )
        else:
            inside = ", ".join(map(str, keys))
            await tx.sql(f"UPDATE lists SET v = v || ' {number}' WHERE k IN ({inside})")
        done += [Append(k, number) for k in keys]

    # ---- the end ----

    async def finish(self, client: Any) -> None:
        await self._noted([], lambda done: self._look(client, done))

    def judge(self) -> list[str]:
        found = []
        for anomaly in judged(self.history, judged_as(self.told.level))[:3]:
            shown = "\n".join(f"  {n}: {self.history[n]}" for n in anomaly.transactions[:6])
            found.append(f"{anomaly}\n{shown}")
        return found


def judged_as(level: str) -> str:
    """Who locks all that it reads and writes, until it ends, is serializable."""
    if level == "pessimistic repeatable read":
        return "serializable"
    return level.removeprefix("pessimistic ")


def values_of(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


class Bank(Work):
    """Transfers between accounts, in one statement or in a transaction; every SUM is the same."""

    name = "bank"
    accounts = 12

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE bank (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)")
        await client.sql(
            f"INSERT INTO bank SELECT i, 100 FROM generate_series(0, {self.accounts - 1}) AS g(i)"
        )
        self.old: list[tuple[int, float]] = []

    async def step(self, client: Any, chance: Random) -> None:
        draw = chance.random()
        if draw < 0.3:
            await self._total(client, chance)
        elif draw < 0.4:
            await self._former_total(client)
        elif draw < 0.55:
            await self._statement(client, chance)
        else:
            await self._transfer(client, chance)
        self.well()

    async def _total(self, client: Any, chance: Random) -> None:
        if chance.random() < 0.3:
            async with client.transaction(**self.told.options) as tx:
                found = await self._sum(tx)
                if chance.random() < 0.3:
                    self._check(await self._sum(tx), "of a transaction again")
        else:
            found = await self._sum(client)
        self._check(found, "")

    async def _sum(self, owner: Any) -> tuple[Any, ...]:
        return (await rows(owner, "SELECT sum(balance), count(*) FROM bank"))[0]

    def _check(self, found: tuple[Any, ...], what: str) -> None:
        if tuple(found) != (100 * self.accounts, self.accounts):
            self.wrong.append(f"{self.told.now():.3f}: sum and number {what} were {found}")

    async def _former_total(self, client: Any) -> None:
        """At a fixed timestamp, as Spark reads: it may be gone, but not soon."""
        self.old.append(((await client.cluster_info()).clock, self.told.now()))
        at, then = self.told.random.choice(self.old[-4:])
        try:
            cursor = await client.query("SELECT sum(balance), count(*) FROM bank", at=at)
            found = [tuple(row) async for row in cursor]
        except SnapshotTooOld:
            self.told.ends["bank too old"] += 1
            if self.told.now() < then + KEPT:
                self.told.ends["bank too old soon"] += 1
            return
        self._check(found[0], f"at {at}")

    async def _statement(self, client: Any, chance: Random) -> None:
        one, other = chance.sample(range(self.accounts), 2)
        amount = chance.randrange(1, 30)
        await client.sql(
            f"UPDATE bank SET balance = balance + CASE WHEN id = {one} THEN {amount} "
            f"ELSE -{amount} END WHERE id IN ({one}, {other})"
        )

    async def _transfer(self, client: Any, chance: Random) -> None:
        one, other = chance.sample(range(self.accounts), 2)
        amount = chance.randrange(1, 30)
        by_sql = chance.random() < 0.4 or not self.told.reads_then_writes
        async with client.transaction(**self.told.options) as tx:
            if by_sql:
                for key, more in ((one, amount), (other, -amount)):
                    await tx.sql("UPDATE bank SET balance = balance + ? WHERE id = ?", more, key)
            else:
                bank = tx.map("bank")
                here, there = (await bank.get(one)).balance, (await bank.get(other)).balance
                if chance.random() < 0.5:
                    await bank.put_all(
                        {one: {"balance": here + amount}, other: {"balance": there - amount}}
                    )
                else:
                    await bank.put(one, {"balance": here + amount})
                    await tx.sql("UPDATE bank SET balance = ? WHERE id = ?", there - amount, other)

    async def finish(self, client: Any) -> None:
        self._check(await self._sum(client), "in the end")


KEPT = 8.0
"""Seconds: versions of the last ten are there, one may think."""


class Elements(Work):
    """A set that only grows: no acknowledged element is missing in what begins later, none that
    failed is there, and of any two looks one contains the other (no long fork)."""

    name = "set"

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE elements (id BIGINT PRIMARY KEY, mate BIGINT)")
        self.done: set[int] = set()
        self.never: set[int] = set()
        self.mates: dict[int, frozenset[int]] = {}
        self.looks: list[tuple[float, frozenset[int], frozenset[int]]] = []

    async def step(self, client: Any, chance: Random) -> None:
        if chance.random() < 0.4:
            await self._look(client)
        else:
            await self._add(client, chance)
        self.well()

    async def _look(self, client: Any) -> None:
        known = frozenset(self.done)
        began = self.told.now()
        found = await rows(client, "SELECT id FROM elements")
        self.looks.append((began, known, frozenset(number for (number,) in found)))

    async def _add(self, client: Any, chance: Random) -> None:
        numbers = [self.told.number() for _ in range(chance.choice((1, 1, 3)))]
        for number in numbers:
            self.mates[number] = frozenset(numbers)
        draw = chance.random()
        committing = True
        try:
            if draw < 0.3 and len(numbers) == 1:
                await client.map("elements").put(numbers[0], {"mate": None})
            elif draw < 0.6:
                values = ", ".join(f"({number}, NULL)" for number in numbers)
                await client.sql(f"INSERT INTO elements VALUES {values}")
            else:
                tx = client.transaction(**self.told.options)
                committing = False
                if draw < 0.8:
                    await tx.begin()
                else:  # with its commit, unless it is pessimistic
                    await tx.__aenter__()
                try:
                    for number in numbers:
                        await tx.map("elements").put(number, {"mate": None})
                except RemudaError:
                    await tx.rollback()
                    raise
                committing = True
                await tx.commit()
        except RemudaError as error:
            if failed(error, committing=committing):
                self.never.update(numbers)
            raise
        self.done.update(numbers)

    async def finish(self, client: Any) -> None:
        await self._look(client)

    def judge(self) -> list[str]:
        found = []
        ordered = sorted(self.looks, key=lambda look: len(look[2]))
        for smaller, larger in pairwise(ordered):
            if not smaller[2] <= larger[2]:
                found.append(
                    f"long fork: {sorted(smaller[2] - larger[2])} without "
                    f"{sorted(larger[2] - smaller[2])[:5]}, and the other way round"
                )
        for began, known, seen in self.looks:
            if not known <= seen:
                found.append(f"{began:.3f}: acknowledged, but not seen: {sorted(known - seen)}")
            if seen & self.never:
                found.append(f"{began:.3f}: had failed, but seen: {sorted(seen & self.never)}")
            torn = [n for n in seen if not self.mates[n] <= seen]
            if torn:
                found.append(f"{began:.3f}: only a part was seen of {self.mates[torn[0]]}")
        return found[:5]


class Counters(Work):
    """Counters that grow by one: no update is lost, none is made twice."""

    name = "counters"
    keys = 3

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE counters (id BIGINT PRIMARY KEY, n BIGINT NOT NULL)")
        await client.sql(
            f"INSERT INTO counters SELECT i, 0 FROM generate_series(0, {self.keys - 1}) AS g(i)"
        )
        self.sure: Counter[int] = Counter()
        self.maybe: Counter[int] = Counter()

    async def step(self, client: Any, chance: Random) -> None:
        key = chance.randrange(self.keys)
        self.maybe[key] += 1
        committing = True
        try:
            if chance.random() < 0.4:
                await client.sql("UPDATE counters SET n = n + 1 WHERE id = ?", key)
            else:
                tx = client.transaction(**self.told.options)
                committing = False
                await tx.begin()
                try:
                    if chance.random() < 0.5 and self.told.reads_then_writes:
                        seen = (await tx.map("counters").get(key)).n
                        await tx.map("counters").put(key, {"n": seen + 1})
                    else:
                        await tx.sql("UPDATE counters SET n = n + 1 WHERE id = ?", key)
                except RemudaError:
                    await tx.rollback()
                    raise
                committing = True
                await tx.commit()
        except RemudaError as error:
            if failed(error, committing=committing):
                self.maybe[key] -= 1
            raise
        self.sure[key] += 1
        self.well()

    async def finish(self, client: Any) -> None:
        for key, n in await rows(client, "SELECT id, n FROM counters"):
            if not self.sure[key] <= n <= self.maybe[key]:
                self.wrong.append(
                    f"counter {key} is {n}, but {self.sure[key]} of {self.maybe[key]} were done"
                )


class Skew(Work):
    """Pairs of which one at least is on: who switches one off looks at both (write skew). Only
    serializable transactions, whatever the others of the run are."""

    name = "skew"
    pairs = 3

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE duty (id BIGINT PRIMARY KEY, pair BIGINT, on_call BIGINT)")
        last = 2 * self.pairs - 1
        await client.sql(
            f"INSERT INTO duty SELECT i, i / 2, 1 FROM generate_series(0, {last}) AS g(i)"
        )

    async def step(self, client: Any, chance: Random) -> None:
        pair = chance.randrange(self.pairs)
        mine = 2 * pair + chance.randrange(2)
        async with client.transaction(isolation="serializable") as tx:
            if chance.random() < 0.5:
                found = await rows(tx, "SELECT sum(on_call) FROM duty WHERE pair = ?", pair)
                number = found[0][0]
            else:
                both = await tx.map("duty").get_all([2 * pair, 2 * pair + 1])
                number = sum(row.on_call for row in both.values())
            self._check(pair, number)
            new = 0 if number == 2 else 1
            await tx.map("duty").put(mine, {"pair": pair, "on_call": new})
        self.well()

    def _check(self, pair: int, number: int) -> None:
        if number < 1:
            self.wrong.append(f"{self.told.now():.3f}: nobody of pair {pair} was on call")

    async def finish(self, client: Any) -> None:
        for pair, number in await rows(client, "SELECT pair, sum(on_call) FROM duty GROUP BY pair"):
            self._check(pair, number)


class Registers(Work):
    """Single entries, outside of transactions: linearizable for each key (``registers``)."""

    name = "registers"
    keys = 4

    async def prepare(self, client: Any) -> None:
        await client.sql("CREATE TABLE registers (id BIGINT PRIMARY KEY, v BIGINT)")
        self.operations: list[registers.Operation] = []

    async def step(self, client: Any, chance: Random) -> None:
        key = chance.randrange(self.keys)
        map_ = client.map("registers")
        began = self.told.now()
        if chance.random() < 0.5:
            number = self.told.number()
            outcome, ended = registers.Outcome.UNKNOWN, math.inf
            try:
                await map_.put(key, {"v": number})
                outcome, ended = registers.Outcome.DONE, self.told.now()
            except RemudaError as error:
                if failed(error):
                    outcome = registers.Outcome.FAILED
                raise
            finally:
                self.operations.append(
                    registers.Operation(key, True, number, began, ended, outcome)
                )
        elif chance.random() < 0.5:
            found = await map_.get(key)
            self._read(key, None if found is None else found.v, began)
        else:
            some = await rows(client, "SELECT v FROM registers WHERE id = ?", key)
            self._read(key, some[0][0] if some else None, began)
        self.well()

    def _read(self, key: int, value: int | None, began: float) -> None:
        self.operations.append(registers.Operation(key, False, value, began, self.told.now()))

    async def finish(self, client: Any) -> None:
        for key in range(self.keys):
            began = self.told.now()
            found = await client.map("registers").get(key)
            self._read(key, None if found is None else found.v, began)

    def judge(self) -> list[str]:
        return registers.violations(self.operations)


WORKS = (Lists, Bank, Elements, Counters, Skew, Registers)
