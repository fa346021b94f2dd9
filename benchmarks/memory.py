"""Memory of a loaded map, per key, beside the size of the same rows in Arrow.

Resident memory of every member is read from /proc before and after the load, after the members
have had the time to give back what the load itself needed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import remuda

ROWS = 2_000_000


def resident(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1]) * 1024
    return total


def table(kind: str) -> pa.Table:
    ids = np.arange(ROWS, dtype=np.int64)
    key = pa.array(ids) if kind == "bigint" else pa.array([f"customer-{i:09}" for i in range(ROWS)])
    return pa.table(
        {
            "id": key,
            "city": pa.array(np.array(["Zurich", "Bern", "Basel", "Geneva"])[ids % 4]),
            "name": pa.array([f"name {i % 1000}" for i in range(ROWS)]),
            "amount": pa.array(ids * 0.5),
            "quantity": pa.array((ids % 100).astype(np.int32)),
            "stamp": pa.array(ids * 7),
        }
    )


def main() -> int:
    print("| key | rows | Arrow bytes/row | member bytes/row | beyond Arrow, bytes/key |")
    print("|---|---|---|---|---|")
    for kind in ("bigint", "varchar"):
        rows = table(kind)
        with remuda.start(members=3) as cluster, cluster.connect() as client:
            sql_type = "BIGINT" if kind == "bigint" else "VARCHAR"
            definition = (
                f"CREATE TABLE big (id {sql_type} PRIMARY KEY, city VARCHAR, name VARCHAR,"
                " amount DOUBLE PRECISION, quantity INTEGER, stamp BIGINT)"
            )
            client.sql(definition).close()
            client.map("big").put_all(rows.slice(0, 1000))
            time.sleep(3)
            before = resident(cluster.pids)
            client.map("big").put_all(rows)
            time.sleep(8)
            after = resident(cluster.pids)
        used = (after - before) / ROWS
        arrow = rows.nbytes / ROWS
        print(f"| {kind} | {ROWS} | {arrow:.0f} | {used:.0f} | {used - arrow:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
