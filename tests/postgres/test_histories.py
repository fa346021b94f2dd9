"""Histories of psycopg's transactions on three members, judged for their isolation."""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "transaction"))
import histories
from histories import Append, Outcome, Read, Transaction

KEYS = 3
WORKERS = 4
EACH = 12


class Worker:
    """Transactions that append to lists and read them, one after the other."""

    def __init__(self, connection, number, together, append):
        self.connection = connection
        self.append = append
        self.chance = random.Random(number)
        self.values = itertools.count(number * 1_000_000)
        self.together = together

    def run(self):
        self.together.wait()
        return [self.one() for _ in range(EACH)]

    def one(self):
        done, outcome, began = [], Outcome.COMMITTED, time.monotonic()
        try:
            with self.connection.transaction():
                for _ in range(self.chance.randint(1, 4)):
                    self.step(done, self.chance.randrange(KEYS))
        except psycopg.errors.SerializationFailure:
            outcome = Outcome.ABORTED
        return Transaction(tuple(done), outcome, began, time.monotonic())

    def step(self, done, key):
        text = "SELECT items FROM lists WHERE id = %s"
        (items,) = self.connection.execute(text, (key,)).fetchone()
        done.append(Read(key, tuple(map(int, items.split(","))) if items else ()))
        if self.chance.random() < 0.5:
            value = next(self.values)
            self.append(self.connection, key, items, value)
            done.append(Append(key, value))


def overwrite(connection, key, items, value):
    """Append by what the transaction has read: another one's append between must be noticed."""
    after = f"{items},{value}" if items else str(value)
    connection.execute("UPDATE lists SET items = %s WHERE id = %s", (after, key))


def extend(connection, key, _items, value):
    """Append in one statement, which reads and writes by itself."""
    connection.execute(
        "UPDATE lists SET items = CASE items WHEN '' THEN %s ELSE items || ',' || %s END"
        " WHERE id = %s",
        (str(value), str(value), key),
    )


def history_of(connect, level, append=overwrite):
    connect().execute("DROP TABLE IF EXISTS lists")
    connect().execute("CREATE TABLE lists (id INTEGER PRIMARY KEY, items VARCHAR)")
    for key in range(KEYS):
        connect().execute("INSERT INTO lists VALUES (%s, '')", (key,))
    together = threading.Barrier(WORKERS)
    workers = []
    for number in range(1, WORKERS + 1):
        connection = connect(number % 3)
        connection.isolation_level = level
        workers.append(Worker(connection, number, together, append))
    with ThreadPoolExecutor(WORKERS) as pool:
        parts = list(pool.map(Worker.run, workers))
    return [transaction for part in parts for transaction in part]


ASKED = pytest.param(psycopg.IsolationLevel.SERIALIZABLE, marks=pytest.mark.soak)


@pytest.mark.parametrize("level", [None, ASKED], ids=["default", "asked"])
def test_histories_are_strictly_serializable(connect, level):
    """None: the level that BEGIN means."""
    history = history_of(connect, level)
    found = histories.anomalies(history)
    assert not found, "\n".join(map(str, found))
    outcomes = [transaction.outcome for transaction in history]
    assert outcomes.count(Outcome.COMMITTED) > WORKERS
    assert Outcome.ABORTED in outcomes, "without conflicts there is nothing to judge"


SNAPSHOT = {"G2", "G2-realtime"}
"""The anomalies of snapshot isolation: circles with two transactions that read what the next one
overwrites, such as write skew."""
STATEMENTS = {*SNAPSHOT, "unrepeatable read", "G-single", "G-single-realtime"}
"""Those of statements that each read what is committed when they begin."""


@pytest.mark.parametrize(
    ("level", "append", "allowed"),
    [
        pytest.param(
            psycopg.IsolationLevel.REPEATABLE_READ, overwrite, SNAPSHOT, marks=pytest.mark.soak
        ),
        (psycopg.IsolationLevel.READ_COMMITTED, extend, STATEMENTS),
    ],
    ids=["repeatable read", "read committed"],
)
def test_histories_have_no_anomaly_that_their_level_forbids(connect, level, append, allowed):
    history = history_of(connect, level, append)
    found = [each for each in histories.anomalies(history) if each.name not in allowed]
    assert not found, "\n".join(map(str, found))
    outcomes = [transaction.outcome for transaction in history]
    assert outcomes.count(Outcome.COMMITTED) > WORKERS


def test_the_judge_finds_what_read_committed_allows(connect):
    assert histories.anomalies(history_of(connect, psycopg.IsolationLevel.READ_COMMITTED))
