"""Children of one parent beside rows without a parent: ``./run bench foreign_keys``.

Each client inserts children of the same row, one statement each. Remuda: three members, one
synchronous backup; the same table without its foreign key; PostgreSQL with ``synchronous_commit``
off, whose children lock the row of the parent. The subjects take turns; figures are medians over
the rounds. Refusals (40001) are counted and not run again. The processor's time is that of
the members (nothing is said of PostgreSQL): on a busy machine it tells more than the rate.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import closed_loop
import peers
import remuda
from batches import Processors
from closed_loop import Conflict, Figures
from remuda.errors import TransientError

TABLES = (
    "CREATE TABLE parents (id BIGINT PRIMARY KEY, name VARCHAR(20))",
    "CREATE TABLE children (id BIGINT PRIMARY KEY, parent BIGINT REFERENCES parents)",
    "CREATE TABLE strangers (id BIGINT PRIMARY KEY, parent BIGINT)",
    "INSERT INTO parents VALUES (1, 'hot')",
)
OPERATION = "INSERT"


def insert(table: str, mark: str) -> str:
    return f"INSERT INTO {table} VALUES ({mark}, 1)"


@dataclass(frozen=True)
class Remuda:
    name: str
    addresses: tuple[str, ...]
    table: str

    def session(self) -> RemudaSession:
        return RemudaSession(self)


class RemudaSession:
    def __init__(self, subject: Remuda) -> None:
        self._client = remuda.connect(subject.addresses)
        self._insert = self._client.prepare(insert(subject.table, "?"))
        self.operations: dict[str, Callable[[random.Random], object]] = {OPERATION: self._one}

    def _one(self, chance: random.Random) -> None:
        try:
            self._insert(chance.getrandbits(62))
        except TransientError as error:
            raise Conflict from error

    def close(self) -> None:
        self._client.close()


@dataclass(frozen=True)
class Postgres:
    name: str
    address: str

    def session(self) -> PostgresSession:
        return PostgresSession(self)


class PostgresSession:
    def __init__(self, subject: Postgres) -> None:
        import psycopg

        options = "-c synchronous_commit=off"
        self._connection = psycopg.connect(subject.address, autocommit=True, options=options)
        self._connection.prepare_threshold = 0
        self._text = insert("children", "%s")
        self.operations: dict[str, Callable[[random.Random], object]] = {OPERATION: self._one}

    def _one(self, chance: random.Random) -> None:
        self._connection.execute(self._text, (chance.getrandbits(62),))

    def close(self) -> None:
        self._connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16])
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(remuda.start(members=3))
        with remuda.connect(cluster.addresses) as client:
            for text in TABLES:
                client.sql(text)
        subjects: list[Remuda | Postgres] = [
            Remuda("children", cluster.addresses, "children"),
            Remuda("without the foreign key", cluster.addresses, "strangers"),
        ]
        address = stack.enter_context(peers.postgres())
        if address is not None:
            import psycopg

            with psycopg.connect(address) as connection:
                for text in TABLES:
                    connection.execute(text)
            subjects.append(Postgres("children in PostgreSQL", address))
        running = [(s, stack.enter_context(closed_loop.clients(s))) for s in subjects]
        processors = Processors(cluster.pids)
        for count in options.clients:
            found: dict[str, list[tuple[Figures, float]]] = {s.name: [] for s in subjects}
            for _ in range(options.rounds):
                for subject, clients in running:
                    before = processors.seconds()
                    figures = clients.run(OPERATION, count, options.seconds)
                    found[subject.name].append((figures, processors.seconds() - before))
            report(found, count)
        with remuda.connect(cluster.addresses) as client:
            orphans = "SELECT count(*) FROM children WHERE parent NOT IN (SELECT id FROM parents)"
            assert client.sql(orphans).scalar() == 0, "children without their parent"
    return 0


def report(found: dict[str, list[tuple[Figures, float]]], clients: int) -> None:
    print(f"\n{clients} clients\n")
    print("| | rows/s | p50 ms | p99 ms | refused | ms of members' processors each |")
    print("|---|---|---|---|---|---|")
    for name, rounds in found.items():
        figures = [each for each, _ in rounds]
        rate = statistics.median(f.rate for f in figures)
        p50 = statistics.median(f.p50 for f in figures) * 1e3
        p99 = statistics.median(f.p99 for f in figures) * 1e3
        refused = sum(f.failed for f in figures)
        each = statistics.median(spent / max(1, len(f.times)) for f, spent in rounds) * 1e3
        spent = "" if "PostgreSQL" in name else f"{each:.2f}"
        row = f"| {name} | {rate:,.0f} | {p50:.2f} | {p99:.2f} | {refused} | {spent} |"
        print(row, flush=True)


if __name__ == "__main__":
    sys.exit(main())
