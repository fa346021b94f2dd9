"""The demo's last chapters: snapshots of a cluster under load, the loss of all of its processes, a
start from its folders, and a restore of what it was into a cluster of another size."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import remuda
from remuda.cli.demo.screen import Screen, Stopwatch, duration
from remuda.client.blocking.client import Client
from remuda.client.embedded.cluster import Cluster, start
from remuda.errors import InternalError, RemudaError, SerializationFailure

NAME: Final = "demo"
MEMBERS: Final = 3
MEMBERS_AFTER: Final = 2
ACCOUNTS: Final = 200
OPENING: Final = 100
"""The balance of each account at first."""
TELLERS: Final = 2
STEP: Final = 40
"""Transfers that are acknowledged between two cuts, at least."""
PATIENCE: Final = 60.0
"""Seconds until tellers that do not get on are given up."""


@dataclass(frozen=True)
class Account:
    amount: int


@dataclass(frozen=True)
class Transfer:
    """One line of the book: it is written in the transaction that moves the money."""

    source: int
    target: int
    amount: int


class Tellers:
    """Clients that move money between accounts, each in its own thread, until the members die.

    ``told``: for each teller, how many transfers were acknowledged.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._moved = threading.Condition()
        self._ended = 0
        self.told = [0] * TELLERS
        self._threads = [
            threading.Thread(target=self._work, args=(teller,), daemon=True)
            for teller in range(TELLERS)
        ]
        for thread in self._threads:
            thread.start()

    def acknowledged(self) -> list[int]:
        with self._moved:
            return list(self.told)

    def until(self, total: int) -> None:
        """Wait for so many transfers of all tellers."""
        with self._moved:
            self._moved.wait_for(lambda: self._ended or sum(self.told) >= total, PATIENCE)
            if sum(self.told) < total:
                raise InternalError(f"after {sum(self.told)} transfers the tellers stopped")

    def join(self) -> list[int]:
        """When the members are gone."""
        for thread in self._threads:
            thread.join(PATIENCE)
        return self.acknowledged()

    def _work(self, teller: int) -> None:
        try:
            with self._cluster.connect() as client:
                while True:
                    _pay(client, teller, self.told[teller])
                    with self._moved:
                        self.told[teller] += 1
                        self._moved.notify_all()
        except RemudaError:
            return  # the members were killed, or ``until`` finds too few transfers
        finally:
            with self._moved:
                self._ended += 1
                self._moved.notify_all()


def _transfer(teller: int, number: int) -> Transfer:
    source = (teller * 61 + number * 17) % ACCOUNTS
    return Transfer(source, (source + 1 + number % (ACCOUNTS - 1)) % ACCOUNTS, 1 + number % 19)


def _pay(client: Client, teller: int, number: int) -> None:
    line = _transfer(teller, number)

    def move(tx: remuda.Transaction) -> None:
        accounts = tx.map("accounts", Account)
        for account, change in ((line.source, -line.amount), (line.target, line.amount)):
            accounts.put(account, Account(accounts[account].amount + change))
        tx.map("book", Transfer).put(_key(teller, number), line)

    while True:
        try:
            client.run_transaction(move)
        except SerializationFailure:  # tellers of this demo meet at few accounts: again
            continue
        return


def _key(teller: int, number: int) -> int:
    """In the book: the numbers of a teller have no gaps."""
    return teller * 1_000_000 + number


@dataclass(frozen=True)
class Cut:
    """``before``: the transfers of each teller that were acknowledged when it was asked for."""

    number: int
    before: Sequence[int]


def survive(screen: Screen, directory: Path) -> None:
    """Snapshots and cuts under load, ``kill -9`` of all members, two ways back."""
    store = str(directory / "snapshots")
    settings = {"data_dir": str(directory / "data"), "snapshot_store": store}
    screen.chapter(f"A bank: {MEMBERS} members with logs on disk, {TELLERS} clients move money")
    cuts, told = _until_killed(screen, settings)
    _start_again(screen, settings, told)
    elsewhere = {"data_dir": str(directory / "elsewhere"), "snapshot_store": store}
    _restore(screen, elsewhere, cuts[1])


def _until_killed(screen: Screen, settings: dict[str, str]) -> tuple[list[Cut], list[int]]:
    with start(members=MEMBERS, settings=settings) as cluster:
        with cluster.connect() as client:
            accounts = client.map("accounts", Account)
            accounts.put_all({number: Account(OPENING) for number in range(ACCOUNTS)})
            client.map("book", Transfer).put(-1, Transfer(0, 0, 0))
            tellers = Tellers(cluster)
            cuts = _cuts_under_load(screen, client, tellers)
            tellers.until(sum(tellers.acknowledged()) + STEP)
        screen.chapter("All members are killed (kill -9), in the middle of transfers")
        for pid in cluster.pids:
            os.kill(pid, signal.SIGKILL)
        told = tellers.join()
    screen.say(f"{sum(told)} transfers were acknowledged.")
    return cuts, told


def _cuts_under_load(screen: Screen, client: Client, tellers: Tellers) -> list[Cut]:
    """A base, and two increments."""
    cuts: list[Cut] = []
    rows: list[tuple[object, ...]] = []
    for increment in (False, True, True):
        tellers.until(sum(tellers.acknowledged()) + STEP)
        before = tellers.acknowledged()
        watch = Stopwatch()
        made = client.snapshots.create(NAME, increment=increment)
        seconds = watch.seconds
        during = sum(tellers.acknowledged()) - sum(before)
        cuts.append(Cut(made["cut"], before))
        rows.append(
            (made["cut"], made["kind"], made["bytes"], duration(seconds), sum(before), during)
        )
    names = ("cut", "kind", "bytes", "time", "transfers before", "meanwhile")
    screen.table(names, rows, len(rows))
    screen.say("The cuts are consistent: no transfer is half in one. Nobody waited for them.")
    return cuts


def _start_again(screen: Screen, settings: dict[str, str], told: list[int]) -> None:
    watch = Stopwatch()
    with start(members=MEMBERS, settings=settings) as cluster, cluster.connect() as client:
        screen.took("Started again from their folders", watch.seconds)
        found = _checked(client, told)
    screen.say(f"{found} transfers are there, each as a whole: none that was acknowledged is lost.")


def _restore(screen: Screen, settings: dict[str, str], cut: Cut) -> None:
    screen.chapter(f"Cut {cut.number}, restored on {MEMBERS_AFTER} new members")
    with start(members=MEMBERS_AFTER, settings=settings) as cluster, cluster.connect() as client:
        watch = Stopwatch()
        problems = client.snapshots.verify(NAME)
        if problems:
            raise InternalError(f"the snapshot is damaged: {problems[0]}")
        screen.took("All cuts verified: every object, row and record", watch.seconds)
        watch = Stopwatch()
        back = client.snapshots.restore(NAME, cut=cut.number)
        screen.took(f"Cut {cut.number} restored", watch.seconds)
        shown = [(row["restored_as"], row["rows"]) for row in back]
        screen.table(("map", "rows"), shown, len(shown))
        found = _checked(client, cut.before)
    screen.say(f"{found} transfers, and the balances that they make: as it was at the cut.")


def _checked(client: Client, told: Sequence[int]) -> int:
    """How many transfers are there. Raises InternalError unless those that were told are, in an
    unbroken row for each teller, and the balances are what all of them together make."""
    moved: dict[int, Any] = {
        row["__key"]: row for row in client.sql("SELECT * FROM book WHERE __key >= 0")
    }
    balances = dict.fromkeys(range(ACCOUNTS), OPENING)
    for each in moved.values():
        balances[each["source"]] -= each["amount"]
        balances[each["target"]] += each["amount"]
    for teller, count in enumerate(told):
        numbers = sorted(key for key in moved if key // 1_000_000 == teller)
        if len(numbers) < count or numbers != [_key(teller, n) for n in range(len(numbers))]:
            raise InternalError(
                f"teller {teller} was told of {count} transfers; {len(numbers)} are there"
            )
    found: dict[int, int] = dict(client.sql("SELECT __key, amount FROM accounts").fetchall())
    if found != balances:
        raise InternalError("the balances are not what the transfers make")
    return len(moved)
