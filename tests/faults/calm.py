"""``./run soak calm``: an hour of load on three members with the defaults, and no fault at all.

    ./run soak calm [--minutes M] [--clients N]

The members run as processes, and clients read, write, commit, load batches and scan without pause.
A view that changes meanwhile was wrong: nobody has left. Printed for each tenth of the time: the
load of the machine, and the longest time for which a member had heard nothing from another one. The
exit status is 1 when a view changed, when a member noted anything about the others after the
beginning, a suspicion for example, or when an operation failed for good.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

import remuda
from remuda.client.blocking.client import Client
from remuda.errors import RemudaError

KEYS = 20_000
LOOK = 0.5
"""Seconds between two looks at the members."""


@dataclass
class Account:
    balance: int
    note: str


def operations(client: Client, chance: random.Random) -> list[Callable[[], object]]:
    """Each with its weight as often as it stands here."""
    accounts = client.map("accounts", Account)

    def move() -> None:
        with client.transaction() as transaction:
            there = transaction.map("accounts", Account)
            for key in sorted(chance.sample(range(KEYS), 2)):
                found = there.get(key)
                there.put(key, Account(found.balance + 1, found.note))

    def batch() -> None:
        keys = chance.sample(range(KEYS), 1000)
        accounts.put_all({key: Account(key, f"note {key}") for key in keys})

    def update() -> None:
        text = "UPDATE accounts SET balance = balance + 1 WHERE __key = ?"
        client.sql(text, chance.randrange(KEYS)).close()

    def scan() -> None:
        client.sql("SELECT note, sum(balance) FROM accounts GROUP BY note LIMIT 10").fetchall()

    def get() -> None:
        assert accounts.get(chance.randrange(KEYS)) is not None

    def put() -> None:
        accounts.put(key := chance.randrange(KEYS), Account(key, f"note {key}"))

    return [get, get, get, put, put, update, update, move, batch, scan]


def work(addresses: Sequence[str], seed: int, pipe: Connection) -> None:
    """Until the pipe says so; then what was done, refused because of others, and failed."""
    chance, done, refused, failed = random.Random(seed), 0, 0, ""
    with remuda.connect(addresses) as client:
        chosen = operations(client, chance)
        while not failed and not pipe.poll():
            try:
                chance.choice(chosen)()
                done += 1
            except RemudaError as error:
                if error.retryable:
                    refused += 1
                else:
                    failed = f"{type(error).__name__}: {error}"
    pipe.send((done, refused, failed))


def members(client: Client) -> tuple[set[int], float]:
    """The views that members are in, and the longest silence, in seconds."""
    rows = client.sql("SELECT view, silent FROM sys.members").fetchall()
    return {view for view, _ in rows}, max(silent or 0.0 for _, silent in rows)


def events(client: Client) -> list[str]:
    text = "SELECT view, member, kind, subject, cause FROM sys.membership_events ORDER BY at"
    return [" ".join(map(str, row)) for row in client.sql(text).fetchall()]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run soak calm", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=8, help="processes")
    options = parser.parse_args(arguments)
    with remuda.start(members=3) as cluster, cluster.connect() as client:
        accounts = client.map("accounts", Account)
        accounts.put_all({key: Account(key, f"note {key}") for key in range(KEYS)})
        before, told = members(client)[0], events(client)
        print(f"view {sorted(before)}; {options.minutes:g} minutes", flush=True)
        context = multiprocessing.get_context("spawn")
        workers = []
        for seed in range(options.clients):
            ours, theirs = context.Pipe()
            process = context.Process(target=work, args=(cluster.addresses, seed, theirs))
            process.start()
            workers.append((process, ours))
        pipes = [ours for _, ours in workers]
        longest = look(client, before, options.minutes * 60, pipes)
        for _, pipe in workers:
            with contextlib.suppress(BrokenPipeError):  # it has ended, and said why
                pipe.send(None)
        answers = [pipe.recv() for _, pipe in workers]
        for process, _ in workers:
            process.join()
        after, news = members(client)[0], events(client)[len(told) :]
    done, refused = sum(answer[0] for answer in answers), sum(answer[1] for answer in answers)
    failed = [answer[2] for answer in answers if answer[2]]
    print(f"{done:,} operations, {refused} refused because of others; {longest:.2f} s of silence")
    for line in (*failed, *news):
        print(line)
    calm = after == before and not failed and not news
    print("no view changed" if calm else f"not calm: view {sorted(before)}, then {sorted(after)}")
    return 0 if calm else 1


def look(client: Client, before: set[int], seconds: float, workers: Sequence[Connection]) -> float:
    """The longest silence. Ends early when the view has changed or a worker has ended."""
    longest, part, began, told = 0.0, 0.0, time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        ended = wait(workers, LOOK)
        views, silent = members(client)
        part = max(part, silent)
        if ended or views != before:
            break
        if passed >= (told + 1) * seconds / 10:
            told += 1
            longest = max(longest, part)
            load = os.getloadavg()[0]
            line = f"{passed / 60:5.1f} min: load {load:4.1f}, longest silence {part:.2f} s"
            print(line, flush=True)
            part = 0.0
    return max(longest, part)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
