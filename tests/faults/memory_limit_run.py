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


def fill(client: Client, name: str, width: int, rows: int) -> int:
    """Write until a member refuses; the batches that it took."""
    client.sql(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v VARCHAR)").close()
    for batch in range(BATCHES_MAX):
        ids = range(batch * rows, (batch + 1) * rows)
        table = pa.table({"id": list(ids), "v": [f"{i:0{width}}" for i in ids]})
        try:
            client.map(name).put_all(table)
        except StorageFull:
            return batch
    raise AssertionError("no member has refused anything")


def move_to(group: str) -> None:
    Path(group, "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")


def main(group: str, outside: str) -> None:
    move_to(group)
    with remuda.start(members=MEMBERS) as cluster, cluster.connect() as client:
        move_to(outside)  # the members stay
        taken = [fill(client, "bulk", 500, ROWS)]
        client.sql("DROP TABLE bulk").close()
        taken.append(fill(client, "small", 20_000, 40))
        cluster.check()
        members = client.sql("SELECT storage_held, storage_limit, writes_refused FROM sys.members")
        found = {"taken": taken, "members": [list(row) for row in members.fetchall()]}
        [(found["rows"],)] = client.sql("SELECT count(*) FROM small").fetchall()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
