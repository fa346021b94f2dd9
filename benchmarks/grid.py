"""Entries, one at a time and a thousand at a time, beside two neighbours: ``./run bench grid``.

Three members with one synchronous backup of everything, in memory. Redis: one server in memory,
without and with a replica that each write waits for (WAIT), an entry as a hash of its fields and as
one pickled value, batches as pipelines. PostgreSQL: one server, ``synchronous_commit`` off and on
(only the latter survives the loss of the machine), batches as one statement over arrays. All give
back the application's objects. Everything runs on this machine, so servers and clients share its
processors. The subjects take turns, round by round; figures are medians over the rounds, ratios
those of the same round.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys

import closed_loop
import entry_subjects
import peers
import remuda
from closed_loop import Figures, Subject

OPERATIONS = ("get", "put", "mixed 80/20", "put_all", "get_all")
Results = dict[tuple[str, int, str], list[Figures]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--only", default=",".join(OPERATIONS), help="operations, by comma")
    parser.add_argument("--subjects", default="", help="those whose names contain it")
    parser.add_argument("--without", default="\n", help="leave out those whose names contain it")
    options = parser.parse_args()
    operations = options.only.split(",")
    results: Results = {}
    with contextlib.ExitStack() as stack:
        subjects = [
            subject
            for subject in _subjects(stack)
            if options.subjects in subject.name and options.without not in subject.name
        ]
        running = []
        for subject in subjects:
            session = subject.session()
            session.fill()  # type: ignore[attr-defined]
            session.close()
            running.append((subject, stack.enter_context(closed_loop.clients(subject))))
        for operation in operations:
            for count in options.clients:
                for _ in range(options.rounds):
                    for subject, clients in running:
                        figures = clients.run(operation, count, options.seconds)
                        results.setdefault((operation, count, subject.name), []).append(figures)
                report(results, operation, count, [subject.name for subject in subjects])
    return 0


def _subjects(stack: contextlib.ExitStack) -> list[Subject]:
    cluster = stack.enter_context(remuda.start(members=3))
    found: list[Subject] = [entry_subjects.Remuda(cluster.addresses)]
    for replica in (False, True):
        server = stack.enter_context(peers.redis(replica=replica))
        if server is not None:
            how = ", replica" if replica else ""
            for pickled in (False, True):
                form = "pickled" if pickled else "hash"
                name = f"Redis {form}{how}"
                found.append(entry_subjects.Redis(name, server.port, pickled, int(replica)))
    address = stack.enter_context(peers.postgres())
    if address is not None:
        found += [
            entry_subjects.Postgres(f"PostgreSQL, synchronous_commit {mode}", address, mode)
            for mode in ("off", "on")
        ]
    return found


def report(results: Results, operation: str, clients: int, names: list[str]) -> None:
    moved = entry_subjects.MOVED.get(operation, 1)
    ours = [figures.rate for figures in results[operation, clients, names[0]]]
    print(f"\n{operation}{f'({moved})' if moved > 1 else ''}, {clients} clients\n")
    print("| | entries/s | p50 µs | p99 µs | Remuda's rate / its rate |")
    print("|---|---|---|---|---|")
    for name in names:
        found = results[operation, clients, name]
        rate = statistics.median(f.rate for f in found) * moved
        p50 = statistics.median(f.p50 for f in found) * 1e6
        p99 = statistics.median(f.p99 for f in found) * 1e6
        ratio = statistics.median(o / f.rate for o, f in zip(ours, found, strict=True))
        print(f"| {name} | {rate:,.0f} | {p50:,.0f} | {p99:,.0f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
