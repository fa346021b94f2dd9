"""Starts members in the control group of the first argument, and goes back to that of the second
one as a client that writes until it is refused. Prints what there was in the end, as JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pyarrow as pa

import remuda
from remuda.client.client import Client
from remuda.errors import StorageFull

MEMBERS = 2
ROWS = 20_000
BATCHES_MAX = 200


def rows_of(batch: int, width: int, rows: int) -> pa.Table:
    ids = range(batch * rows, (batch + 1) * rows)
    return pa.table({"id": list(ids), "v": [f"{i:0{width}}" for i in ids]})


def fill(client: Client, name: str, width: int, rows: int) -> int:
    """Write until a member refuses; the batches that it took."""
    client.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v VARCHAR)").close()
    for batch in range(BATCHES_MAX):
        try:
            client.map(name).put_all(rows_of(batch, width, rows))
        except StorageFull:
            return batch
    raise AssertionError("no member has refused anything")


def update(client: Client, name: str) -> int:
    """Write new values of the same keys until a member refuses: versions; the rounds it took."""
    for number in range(BATCHES_MAX):
        text = f"{number:01000}"
        try:
            client.sql(f"UPDATE {name} SET v = ?", text).close()
        except StorageFull:
            return number
    raise AssertionError("no member has refused anything")


def index(client: Client, name: str) -> int:
    """Make indexes of a wide column until a member refuses; how many it took."""
    for number in range(BATCHES_MAX):
        try:
            client.sql(f"CREATE INDEX {name}_{number} ON {name} (v, id)").close()
        except StorageFull:
            return number
    raise AssertionError("no member has refused anything")


def move_to(group: str) -> None:
    Path(group, "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def main(group: str, outside: str) -> None:
    move_to(group)
    with remuda.start(members=MEMBERS) as cluster, cluster.connect() as client:
        move_to(outside)  # the members stay
        taken = [fill(client, "bulk", 500, ROWS)]
        client.sql("DROP TABLE bulk").close()
        others = []
        for load in (index, update):
            client.sql("CREATE TABLE changed (id BIGINT PRIMARY KEY, v VARCHAR)").close()
            client.map("changed").put_all(rows_of(0, 1000, ROWS))
            others.append(load(client, "changed"))
            client.sql("DROP TABLE changed").close()
        taken.append(fill(client, "small", 20_000, 40))
        cluster.check()
        members = client.sql("SELECT storage_held, storage_limit, writes_refused FROM sys.members")
        found = {
            "taken": taken,
            "others": others,
            "members": [list(row) for row in members.fetchall()],
        }
        [(found["rows"],)] = client.sql("SELECT count(*) FROM small").fetchall()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
