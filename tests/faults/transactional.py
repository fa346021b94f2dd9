"""Works that use transactions over several keys and members."""

from __future__ import annotations

import time
from typing import Any

import histories
from histories import Append, Read
from workload import KINDS, Work

from remuda.client.blocking.transaction import Transaction
from remuda.errors import PartitionsLost, RemudaError, TransientError


class Appends(Work):
    """Transactions that read lists and append unique values to them: serializable in real time.

    All threads share the map; ``histories.anomalies`` judges what all of them have seen.
    """

    name = "append"
    keys = 12

    def prepare(self) -> None:
        self.map = self.client.map("lists")
        self.map.put(-1, {"v": ""})
        self.history: list[histories.Transaction] = []

    def step(self) -> None:
        keys = self.random.sample(range(self.keys), self.random.randrange(1, 4))
        plan = [(key, self.random.random() < 0.5) for key in keys]
        self.transact(plan)

    def transact(self, plan: list[tuple[int, bool]]) -> None:
        done: list[Append | Read] = []
        began = self.journal.now()
        ended = float("inf")
        outcome = histories.Outcome.ABORTED
        committing = False
        transaction = self.client.transaction()
        try:
            transaction.begin()
            lists = transaction.map("lists")
            for key, appends in plan:
                self.touch(lists, key, appends, done)
            committing = True
            transaction.commit()
        except RemudaError as error:
            if committing and error.may_have_run:
                outcome = histories.Outcome.UNKNOWN
            else:
                ended = self.journal.now()
            self.journal.errors[f"append {committing=}: {type(error).__name__}"] += 1
            lost = self.journal.lossy and isinstance(error, PartitionsLost)
            if not (lost or isinstance(error, TransientError)):
                self.journal.problem(f"append {committing=}: {type(error).__name__}: {error}")
            self.give_up(transaction, committing)
        else:
            outcome = histories.Outcome.COMMITTED
            ended = self.journal.now()
            self.journal.done["append"] += 1
            self.journal.ended.append(ended)
        self.journal.took("append", self.journal.now() - began)
        self.history.append(histories.Transaction(tuple(done), outcome, began, ended))

    def touch(self, lists: Any, key: int, appends: bool, done: list[Append | Read]) -> None:
        row = lists.get(key)
        values = () if row is None else tuple(map(int, row.v.split()))
        done.append(Read(key, values))
        if appends:
            number = self.journal.number()
            done.append(Append(key, number))
            lists.put(key, {"v": " ".join(map(str, (*values, number)))})

    def give_up(self, transaction: Transaction, committing: bool) -> None:
        if committing:
            return
        try:
            transaction.rollback()
        except RemudaError as error:
            self.journal.errors[f"append rollback: {type(error).__name__}"] += 1

    def finish(self) -> None:
        for _ in range(5):
            self.transact([(key, False) for key in range(self.keys)])
            if self.history[-1].outcome is histories.Outcome.COMMITTED:
                return
            time.sleep(0.2)
        self.journal.problem("append: the lists could not be read in the end")

    @classmethod
    def judge(cls, works: list[Any]) -> list[str]:
        """What cannot be, with the transactions that show it."""
        history = [item for work in works for item in work.history]
        found = []
        for anomaly in histories.anomalies(history)[:5]:
            shown = "\n".join(f"  {n}: {history[n]}" for n in anomaly.transactions[:6])
            found.append(f"appends: {anomaly}\n{shown}"[:3000])
        return found


class Transfers(Work):
    """Transfers between accounts by transactions that read both and write both; every SUM, by SQL
    inside and outside of transactions, is the same."""

    name = "transfer"
    accounts = 20

    def prepare(self) -> None:
        self.map = self.client.map("purses")
        self.map.put_all({number: {"balance": 100} for number in range(self.accounts)})
        self.wrong: list[str] = []

    def step(self) -> None:
        if self.random.random() < 0.3:
            self.total()
            return
        a, b = self.random.sample(range(self.accounts), 2)
        amount = self.random.randrange(1, 20)

        def move() -> None:
            with self.client.transaction() as transaction:
                purses = transaction.map("purses")
                here, there = purses.get(a).balance, purses.get(b).balance
                purses.put(a, {"balance": here - amount})
                purses.put(b, {"balance": there + amount})

        self.ask("move", move)

    def total(self) -> None:
        text = "SELECT sum(balance), count(*) FROM purses"

        def within() -> Any:
            with self.client.transaction() as transaction:
                return transaction.sql(text).fetchone()

        read = within if self.random.random() < 0.3 else lambda: self.client.sql(text).fetchone()
        outcome, answer, began, ended = self.ask("sum", read)
        if outcome.value == "done" and tuple(answer) != (100 * self.accounts, self.accounts):
            self.wrong.append(f"{began:.3f}-{ended:.3f} the sum and number were {tuple(answer)}")

    def finish(self) -> None:
        self.total()

    def check(self) -> list[str]:
        return [f"purses: {text}" for text in self.wrong[:5]]


KINDS |= {kind.name: kind for kind in (Appends, Transfers)}
