"""Every SQL logic test file on one member, on three members, and with batches of one row."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import remuda

sys.path.insert(0, str(Path(__file__).parent))
from runner import run_file

FILES = sorted((Path(__file__).parent / "files").rglob("*.slt"))
VARIANTS = {
    "one-member": {"members": 1},
    "three-members": {"members": 3},
    # Also with two instances of every fragment that may have them, whatever the number of rows.
    "one-row-batches": {
        "members": 2,
        "settings": {
            "batch_rows": 1,
            "workers": 2,
            "parallel_rows": 1,
            "parallel_scans": "partitions",
        },
    },
}

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", params=list(VARIANTS))
def variant(request: pytest.FixtureRequest, cluster_of: Any) -> Iterator[tuple[str, remuda.Client]]:
    with cluster_of(**VARIANTS[request.param]) as cluster, cluster.connect() as client:
        yield request.param, client


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file(path: Path, variant: tuple[str, remuda.Client]) -> None:
    name, client = variant

    def execute(sql: str) -> list[tuple[object, ...]]:
        with client.sql(sql) as cursor:
            return [tuple(row) for row in cursor]

    try:
        assert run_file(path, execute, name) > 0
    finally:
        execute("ROLLBACK")  # a file that failed may be inside of a transaction
        execute("RESET ALL")
        for row in execute("SELECT nspname FROM pg_namespace WHERE oid >= 16384"):
            execute(f'DROP SCHEMA "{row[0]}" CASCADE')
        for row in execute("SHOW TABLES"):
            execute(f'DROP TABLE "{row[0]}" CASCADE')
        for row in execute("SELECT sequencename FROM pg_sequences"):
            execute(f'DROP SEQUENCE "{row[0]}" CASCADE')
        for row in execute("SELECT typname FROM pg_type WHERE typtype = 'e'"):
            execute(f'DROP TYPE "{row[0]}"')
