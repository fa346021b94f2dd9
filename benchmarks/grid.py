"""Entries, statements and transactions beside four neighbours: ``./run bench grid``.

Everybody keeps one synchronous copy. Remuda, Hazelcast and Ignite: three members with one backup,
in memory. Redis: a server in memory and a replica that each write waits for (WAIT 1), an entry as a
hash of its fields, batches as pipelines. PostgreSQL: a server and a synchronous replica,
``synchronous_commit = remote_write``, prepared statements, batches as one statement over arrays.
Hazelcast and Ignite are asked by their clients in Python and in Java. ``--more`` adds Redis and
PostgreSQL without a replica. All give back the application's objects. Everything runs on this
machine, so servers and clients share its processors. The subjects take turns, round by round;
figures are medians over the rounds, ratios those of the same round. ``--quick`` takes about six
minutes; a peer that cannot run is left out with its reason.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import closed_loop
import entry_subjects
import java_peers
import java_subjects
import peers
import remuda
from closed_loop import Figures

OPERATIONS = (
    "get",
    "put",
    "compute",
    "SELECT by key",
    "SELECT by index",
    "UPDATE by key",
    "2 keys, serializable",
    "2 keys, pessimistic",
    "mixed 80/20",
    "put_all",
    "get_all",
)
QUICK = OPERATIONS[:8]
CLIENTS = (1, 16, 64)
Results = dict[tuple[str, int, str], list[tuple[Figures, float]]]
"""Figures with the servers' processor time for each operation, in seconds."""
Running = list[tuple[Any, Any, Sequence[str]]]
"""Subjects, their clients, and the operations that they have."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=list(CLIENTS))
    parser.add_argument("--only", default="", help="operations, by semicolon")
    parser.add_argument("--subjects", default="", help="those whose names contain it")
    parser.add_argument("--without", default="\n", help="leave out those whose names contain it")
    parser.add_argument("--more", action="store_true", help="Redis and PostgreSQL alone, too")
    parser.add_argument("--quick", action="store_true", help="single operations, short rounds")
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds = 0.5, 2
    operations = options.only.split(";") if options.only else QUICK if options.quick else OPERATIONS
    unknown = [operation for operation in operations if operation not in OPERATIONS]
    if unknown:
        parser.error(f"unknown operation {unknown[0]!r}; there are: {'; '.join(OPERATIONS)}")
    results: Results = {}
    print(f"(load of the machine: {os.getloadavg()[0]:.1f} before it began)")
    with contextlib.ExitStack() as stack:
        running = _ready(stack, _subjects(stack, options.more), options.subjects, options.without)
        for operation in operations:
            asked = [(subject, clients) for subject, clients, able in running if operation in able]
            for _, clients in asked:  # Java compiles what runs often; nobody begins cold
                clients.run(operation, 16, 0.2)
            for count in options.clients:
                for _ in range(options.rounds):
                    for subject, clients in asked:
                        figures = _measured(subject, clients, operation, count, options.seconds)
                        results.setdefault((operation, count, subject.name), []).append(figures)
                names = [subject.name for subject, _ in asked]
                report(results, operation, count, names, options.seconds)
            absent = [subject.name for subject, _, able in running if operation not in able]
            if absent:
                print(f"\n({operation}: {', '.join(absent)}: no such operation: not measured)")
    print(f"\n(load of the machine: {os.getloadavg()[0]:.1f} at the end, with all subjects)")
    return 0


def _measured(
    subject: Any, clients: Any, operation: str, count: int, seconds: float
) -> tuple[Figures, float]:
    """The servers' processor time is that of the warm-up, too, and divided by its operations, too.
    What they take while nobody asks is in it."""
    used, began = peers.processor_seconds(subject.pids), time.monotonic()
    figures = clients.run(operation, count, seconds)
    took = time.monotonic() - began
    used = peers.processor_seconds(subject.pids) - used
    return figures, used / (figures.rate * min(took, seconds + closed_loop.WARM_UP))


def _ready(
    stack: contextlib.ExitStack, subjects: list[Any], containing: str, without: str
) -> Running:
    """Those asked for, with their clients, and all of them filled."""
    running: Running = []
    for subject in subjects:
        wanted = containing in subject.name and without not in subject.name
        if isinstance(subject, java_subjects.ByJava):
            clients = stack.enter_context(subject.clients())
            reason = clients.fill()  # for the peer's client in Python, too
            if reason is not None:
                print(f"({subject.name}: {reason}: not measured, nor by Python)")
                running = [each for each in running if each[0].pids != subject.pids]
            elif wanted:
                running.append((subject, clients, subject.operations))
            continue
        session = subject.session()
        session.fill()
        able = tuple(session.operations)
        session.close()
        if wanted:
            running.append((subject, stack.enter_context(closed_loop.clients(subject)), able))
    return running


def _subjects(stack: contextlib.ExitStack, more: bool) -> list[Any]:
    cluster = stack.enter_context(remuda.start(members=3))
    found: list[Any] = [entry_subjects.Remuda(cluster.addresses, tuple(cluster.pids))]
    for replica in (True, False) if more else (True,):
        server = stack.enter_context(peers.redis(replica=replica))
        if server is not None:
            how = ", replica, WAIT 1" if replica else ""
            name, copies = f"Redis{how}", int(replica)
            found.append(entry_subjects.Redis(name, server.port, False, copies, server.pids))
            if more:
                name = f"Redis pickled{how}"
                found.append(entry_subjects.Redis(name, server.port, True, copies, server.pids))
    modes = [(True, ["remote_write"])] + ([(False, ["off", "on"])] if more else [])
    for replica, commits in modes:
        address = stack.enter_context(peers.postgres(replica=replica))
        if address is not None:
            pids = peers.postgres_pids(address)
            for mode in commits:
                how = f", replica, {mode}" if replica else f", synchronous_commit {mode}"
                found.append(entry_subjects.Postgres(f"PostgreSQL{how}", address, mode, pids))
    path = java_peers.class_path()
    hazelcast = stack.enter_context(java_peers.hazelcast(path))
    if hazelcast is not None:
        found.append(java_subjects.Hazelcast(hazelcast.ports, hazelcast.pids))
        found.append(java_subjects.in_java(hazelcast, hazelcast=True))
    ignite = stack.enter_context(java_peers.ignite(path))
    if ignite is not None:
        found.append(java_subjects.Ignite(ignite.ports, ignite.pids))
        found.append(java_subjects.in_java(ignite, hazelcast=False))
    return found


def report(
    results: Results, operation: str, clients: int, names: list[str], seconds: float
) -> None:
    moved = entry_subjects.MOVED.get(operation, 1)
    ours = [figures.rate for figures, _ in results[operation, clients, names[0]]]
    print(f"\n{operation}{f'({moved})' if moved > 1 else ''}, {clients} clients\n")
    print("| | entries/s | p50 µs | p99 µs | servers, µs | refused | Remuda's rate / its rate |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        measured = results[operation, clients, name]
        found = [figures for figures, _ in measured]
        rate = statistics.median(f.rate for f in found) * moved
        p50 = statistics.median(f.p50 for f in found) * 1e6
        p99 = statistics.median(f.p99 for f in found) * 1e6
        used = statistics.median(used for _, used in measured) * 1e6 / moved
        refused = sum(f.failed for f in found)
        tried = refused + sum(f.rate for f in found) * seconds
        ratio = statistics.median(o / f.rate for o, f in zip(ours, found, strict=True))
        print(
            f"| {name} | {rate:,.0f} | {p50:,.0f} | {p99:,.0f} | {used:,.0f} |"
            f" {refused / tried:.1%} | {ratio:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
