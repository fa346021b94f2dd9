"""A million rows of six columns by COPY, in and out, through three members with one backup, beside
PostgreSQL, in one run.

libpq sends and receives the bytes, so no client's objects are measured. Rounds alternate between
the servers, and the ratio is the median of the pairs' ratios of rows per second. PostgreSQL writes
its log to disk as it does by default; a commit waits for a replica (``--alone``: it has none, and
stores one copy of each row). ``--unique``: the names must differ, by a UNIQUE constraint.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import psycopg

import remuda
from peers import postgres

COLUMNS = (
    "id BIGINT PRIMARY KEY, size INTEGER, name VARCHAR, price DECIMAL(10,2), made TIMESTAMP,"
    " used BOOLEAN"
)
TARGET = 1.0
PIECE = 64 * 1024
FORMATS = ("text", "csv", "binary")

Address = dict[str, Any]


def text_of(rows: int) -> bytes:
    return b"".join(
        b"%d\t%d\tname %d\t%d.%02d\t2024-03-%02d 10:%02d:%02d.%03d\t%s\n"
        % (
            i,
            i % 977,
            i,
            i % 9973,
            i % 100,
            1 + i % 28,
            i % 60,
            i % 59,
            i % 1000,
            b"tf"[i % 2 :][:1],
        )
        for i in range(rows)
    )


def load(
    connection: psycopg.Connection[Any], form: str, data: bytes, rows: int, *, unique: bool
) -> float:
    """Seconds of a COPY FROM."""
    connection.execute("DROP TABLE IF EXISTS copied")
    columns = COLUMNS.replace("name VARCHAR", "name VARCHAR UNIQUE") if unique else COLUMNS
    connection.execute(f"CREATE TABLE copied ({columns})")
    view = memoryview(data)
    with connection.cursor() as cursor:
        began = time.perf_counter()
        with cursor.copy(f"COPY copied FROM STDIN (FORMAT {form})") as copy:
            for start in range(0, len(data), PIECE):
                copy.write(view[start : start + PIECE])
        taken = time.perf_counter() - began
        assert cursor.rowcount == rows
    return taken


def unload(connection: psycopg.Connection[Any], form: str) -> tuple[float, bytes]:
    """Seconds of a COPY TO, and what came."""
    began = time.perf_counter()
    with connection.cursor().copy(f"COPY copied TO STDOUT (FORMAT {form})") as copy:
        found = [bytes(piece) for piece in copy]
    return time.perf_counter() - began, b"".join(found)


def report(what: str, rows: int, pairs: list[tuple[float, float]]) -> None:
    ratio = statistics.median(theirs / ours for ours, theirs in pairs)
    ours, theirs = (rows / statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"{what:12} {ours:9,.0f} rows/s, PostgreSQL {theirs:9,.0f} rows/s: {ratio:.2f} x "
        f"(target >= {TARGET:g})",
        flush=True,
    )


def measure(doors: tuple[Address, Address], options: argparse.Namespace) -> None:
    text = text_of(options.rows)
    connections = [psycopg.connect(**door, autocommit=True) for door in doors]
    for connection in connections:
        load(connection, "text", text, options.rows, unique=options.unique)
    data = {form: unload(connections[1], form)[1] for form in FORMATS}
    for form in options.formats:
        into: list[tuple[float, float]] = []
        out: list[tuple[float, float]] = []
        for _ in range(options.rounds):
            ours, theirs = (
                load(c, form, data[form], options.rows, unique=options.unique) for c in connections
            )
            into.append((ours, theirs))
            ours, theirs = (unload(c, form)[0] for c in connections)
            out.append((ours, theirs))
        report(f"{form} in", options.rows, into)
        report(f"{form} out", options.rows, out)
    for connection in connections:
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="pairs of rounds of each kind")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--formats", nargs="+", default=list(FORMATS), choices=FORMATS)
    parser.add_argument("--unique", action="store_true", help="the names must differ")
    parser.add_argument("--alone", action="store_true", help="PostgreSQL has no replica")
    options = parser.parse_args()
    with postgres(replica=not options.alone) as peer, remuda.start(members=3) as cluster:
        if peer is None:
            return
        theirs = dict(psycopg.conninfo.conninfo_to_dict(peer))
        host, _, port = cluster.members[0].postgres.partition(":")
        ours = {"host": host, "port": int(port), "user": "bench", "dbname": "bench"}
        measure((ours, {**theirs, "port": int(theirs["port"])}), options)


if __name__ == "__main__":
    main()
