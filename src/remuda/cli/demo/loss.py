"""The demo's chapters on what may not get lost: a transaction, and a member that is killed."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Final

import remuda
from remuda.cli.demo.screen import Screen, Stopwatch
from remuda.client.blocking.client import Client
from remuda.client.embedded.cluster import Cluster
from remuda.errors import InternalError, TransientError

PATIENCE: Final = 60.0
"""Seconds that the demo gives a cluster to serve again; a lease ends after a few."""
MEMBERS_LEAST: Final = 3
"""Two members of which one is lost have no majority: none of them serves alone."""
TOTALS: Final = "SELECT count(*) AS flights, sum(distance) AS miles FROM flights"


@dataclass(frozen=True)
class Account:
    owner: str
    amount: int


def transfer(screen: Screen, client: Client) -> None:
    """Map operations and SQL in one transaction, which others see as a whole."""
    screen.chapter("A transaction: 30 from ann to bob, by map operations and SQL together")
    accounts = client.map("accounts", Account)
    accounts.put_all({1: Account("ann", 100), 2: Account("bob", 100)})

    def pay(tx: remuda.Transaction) -> None:
        own = tx.map("accounts", Account)
        ann = own[1]
        own.put(1, Account(ann.owner, ann.amount - 30))
        tx.sql("UPDATE accounts SET amount = amount + 30 WHERE owner = ?", "bob")
        others = [accounts[1].amount, accounts[2].amount]
        if others != [100, 100]:
            raise InternalError(f"others saw {others} before the commit")

    watch = Stopwatch()
    client.run_transaction(pay)
    screen.took("Committed", watch.seconds)
    rows = client.sql("SELECT owner, amount FROM accounts ORDER BY owner").fetchall()
    screen.table(("owner", "amount"), rows, len(rows))
    if rows != [("ann", 70), ("bob", 130)]:
        raise InternalError(f"the transaction left {rows}")


def lose_a_member(screen: Screen, cluster: Cluster, client: Client) -> None:
    """``kill -9`` of one process; the others have its rows."""
    if len(cluster.pids) < MEMBERS_LEAST:
        return
    before = client.sql(TOTALS).fetchall()
    victim = len(cluster.pids)
    screen.chapter(f"Member {victim} is killed (kill -9); each partition has a backup")
    os.kill(cluster.pids[-1], signal.SIGKILL)
    watch = Stopwatch()
    while True:
        try:
            after = client.sql(TOTALS).fetchall()
        except TransientError:
            if watch.seconds > PATIENCE:
                raise
        else:
            break
    screen.took("The others answer for it", watch.seconds)
    screen.table(("flights", "miles"), after, len(after))
    if after != before:
        raise InternalError(f"before the loss {before}, after it {after}")
    screen.say("The same rows as before, counted again.")
