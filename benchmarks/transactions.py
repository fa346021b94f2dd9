"""Transactions per second beside PostgreSQL at the same isolation: ``./run bench transactions``.

A transaction reads some accounts one by one, changes them, and writes them back one by one:
``2k + 2`` requests with begin and commit, on both. It moves money, so every row is read and
written. What is refused because of others is run again and counted. Remuda: three members, one
synchronous backup, optimistic SERIALIZABLE and pessimistic REPEATABLE READ. PostgreSQL:
SERIALIZABLE, and REPEATABLE READ with rows locked by SELECT FOR UPDATE, with a synchronous replica
and ``synchronous_commit`` off (nobody waits for the replica) and ``remote_write``. The subjects
take turns; figures are medians over the rounds, ratios those of the same round. Afterwards the sum
of all accounts must be what it was. ``./run bench grid`` compares transactions of two keys with
Redis, Hazelcast and Ignite, too.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import closed_loop
import peers
import remuda
from closed_loop import Conflict, Figures
from remuda.errors import TransientError

ACCOUNTS = 100_000
OPENING = 1000
SIZES = (2, 5)


@dataclass
class Account:
    balance: int


class TransferSession:
    def __init__(self) -> None:
        self.operations: dict[str, Callable[[random.Random], object]] = {
            f"{size} keys": lambda chance, size=size: self.transfer(  # type: ignore[misc]
                sorted(chance.sample(range(ACCOUNTS), size))
            )
            for size in SIZES
        }

    def transfer(self, keys: list[int]) -> None:
        """One from the first to the last. Raises Conflict."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


def moved(balances: list[int]) -> list[int]:
    return [balances[0] - 1, *balances[1:-1], balances[-1] + 1]


@dataclass(frozen=True)
class Remuda:
    name: str
    addresses: tuple[str, ...]
    pessimistic: bool

    def session(self) -> RemudaSession:
        return RemudaSession(self)

    def fill(self) -> None:
        with remuda.connect(self.addresses) as client:
            accounts = client.map("accounts", Account)
            accounts.put_all({key: Account(OPENING) for key in range(ACCOUNTS)})

    def total(self) -> int:
        with remuda.connect(self.addresses) as client:
            return int(client.sql("SELECT sum(balance) FROM accounts").fetchone()[0])


class RemudaSession(TransferSession):
    def __init__(self, subject: Remuda) -> None:
        super().__init__()
        self._client = remuda.connect(subject.addresses)
        self._how: dict[str, Any] = {"concurrency": "optimistic", "isolation": "serializable"}
        if subject.pessimistic:
            self._how = {"concurrency": "pessimistic", "isolation": "repeatable read"}

    def transfer(self, keys: list[int]) -> None:
        try:
            with self._client.transaction(**self._how) as transaction:
                accounts = transaction.map("accounts", Account)
                balances = moved([accounts.get(key).balance for key in keys])
                for key, balance in zip(keys, balances, strict=True):
                    accounts.put(key, Account(balance))
        except TransientError as error:
            raise Conflict from error

    def close(self) -> None:
        self._client.close()


@dataclass(frozen=True)
class Postgres:
    name: str
    address: str
    pessimistic: bool
    synchronous_commit: str

    def session(self) -> PostgresSession:
        return PostgresSession(self)

    def fill(self) -> None:
        import psycopg

        with psycopg.connect(self.address) as connection:
            connection.execute("DROP TABLE IF EXISTS accounts")
            connection.execute("CREATE TABLE accounts (id BIGINT PRIMARY KEY, balance BIGINT)")
            numbers = f"generate_series(0, {ACCOUNTS - 1})"
            connection.execute(f"INSERT INTO accounts SELECT i, {OPENING} FROM {numbers} i")

    def total(self) -> int:
        import psycopg

        with psycopg.connect(self.address) as connection:
            found = connection.execute("SELECT sum(balance) FROM accounts").fetchone()
            assert found is not None
            return int(found[0])


class PostgresSession(TransferSession):
    def __init__(self, subject: Postgres) -> None:
        super().__init__()
        import psycopg

        self._connection = psycopg.connect(
            subject.address,
            autocommit=True,
            options=f"-c synchronous_commit={subject.synchronous_commit}",
        )
        self._connection.prepare_threshold = 0
        level = "REPEATABLE READ" if subject.pessimistic else "SERIALIZABLE"
        self._begin = f"BEGIN ISOLATION LEVEL {level}"
        lock = " FOR UPDATE" if subject.pessimistic else ""
        self._read = f"SELECT balance FROM accounts WHERE id = %s{lock}"
        self._write = "UPDATE accounts SET balance = %s WHERE id = %s"
        self._refused = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)

    def transfer(self, keys: list[int]) -> None:
        execute = self._connection.execute
        try:
            execute(self._begin)
            balances = moved([execute(self._read, (key,)).fetchone()[0] for key in keys])  # type: ignore[index]
            for key, balance in zip(keys, balances, strict=True):
                execute(self._write, (balance, key))
            execute("COMMIT")
        except self._refused as error:
            execute("ROLLBACK")
            raise Conflict from error

    def close(self) -> None:
        self._connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--optimistic-only", action="store_true")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        subjects = _subjects(stack, options.optimistic_only)
        for subject in subjects:
            subject.fill()
        running = [(s, stack.enter_context(closed_loop.clients(s))) for s in subjects]
        for operation in (f"{size} keys" for size in SIZES):
            for count in options.clients:
                found: dict[str, list[Figures]] = {subject.name: [] for subject in subjects}
                for _ in range(options.rounds):
                    for subject, clients in running:
                        found[subject.name].append(clients.run(operation, count, options.seconds))
                report(found, operation, count, options.seconds)
        for subject in subjects:
            assert subject.total() == ACCOUNTS * OPENING, f"{subject.name} has lost money"
    return 0


def _subjects(stack: contextlib.ExitStack, optimistic_only: bool) -> list[Remuda | Postgres]:
    cluster = stack.enter_context(remuda.start(members=3))
    modes = (False,) if optimistic_only else (False, True)
    names = {False: "optimistic SERIALIZABLE", True: "pessimistic REPEATABLE READ"}
    found: list[Remuda | Postgres] = [
        Remuda(f"Remuda, {names[mode]}", cluster.addresses, mode) for mode in modes
    ]
    address = stack.enter_context(peers.postgres(replica=True))
    if address is not None:
        theirs = {False: "SERIALIZABLE", True: "REPEATABLE READ, FOR UPDATE"}
        found += [
            Postgres(f"PostgreSQL, {theirs[mode]}, commit {how}", address, mode, how)
            for mode in modes
            for how in ("off", "remote_write")
        ]
    return found


def report(found: dict[str, list[Figures]], operation: str, clients: int, seconds: float) -> None:
    """``ratio``: the rate by that of the first subject, optimistic SERIALIZABLE."""
    ours = [figures.rate for figures in next(iter(found.values()))]
    print(f"\n{operation}, {clients} clients\n")
    print("| | transactions/s | p50 ms | p99 ms | refused | Remuda optimistic / it |")
    print("|---|---|---|---|---|---|")
    for name, figures in found.items():
        rate = statistics.median(f.rate for f in figures)
        p50 = statistics.median(f.p50 for f in figures) * 1e3
        p99 = statistics.median(f.p99 for f in figures) * 1e3
        refused = sum(f.failed for f in figures)
        tried = refused + sum(f.rate for f in figures) * seconds
        ratio = statistics.median(o / f.rate for o, f in zip(ours, figures, strict=True))
        share = refused / tried
        row = f"| {name} | {rate:,.0f} | {p50:.2f} | {p99:.2f} | {share:.1%} | {ratio:.2f} |"
        print(row, flush=True)


if __name__ == "__main__":
    sys.exit(main())
