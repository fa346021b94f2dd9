"""Clients that read and write while members die, and what must hold of what they saw.

Each kind of work is a thread of its own (several for registers). It notes what it did; ``check``
says afterwards what cannot be.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import registers
from registers import Operation, Outcome

from remuda.client.blocking.client import Client
from remuda.errors import PartitionsLost, RemudaError, TransientError

REQUEST_TIMEOUT = 30.0
HANG = REQUEST_TIMEOUT * 2 + 15
"""Seconds: no request may take longer, whatever happens to the members."""


def _short(answer: object) -> str:
    return f"{type(answer).__name__} {answer}"[:300] if isinstance(answer, Exception) else "done"


@dataclass
class Journal:
    """What all workers share: the clock, unique values, and what went wrong."""

    zero: float = field(default_factory=time.monotonic)
    lossy: bool = False
    """Partitions may be lost, with a clear error."""
    problems: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, str] = (0.0, "")
    """Seconds, and what was asked when, and how it ended."""
    ended: list[float] = field(default_factory=list)
    """When requests were served: their gaps are outages."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def now(self) -> float:
        return time.monotonic() - self.zero

    def number(self) -> int:
        return next(self._numbers)

    def ask(self, what: str, request: Callable[[], Any]) -> tuple[Outcome, Any, float, float]:
        """Make a request; how it ended, its answer or error, and when it began and ended."""
        began = self.now()
        try:
            answer = request()
        except RemudaError as error:
            outcome = Outcome.UNKNOWN if error.may_have_run else Outcome.FAILED
            answer = error
            self.errors[f"{what}: {type(error).__name__}"] += 1
            lost = isinstance(error, PartitionsLost)
            if (lost and not self.lossy) or not (lost or isinstance(error, TransientError)):
                self.problem(f"{what}: {type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001  (whatever it is, it is a finding)
            outcome, answer = Outcome.UNKNOWN, error
            self.problem(f"{what} raised {type(error).__name__}: {error}")
        else:
            outcome = Outcome.DONE
            self.done[what] += 1
        ended = self.now()
        if outcome is Outcome.DONE:
            self.ended.append(ended)
        self.took(f"{what} from {began:.1f} on: {_short(answer)}", ended - began)
        return outcome, answer, began, ended

    def took(self, what: str, seconds: float) -> None:
        self.slowest = max(self.slowest, (seconds, what))
        if seconds > HANG:
            self.problem(f"{what} took {seconds:.1f} s")

    def problem(self, text: str) -> None:
        self.problems.append(f"{self.now():.3f} {text}")

    def outage(self) -> float:
        """The longest time in which nothing was served."""
        times = sorted(self.ended)
        return max((b - a for a, b in itertools.pairwise(times)), default=0.0)


class Work:
    """One kind of work; ``prepare`` once, then ``step`` again and again, at last ``finish``."""

    name = ""

    def __init__(self, journal: Journal, client: Client, random: Random) -> None:
        self.journal = journal
        self.client = client
        self.random = random

    def prepare(self) -> None:
        raise NotImplementedError

    def step(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """Read what is there in the end."""

    def check(self) -> list[str]:
        """What cannot be. Call after ``finish``."""
        raise NotImplementedError

    @classmethod
    def judge(cls, works: list[Any]) -> list[str]:
        """What cannot be in what all works of this kind have seen."""
        return [text for work in works for text in work.check()]

    def ask(self, what: str, request: Callable[[], Any]) -> tuple[Outcome, Any, float, float]:
        return self.journal.ask(f"{self.name} {what}", request)


class Registers(Work):
    """Puts of unique values and gets, of few keys, by several threads: linearizable per key."""

    name = "register"
    keys = 24

    def prepare(self) -> None:
        self.map = self.client.map("registers")
        self.operations: list[Operation] = []
        self.ask("put_all", lambda: self.map.put_all({self.keys: {"v": 0}}))

    def step(self) -> None:
        key = self.random.randrange(self.keys)
        if self.random.random() < 0.5:
            self.write(key)
        elif self.random.random() < 0.9:
            self.read(key)
        else:
            self.read_all()

    def write(self, key: int) -> None:
        value = self.journal.number()
        outcome, answer, began, ended = self.ask("put", lambda: self.map.put(key, {"v": value}))
        if outcome is Outcome.UNKNOWN:
            ended = float("inf")
        note = "" if outcome is Outcome.DONE else f"{type(answer).__name__}: {answer}"
        self.operations.append(Operation(key, True, value, began, ended, outcome, note[:300]))

    def read(self, key: int) -> None:
        outcome, answer, began, ended = self.ask("get", lambda: self.map.get(key))
        if outcome is Outcome.DONE:
            value = None if answer is None else answer.v
            self.operations.append(Operation(key, False, value, began, ended))

    def read_all(self) -> None:
        text = "SELECT * FROM registers"
        outcome, answer, began, ended = self.ask("select", lambda: self.client.sql(text).fetchall())
        if outcome is not Outcome.DONE:
            return
        found = {row[0]: row[1] for row in answer}
        for key in range(self.keys):
            value = found.get(key)
            self.operations.append(Operation(key, False, value, began, ended, note="by SELECT"))

    def finish(self) -> None:
        for key in range(self.keys):
            self.read(key)
        self.read_all()

    @classmethod
    def judge(cls, works: list[Any]) -> list[str]:
        """The histories of all threads belong together."""
        return registers.violations([item for work in works for item in work.operations])


class Bank(Work):
    """Transfers by single UPDATE statements over two accounts; every SUM is the same."""

    name = "bank"
    accounts = 40

    def prepare(self) -> None:
        create = "CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT)"
        self.client.sql(create)
        rows = [(number, 100) for number in range(self.accounts)]
        self.client.execute_many("INSERT INTO accounts VALUES (?, ?)", rows)
        self.wrong: list[str] = []

    def step(self) -> None:
        if self.random.random() < 0.4:
            self.total()
            return
        a, b = self.random.sample(range(self.accounts), 2)
        amount = self.random.randrange(1, 20)
        text = (
            f"UPDATE accounts SET balance = balance + CASE id WHEN {a} THEN -{amount} "
            f"ELSE {amount} END WHERE id IN ({a}, {b})"
        )
        outcome, answer, *_ = self.ask("transfer", lambda: self.client.sql(text).rowcount)
        if outcome is Outcome.DONE and answer != 2:
            self.wrong.append(f"{text} changed {answer} rows")

    def total(self) -> None:
        text = "SELECT sum(balance), count(*) FROM accounts"
        outcome, answer, began, ended = self.ask("sum", lambda: self.client.sql(text).fetchone())
        if outcome is Outcome.DONE and tuple(answer) != (100 * self.accounts, self.accounts):
            self.wrong.append(f"{began:.3f}-{ended:.3f} the sum and number were {tuple(answer)}")

    def finish(self) -> None:
        self.total()

    def check(self) -> list[str]:
        return [f"bank: {text}" for text in self.wrong[:5]]


class Batches(Work):
    """Whole tables by ``put_all``: each appears completely or not at all, and later than those
    before it."""

    name = "batch"
    rows = 300

    map_name = "batches"

    def prepare(self) -> None:
        self.map = self.client.map(self.map_name)
        self.map.put_all(self.table(0), key="id")
        self.wrong: list[str] = []
        self.begun = self.acknowledged = 0
        self.failed: set[int] = set()

    def table(self, number: int) -> pa.Table:
        return pa.table({"id": range(self.rows), "n": [number] * self.rows})

    def step(self) -> None:
        if self.random.random() < 0.5:
            self.look()
            return
        number = self.begun = self.begun + 1
        outcome, *_ = self.ask("put_all", lambda: self.write(number))
        if outcome is Outcome.DONE:
            self.acknowledged = number
        elif outcome is Outcome.FAILED:
            self.failed.add(number)

    def write(self, number: int) -> None:
        self.map.put_all(self.table(number))

    def seen(self) -> tuple[Any, ...]:
        text = f"SELECT min(n), max(n), count(*) FROM {self.map_name}"
        return tuple(self.client.sql(text).fetchone() or ())

    def look(self) -> None:
        """By the only thread that writes: what is there is what it has written last, or, of writes
        that nobody knows the end of, one of those after it."""
        outcome, answer, began, ended = self.ask("look", self.seen)
        if outcome is not Outcome.DONE:
            return
        low, high, count = answer
        where = f"{began:.3f}-{ended:.3f}"
        if low != high or count != self.rows:
            self.wrong.append(f"{where} a part of a table: n {low} to {high}, {count} rows")
        elif not self.acknowledged <= low <= self.begun:
            self.wrong.append(f"{where} n is {low} after {self.acknowledged} was acknowledged")
        elif low in self.failed:
            self.wrong.append(f"{where} n is {low}, whose put_all had failed for certain")

    def finish(self) -> None:
        self.look()

    def check(self) -> list[str]:
        return [f"batches: {text}" for text in self.wrong[:5]]


class Bumps(Work):
    """``UPDATE ... SET n = n + 1`` of all rows: all rows have the same n, which counts the
    statements that were carried out."""

    name = "bump"
    rows = 60

    def prepare(self) -> None:
        self.client.sql("CREATE TABLE bumps (id BIGINT PRIMARY KEY, n BIGINT)")
        rows = [(number, 0) for number in range(self.rows)]
        self.client.execute_many("INSERT INTO bumps VALUES (?, ?)", rows)
        self.wrong: list[str] = []
        self.certain = self.possible = 0

    def step(self) -> None:
        if self.random.random() < 0.5:
            self.look()
            return
        outcome, answer, *_ = self.ask("update", lambda: self.client.sql(UPDATE_BUMPS).rowcount)
        if outcome is Outcome.DONE and answer != self.rows:
            self.wrong.append(f"{UPDATE_BUMPS} changed {answer} rows")
        self.certain += outcome is Outcome.DONE
        self.possible += outcome is not Outcome.FAILED

    def look(self) -> None:
        text = "SELECT min(n), max(n), count(*) FROM bumps"
        outcome, answer, began, ended = self.ask("look", lambda: self.client.sql(text).fetchone())
        if outcome is not Outcome.DONE:
            return
        low, high, count = answer
        where = f"{began:.3f}-{ended:.3f}"
        if low != high or count != self.rows:
            self.wrong.append(f"{where} n is {low} to {high} in {count} rows")
        elif not self.certain <= low <= self.possible:
            expected = f"{self.certain} to {self.possible}"
            self.wrong.append(f"{where} n is {low}, expected {expected}")

    def finish(self) -> None:
        self.look()

    def check(self) -> list[str]:
        return [f"bumps: {text}" for text in self.wrong[:5]]


UPDATE_BUMPS = "UPDATE bumps SET n = n + 1"


class Elements(Work):
    """Elements of a set, inserted by SQL and by ``put_all`` of objects: in the end every one that
    was acknowledged is there, and none that failed for certain."""

    name = "element"

    def prepare(self) -> None:
        self.client.sql("CREATE TABLE elements (id BIGINT PRIMARY KEY, v BIGINT)")
        self.map = self.client.map("elements")
        self.added: dict[int, Outcome] = {}
        self.there: set[int] | None = None

    def step(self) -> None:
        count = self.random.choice((1, 1, 5))
        numbers = [self.journal.number() for _ in range(count)]
        if self.random.random() < 0.5:
            values = ", ".join(f"({number}, {number})" for number in numbers)
            text = f"INSERT INTO elements VALUES {values}"
            outcome, *_ = self.ask("insert", lambda: self.client.sql(text))
        else:
            entries = {number: {"v": number} for number in numbers}
            outcome, *_ = self.ask("put_all", lambda: self.map.put_all(entries))
            if outcome is Outcome.FAILED and count > 1:
                outcome = Outcome.UNKNOWN  # the members' parts appear one after the other
        self.added |= dict.fromkeys(numbers, outcome)

    def finish(self) -> None:
        text = "SELECT id FROM elements"
        for _ in range(5):  # a view may have changed just now
            outcome, answer, *_ = self.ask("select", lambda: self.client.sql(text).fetchall())
            if outcome is Outcome.DONE:
                self.there = {row[0] for row in answer}
                return
            time.sleep(0.2)

    def check(self) -> list[str]:
        if self.there is None:
            return ["elements: they could not be read in the end"]
        kept = {number for number, outcome in self.added.items() if outcome is Outcome.DONE}
        failed = {number for number, outcome in self.added.items() if outcome is Outcome.FAILED}
        found = []
        if lost := sorted(kept - self.there):
            found.append(f"elements: {len(lost)} acknowledged ones are lost: {lost[:10]}")
        if ghosts := sorted(failed & self.there):
            found.append(f"elements: {len(ghosts)} are there that had failed: {ghosts[:10]}")
        if strange := sorted(self.there - set(self.added)):
            found.append(f"elements: nobody inserted {strange[:10]}")
        return found


KINDS: dict[str, type[Work]] = {
    kind.name: kind for kind in (Registers, Bank, Batches, Bumps, Elements)
}


class Workers:
    """All works of a round, each in a thread of its own."""

    def __init__(
        self, journal: Journal, connect: Callable[[], Client], kinds: list[str], random: Random
    ) -> None:
        self.journal = journal
        self.clients = [connect() for _ in kinds]
        self.works = [
            KINDS[kind](journal, client, Random(random.random()))
            for kind, client in zip(kinds, self.clients, strict=True)
        ]
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(work,), daemon=True, name=work.name)
            for work in self.works
        ]
        for work in self.works:
            work.prepare()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(HANG)
            if thread.is_alive():
                self.journal.problem(f"{thread.name} hangs")

    def finish(self) -> list[str]:
        """The final reads, and everything that was wrong."""
        together: dict[type[Work], list[Work]] = {}
        for work in self.works:
            if not self.journal.lossy:
                work.finish()
            together.setdefault(type(work), []).append(work)
        found = list(self.journal.problems)
        for kind, works in together.items():
            if kind is Registers or not self.journal.lossy:
                found += kind.judge(works)
        return found

    def close(self) -> None:
        for client in self.clients:
            client.close()

    def _run(self, work: Work) -> None:
        while not self._stop.is_set():
            work.step()
            self._stop.wait(0.002)
